"""Turns of supervised agents are on record, whatever becomes of them."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from e2e.cli_kit import Project, repository, running
from records.kit import git
from waiting import until_true


def turns(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(project.ok("turn", "list", "--json"))["turns"]
    return found


def ended(project: Project, count: int) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | None:
        rows = [each for each in turns(project) if each["status"] not in ("under way", "incomplete")]
        return rows if len(rows) >= count else None

    return list(until_true(look))


def say(*steps: dict[str, object]) -> str:
    return f"Please.\nplaybook: {json.dumps(steps)}"


WORK = say(
    {"write": {"path": "made.txt", "text": "made\n"}}, {"use": {"input": 100, "output": 20}}, {"say": "Made it."}
)


def test_every_turn_of_a_supervised_agent_is_recorded_and_verifies(tmp_path: Path) -> None:
    with running(tmp_path / "p") as project:
        project.ok("spawn", "worker", "--message", WORK)
        project.until_idle("worker-1", 1)
        project.ok("send", "worker-1", say({"fail": "no more"}))
        first, second = ended(project, 2)
        assert (first["status"], first["summary"], first["agent"]) == ("completed", "Made it.", "worker-1")
        assert second["status"] == "failed"
        shown = json.loads(project.ok("turn", "show", "1", "--json"))
        assert [each["path"] for each in shown["outputs"]] == ["made.txt"]
        assert shown["execution"]["tokens"] == {"input": 100, "output": 20, "cacheRead": 0, "cacheCreation": 0}
        assert shown["provenance"]["recordedBy"] == "runtime"
        project.ok("turn", "verify", "--all")
        assert git(project.root, "status", "--short") == "?? made.txt\n?? remuda.toml"
        assert not (project.root / "ai").exists()


def test_a_turn_that_the_runtime_died_in_is_closed_as_lost_by_the_next_one(tmp_path: Path) -> None:
    project = repository(tmp_path / "p")
    project.ok("up", "-d")
    try:
        project.ok(
            "spawn", "worker", "--message", say({"write": {"path": "half.txt", "text": "half\n"}}, {"hang": True})
        )
        until_true(lambda: (project.root / "half.txt").exists())
        pid = json.loads((project.root / ".remuda/lock").read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
        until_true(lambda: not Path(f"/proc/{pid}").exists())
        project.ok("up", "-d")
        lost = next(each for each in ended(project, 1) if each["turn"] == 1)
        assert lost["status"] == "lost"
        shown = json.loads(project.ok("turn", "show", "1", "--json"))
        assert [each["path"] for each in shown["outputs"]] == ["half.txt"]
    finally:
        project("down")
    project.ok("turn", "verify", "--all")


def test_a_turn_that_is_stopped_is_recorded_as_interrupted(tmp_path: Path) -> None:
    with running(tmp_path / "p") as project:
        project.ok(
            "spawn", "worker", "--message", say({"write": {"path": "half.txt", "text": "half\n"}}, {"hang": True})
        )
        until_true(lambda: (project.root / "half.txt").exists())
        project.ok("stop", "worker-1")
        assert [each["status"] for each in ended(project, 1)] == ["interrupted"]


def test_what_a_check_says_is_told_to_the_agent_and_blocks_only_where_it_is_wanted(tmp_path: Path) -> None:
    project = repository(tmp_path / "p")
    project.ok("init")
    check = '["sh", "-c", "echo looking; test -f fixed.txt"]'
    (project.root / "remuda.toml").write_text(f"[turns]\ntests = {check}\nblocking = true\n")
    fix = {
        "when": "tests-pass",
        "once": True,
        "do": [{"write": {"path": "fixed.txt", "text": "now\n"}}, {"say": "Fixed."}],
    }
    (project.root / "book.json").write_text(json.dumps({"turns": [fix], "otherwise": [{"say": "I cannot."}]}))
    project.ok("up", "-d")
    try:
        project.ok("spawn", "worker", "--option", "playbook=book.json", "--message", say({"say": "Done."}))
        (first,) = ended(project, 1)
        assert (first["status"], first["summary"]) == ("completed", "Fixed.")
        shown = json.loads(project.ok("turn", "show", "1", "--json"))
        rules = {each["rule"]: (each["status"], each["detailsPath"]) for each in shown["tasks"][0]["validations"]}
        assert rules["tests-pass"] == ("pass", "validations/tests-pass.txt")
        assert rules["lint-clean"] == ("skipped", "")
        assert "looking" in project.ok("turn", "show", "1", "--file", "validations/tests-pass.txt")
        (project.root / "fixed.txt").unlink()
        project.ok("send", "worker-1", say({"say": "Done again."}))
        second = ended(project, 2)[1]
        assert second["status"] == "failed"
        ran = project("turn", "verify", "2")
        assert (ran.code, "failed: tests-pass" in ran.out) == (1, True)
        project.ok("turn", "verify", "2", "--fail-on", "orphaned")
    finally:
        project("down")


def test_a_turn_that_cannot_be_recorded_is_not_begun_and_says_why(tmp_path: Path) -> None:
    with running(tmp_path / "p") as project:
        (project.root / ".git/remuda").write_text("in the way\n")
        project.ok("spawn", "worker", "--message", WORK)
        project.until_idle("worker-1", 1)
        assert not (project.root / "made.txt").exists()
        assert "could not be recorded" in project.ok("events")


def test_records_can_be_off(tmp_path: Path) -> None:
    project = repository(tmp_path / "p")
    project.ok("init")
    (project.root / "remuda.toml").write_text('[turns]\nrecords = "off"\n')
    project.ok("up", "-d")
    try:
        project.ok("spawn", "worker", "--message", WORK)
        project.until_idle("worker-1", 1)
        assert turns(project) == []
        assert git(project.root, "for-each-ref", "refs/tags", "refs/turns", "refs/notes", "refs/heads") == ""
    finally:
        project("down")
