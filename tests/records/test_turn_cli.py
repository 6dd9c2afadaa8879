"""`remuda turn`: what people and CI type."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from records.kit import SECRET, git, key_pair, record, repository, write
from remuda.cli.group import remuda
from remuda.domain.errors import RemudaError
from remuda.records.begin import Asked, begin, end
from remuda.records.keeping import Keeping
from remuda.records.repository import find_repository


def run(top: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    monkeypatch.chdir(top)
    return CliRunner().invoke(remuda, ["turn", *arguments], standalone_mode=False)


def code(result: Result) -> int:
    error = result.exception
    if isinstance(error, RemudaError):
        return error.exit_code
    if error is not None:
        raise error
    return result.return_value if isinstance(result.return_value, int) else 0


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return repository(tmp_path / "r")


def test_clean_history_is_0_tampering_1_and_a_shallow_clone_3(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    record(top, keeping=Keeping("branch"))
    made = record(top, keeping=Keeping("branch"))
    assert code(run(top, monkeypatch, "verify")) == 0
    assert code(run(top, monkeypatch, "verify", "--all", "--json")) == 0
    assert code(run(top, monkeypatch, "verify", "2")) == 0
    assert code(run(top, monkeypatch, "verify", "1..2")) == 0
    assert code(run(top, monkeypatch, "verify", "HEAD~1..HEAD")) == 0
    git(tmp_path, "clone", "-q", "--depth=1", top.as_uri(), "shallow")
    assert code(run(tmp_path / "shallow", monkeypatch, "verify")) == 3
    capfd.readouterr()
    git(top, "tag", "-f", "turn/2", made.commit)
    assert code(run(top, monkeypatch, "verify")) == 1
    assert "turn 2: invalid" in capfd.readouterr().out


def test_records_that_were_not_fetched_are_not_passed_over(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(top, keeping=Keeping("branch"))
    git(tmp_path, "clone", "-q", "--no-tags", top.as_uri(), "clone")
    assert code(run(tmp_path / "clone", monkeypatch, "verify")) == 3
    assert code(run(tmp_path / "clone", monkeypatch, "verify", "HEAD~1..HEAD")) == 3


def test_what_counts_as_a_failure_can_be_said(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(top, keeping=Keeping("branch"))
    assert code(run(top, monkeypatch, "verify", "--fail-on", "unsigned")) == 1
    git(top, "commit", "-q", "--amend", "-m", "x")
    assert code(run(top, monkeypatch, "verify")) == 0
    assert code(run(top, monkeypatch, "verify", "--fail-on", "rebound")) == 1
    git(top, "reset", "-q", "--hard", "HEAD~1")
    assert code(run(top, monkeypatch, "verify")) == 1
    assert code(run(top, monkeypatch, "verify", "--fail-on", "")) == 0
    assert code(run(top, monkeypatch, "verify", "--fail-on", "nonsense")) == 2


def test_signers_come_from_the_option_and_from_the_settings(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = key_pair(tmp_path, "ours"), key_pair(tmp_path, "theirs")
    record(top, key=ours)
    assert code(run(top, monkeypatch, "verify", "--allowed-signers", f"{ours}.pub", "--fail-on", "unsigned")) == 0
    assert code(run(top, monkeypatch, "verify", "--allowed-signers", f"{theirs}.pub")) == 1
    write(top, "remuda.toml", f'[turns]\nallowed_signers = "{theirs}.pub"\n')
    assert code(run(top, monkeypatch, "verify")) == 1


def test_every_export_is_what_its_readers_expect(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = record(top)
    exported = {
        form: run(top, monkeypatch, "export", "--format", form).stdout_bytes
        for form in ("in-toto", "agent-trace", "csv", "json")
    }
    (envelope,) = [json.loads(line) for line in exported["in-toto"].splitlines()]
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    (trace,) = [json.loads(line) for line in exported["agent-trace"].splitlines()]
    assert {"version", "id", "timestamp", "files"} <= set(trace)
    assert trace["id"] == made.manifest.turn_uuid
    assert trace["vcs"] == {"type": "git", "revision": made.commit}
    (file,) = trace["files"]
    (conversation,) = file["conversations"]
    assert (file["path"], conversation["contributor"]["type"]) == ("work.txt", "ai")
    assert [(each["start_line"], each["end_line"]) for each in conversation["ranges"]] == [(1, 1)]
    rows = list(csv.DictReader(io.StringIO(exported["csv"].decode())))
    assert [row["turn_uuid"] for row in rows] == [made.manifest.turn_uuid]
    (one,) = json.loads(exported["json"])
    assert (one["turnId"], one["commit"], one["tag"]) == (1, made.commit, "turn/1")


def test_a_turn_that_had_ended_when_everything_died_is_shown_complete_by_the_next_look(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    assert code(run(top, monkeypatch, "list")) == 0
    assert "under way" in capfd.readouterr().out
    end(turn, "completed", summary="did it")
    assert code(run(top, monkeypatch, "list")) == 0
    assert "completed" in capfd.readouterr().out
    assert code(run(top, monkeypatch, "recover")) == 0
    assert "nothing to recover" in capfd.readouterr().out


def test_an_agent_gives_its_turn_a_decision_and_a_summary(
    top: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given = (
        "--title",
        "Use it",
        "--context",
        f"why {SECRET}",
        "--decision",
        "yes",
        "--rationale",
        "a",
        "--rationale",
        "b",
    )
    assert code(run(top, monkeypatch, "decide", *given)) == 3
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    assert code(run(top, monkeypatch, "decide", *given)) == 0
    assert code(run(top, monkeypatch, "summary", "in my words")) == 0
    end(turn, "completed")
    capfd.readouterr()
    assert code(run(top, monkeypatch, "show", "1", "--file", "adr.md")) == 0
    adr = capfd.readouterr().out
    assert "1. Use it" in adr
    assert SECRET not in adr
    assert "2. b" in adr


def test_the_index_can_be_made_anew(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(top)
    record(top)
    write(top, "ai/agentic-pipeline/turns_index.csv", "hostile\n")
    assert code(run(top, monkeypatch, "index", "--write")) == 0
    rows = list(csv.DictReader(io.StringIO((top / "ai/agentic-pipeline/turns_index.csv").read_text())))
    assert [row["turn_id"] for row in rows] == ["1", "2"]


@pytest.mark.parametrize(
    "arguments", [("show", "9"), ("verify", "9"), ("show", "1", "--file", "../x"), ("verify", "a..b"), ("export", "zz")]
)
def test_what_does_not_exist_is_told_plainly(
    arguments: tuple[str, ...], top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(top)
    assert code(run(top, monkeypatch, *arguments)) in (2, 3)


def test_outside_of_a_repository_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Any] = [run(tmp_path, monkeypatch, each) for each in ("list", "verify", "recover")]
    assert [code(each) for each in results] == [2, 2, 2]
