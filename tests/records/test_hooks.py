"""Hooks: what a program is answered, what is installed, what stays of the user's own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from records.kit import IDENTITY, all_valid, git, record, repository, write
from remuda.cli.hooks import with_hooks, without_hooks
from remuda.records.hooked import EVENTS
from remuda.records.journal import open_turns
from remuda.records.repository import find_repository
from waiting import until_true

HOOK = Path(__file__).parents[2] / "src/remuda/cli/hook.py"
REMUDA = (sys.executable, "-m", "remuda.cli.entry")
WITHIN = 60.0


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REMUDA_", "GIT_"))}
    return {**kept, **IDENTITY, **more}


def told(top: Path, event: str, agent: str = "claude", **payload: Any) -> tuple[int, str, str]:
    given = json.dumps({"hook_event_name": event, "session_id": "s", "cwd": str(top), **payload})
    return raw(top, given.encode(), agent)


def raw(top: Path, given: bytes, agent: str = "claude", **env: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-I", "-S", str(HOOK), agent]
    done = subprocess.run(argv, input=given, cwd=top, env=environment(**env), capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def remuda(top: Path, *arguments: str, **env: str) -> str:
    done = subprocess.run(
        [*REMUDA, *arguments], cwd=top, env=environment(**env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def finished(top: Path) -> None:
    until_true(lambda: not open_turns(find_repository(str(top))))


def test_a_turn_by_hooks_is_silent_and_whole(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    quiet = (0, "", "")
    assert told(top, "SessionStart") == quiet
    assert told(top, "UserPromptSubmit", prompt="Do it.", prompt_id="p") == quiet
    write(top, "made.txt", "made\n")
    assert told(top, "PostToolUse", tool_name="Read", tool_input={"file_path": str(top / "readme.txt")}) == quiet
    assert told(top, "PostToolUseFailure", tool_name="Bash", tool_input={"command": "false"}) == quiet
    assert told(top, "Stop", last_assistant_message="Made it.") == quiet
    finished(top)
    assert all_valid(top) == 1
    shown = json.loads(remuda(top, "turn", "show", "1", "--json"))
    assert shown["summary"] == "Made it."
    assert shown["tasks"][0]["inputs"] == ["readme.txt"]
    assert {each["tool"]: each["failed"] for each in shown["execution"]["tools"]} == {"Bash": 1, "Read": 0}


def test_a_turn_that_never_ended_is_closed_by_the_next_prompt_of_its_session(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    told(top, "UserPromptSubmit", prompt="One.", prompt_id="1")
    told(top, "UserPromptSubmit", prompt="Two.", prompt_id="2")
    told(top, "Stop")
    finished(top)
    rows = json.loads(remuda(top, "turn", "list", "--json"))["turns"]
    assert [(each["turn"], each["status"]) for each in rows] == [(1, "interrupted"), (2, "completed")]


def test_a_prompt_told_by_two_hooks_is_one_turn_with_an_id_and_without(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    for more in ({"prompt_id": "p"}, {"prompt_id": "p"}):
        told(top, "UserPromptSubmit", prompt="Do it.", **more)
    for _ in range(2):
        told(top, "UserPromptSubmit", prompt="Do it.", session_id="other")
    turns = open_turns(find_repository(str(top)))
    assert [turn.number for turn in turns] == [1, 2]
    assert [turn.facts("ended") for turn in turns] == [None, None]


def test_a_turn_whose_agent_died_is_closed_when_the_next_agent_starts(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    told(top, "UserPromptSubmit", prompt="One.", prompt_id="1")
    (turn,) = open_turns(find_repository(str(top)))
    begun = turn.facts("begun") or {}
    gone = subprocess.Popen(["true"])
    gone.wait()
    turn.keep("begun", {**begun, "owner": {**begun["owner"], "pid": gone.pid}})
    told(top, "SessionStart", session_id="another")
    finished(top)
    assert all_valid(top) == 1


@pytest.mark.parametrize(
    "given", [b"", b"  ", b"{", b"[]", b"null", b"\xff\xfe", b'{"hook_event_name": 7}', b'{"prompt": {}}']
)
@pytest.mark.parametrize("agent", [*EVENTS, "unknown"])
def test_whatever_it_is_told_it_never_breaks_the_prompt(given: bytes, agent: str, tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    code, out, _ = raw(top, given, agent)
    assert code == 0
    assert out == ("{}" if agent == "gemini" else "")


def test_outside_of_a_repository_it_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    assert told(tmp_path / "x", "UserPromptSubmit", prompt="Do it.", cwd="/") == (0, "", "")


def test_where_it_cannot_write_the_prompt_goes_on(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    (top / ".git/remuda").write_text("in the way\n")
    code, out, err = told(top, "UserPromptSubmit", prompt="Do it.")
    assert (code, out) == (0, "")
    assert "not recorded" in err


def test_an_agent_that_the_runtime_supervises_is_not_recorded_twice(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    given = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(top), "prompt": "x"})
    assert raw(top, given.encode(), REMUDA_AGENT="worker-1") == (0, "", "")
    assert open_turns(find_repository(str(top))) == []


def test_a_failing_check_is_told_once_before_the_turn_may_end(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, "remuda.toml", '[turns]\nlint = ["sh", "-c", "echo ugly; exit 3"]\n')
    told(top, "UserPromptSubmit", prompt="Do it.", prompt_id="p")
    code, out, _ = told(top, "Stop")
    answer = json.loads(out)
    assert (code, answer["decision"]) == (0, "block")
    assert "lint-clean" in answer["reason"]
    assert "ugly" in answer["reason"]
    assert told(top, "Stop", stop_hook_active=True) == (0, "", "")
    finished(top)
    shown = json.loads(remuda(top, "turn", "show", "1", "--json"))
    rules = {each["rule"]: each["status"] for each in shown["tasks"][0]["validations"]}
    assert rules["lint-clean"] == "fail"
    assert rules["tests-pass"] == "skipped"


def test_the_hook_imports_nothing_that_costs_time(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import remuda.cli.hook, remuda.records.hooked, json; "
        "print(sorted({'typing', 'dataclasses', 'subprocess', 'pathlib', 'msgspec', 'click', 'logging', 'tomllib'} "
        "& set(sys.modules)))"
    )
    source = str(HOOK.parents[2])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, source], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- installing ---


@pytest.mark.parametrize("program", list(EVENTS))
def test_installing_keeps_what_is_there_is_idempotent_and_can_be_undone(program: str) -> None:
    mine = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}]}, "model": "x"}
    once = with_hooks(mine, program)
    assert with_hooks(once, program) == once
    assert set(EVENTS[program]) <= set(once["hooks"])
    assert once["hooks"]["Stop"][0] == mine["hooks"]["Stop"][0]  # type: ignore[index]
    assert without_hooks(once) == mine


def test_a_settings_file_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, ".claude/settings.local.json", "{ // mine\n}")
    done = subprocess.run(
        [*REMUDA, "hooks", "install", "claude"], cwd=top, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"left alone" in done.stderr
    assert (top / ".claude/settings.local.json").read_text() == "{ // mine\n}"


# --- git's own hooks ---


def commit(top: Path, message: str) -> str:
    subprocess.run(["git", "commit", "-q", "-m", message], cwd=top, env=environment(), check=True)
    return git(top, "log", "-1", "--format=%(trailers:key=Turn-Id,valueonly,separator=%x20)")


def test_a_commit_that_takes_up_the_work_of_turns_names_them_and_has_a_note(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    remuda(top, "hooks", "install", "git")
    first = record(top).manifest.turn_uuid
    second = record(top).manifest.turn_uuid  # the same file again: its content is what is committed
    third = record(top, lambda _: write(top, "other.txt", "not yet\n")).manifest.turn_uuid
    git(top, "add", "work.txt")
    assert commit(top, "take it up").split() == [first, second]
    assert git(top, "log", "-1", "--format=%(trailers:key=Assisted-by,valueonly)").strip() == "claude:m-1"
    assert first in git(top, "notes", "--ref=remuda", "show", "HEAD")
    assert third not in git(top, "log", "-1", "--format=%B")
    write(top, "mine.txt", "by hand\n")
    git(top, "add", "mine.txt")
    assert commit(top, "my own") == ""
    rows = json.loads(remuda(top, "turn", "verify", "--json"))["turns"]
    assert {each["uuid"]: each["binding"] for each in rows}[second] == "landed"


def test_notes_follow_a_commit_that_is_amended(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    remuda(top, "hooks", "install", "git")
    uuid = record(top).manifest.turn_uuid
    git(top, "add", "work.txt")
    commit(top, "take it up")
    subprocess.run(["git", "commit", "-q", "--amend", "-m", "said better"], cwd=top, env=environment(), check=True)
    assert uuid in git(top, "notes", "--ref=remuda", "show", "HEAD")


def test_hooks_that_are_there_run_first_and_their_refusal_stands(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    folder = top / "team hooks"
    write(top, "team hooks/prepare-commit-msg", '#!/bin/sh\necho "mine $2" >> ran.txt\ntest ! -f refuse\n')
    (folder / "prepare-commit-msg").chmod(0o755)
    git(top, "config", "core.hooksPath", "team hooks")
    remuda(top, "hooks", "install", "git")
    remuda(top, "hooks", "install", "git")
    assert (folder / "post-commit").exists()
    record(top)
    git(top, "add", "work.txt")
    assert commit(top, "with both") != ""
    assert (top / "ran.txt").read_text() == "mine message\n"
    write(top, "refuse", "")
    git(top, "add", "refuse")
    done = subprocess.run(
        ["git", "commit", "-q", "-m", "no"], cwd=top, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 1
    remuda(top, "hooks", "remove", "git")
    assert "ran.txt" in (folder / "prepare-commit-msg").read_text()
    assert not (folder / "post-commit").exists()


def test_a_commit_goes_on_when_ours_is_broken(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    remuda(top, "hooks", "install", "git")
    record(top)
    (top / ".git/remuda/refs-lock").unlink()
    (top / ".git/remuda/refs-lock").mkdir()
    git(top, "add", "work.txt")
    assert commit(top, "all the same") != ""
