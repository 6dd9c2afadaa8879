"""The protocol's rules, run by the runtime: pass, fail or skipped, with what was said."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from adapters.agent_kit import alive
from records.kit import SECRET, git, repository, write
from remuda.records import checked
from remuda.records.begin import Asked, begin
from remuda.records.facts import RULES, Begun
from remuda.records.journal import OpenTurn
from remuda.records.keeping import Keeping
from remuda.records.repository import find_repository
from remuda.records.validations import COMMANDS, Checks
from waiting import until_true

HEADER = "/**\n * App: x\n * Version: {}\n * Description: it\n */\n"


def started(top: Path) -> OpenTurn:
    return begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))


def judged(turn: OpenTurn, checks: Checks) -> dict[str, tuple[str, str]]:
    begun = msgspec.convert(turn.facts("begun"), Begun)
    facts, told = checked.run(turn, begun, checks, again=True)
    assert told == ""
    return {each["rule"]: (each["status"], each["why"]) for each in facts["validations"]}


def test_every_rule_of_the_protocol_is_there_and_skipped_where_nothing_is_wanted(tmp_path: Path) -> None:
    turn = started(repository(tmp_path / "r"))
    found = judged(turn, Checks(commands={"tests-pass": ("true",)}))
    assert found.pop("tests-pass") == ("pass", "")
    assert ("tests-pass", *found) == RULES
    assert set(found) == {
        *COMMANDS,
        "metadata-headers",
        "version-incremented",
        "branch-convention",
        "commit-convention",
    } - {"tests-pass"}
    assert {status for status, _ in found.values()} == {"skipped"}


@pytest.mark.parametrize(
    ("argv", "status", "why"),
    [
        (("true",), "pass", ""),
        (("sh", "-c", "exit 7"), "fail", "exit code 7"),
        (("no-such-program-here",), "fail", "could not be started"),
        (("sh", "-c", "sleep 60 & sleep 60"), "fail", "took more than"),
    ],
)
def test_a_command_passes_fails_is_missing_or_takes_too_long(
    argv: tuple[str, ...], status: str, why: str, tmp_path: Path
) -> None:
    turn = started(repository(tmp_path / "r"))
    found = judged(turn, Checks(commands={"build-succeeds": argv}, seconds=1.0 if "sleep" in argv[-1] else 60.0))
    assert found["build-succeeds"][0] == status
    assert why in found["build-succeeds"][1]


def test_what_a_check_leaves_running_does_not_keep_it_from_its_end(tmp_path: Path) -> None:
    """Neither in its group, where it is ended, nor outside, where it holds what the check wrote to."""
    turn = started(repository(tmp_path / "r"))
    leaves = "sleep 600 & echo $! > inside; setsid sleep 600 & echo $! > outside; echo said"
    found = judged(turn, Checks(commands={"tests-pass": ("sh", "-c", leaves)}, seconds=300.0))
    assert found["tests-pass"] == ("pass", "")
    inside, outside = (int((tmp_path / "r" / name).read_text()) for name in ("inside", "outside"))
    try:
        until_true(lambda: not alive(inside))
    finally:
        os.kill(outside, signal.SIGKILL)
    assert Path(f"{turn.folder}/validations-tests-pass.txt").read_text().endswith("said\n")


def test_a_check_that_writes_without_end_is_ended(tmp_path: Path) -> None:
    turn = started(repository(tmp_path / "r"))
    found = judged(turn, Checks(commands={"tests-pass": ("yes",)}, seconds=300.0))
    assert found["tests-pass"] == ("fail", "it wrote more than 64 MB and was ended")
    assert Path(f"{turn.folder}/validations-tests-pass.txt").stat().st_size < 1 << 19


def test_what_a_check_says_is_kept_without_secrets_and_its_command_is_no_shell_string(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    turn = started(top)
    judged(turn, Checks(commands={"security-scan": ("echo", f"found {SECRET}", "$(touch pwned)")}))
    log = Path(turn.folder, "validations-security-scan.txt").read_text()
    assert "found [redacted: token] $(touch pwned)" in log
    assert SECRET not in log
    assert not (top / "pwned").exists()


def test_headers_and_versions_are_asked_of_changed_files_that_the_globs_name(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "r", {"src/a.ts": HEADER.format("1.2.3"), "src/b.ts": HEADER.format("1.2.3"), "c.md": "c\n"}
    )
    turn = started(top)
    checks = Checks(headers=("src/*.ts",), versions=("src/*.ts",))
    write(top, "c.md", "changed, and no concern of ours\n")
    assert {judged(turn, checks)[rule][0] for rule in ("metadata-headers", "version-incremented")} == {"pass"}
    write(top, "src/a.ts", HEADER.format("1.2.4") + "more\n")
    write(top, "src/new.ts", HEADER.format("0.1.0"))
    assert judged(turn, checks)["version-incremented"] == ("pass", "")
    write(top, "src/b.ts", HEADER.format("1.2.3") + "more\n")
    write(top, "src/bare.ts", "no header\n")
    found = judged(turn, checks)
    assert found["version-incremented"] == ("fail", "src/b.ts, src/bare.ts")
    assert found["metadata-headers"] == ("fail", "src/bare.ts")


def test_branches_and_commits_must_fit_their_patterns(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    checks = Checks(branch=r"(feat|fix)/[a-z-]+", commit=r"(feat|fix): .+")
    assert judged(started(top), checks)["branch-convention"][0] == "fail"
    git(top, "checkout", "-q", "-b", "feat/it")
    turn = started(top)
    git(top, "commit", "-q", "--allow-empty", "-m", "feat: it works")
    found = judged(turn, checks)
    assert (found["branch-convention"][0], found["commit-convention"][0]) == ("pass", "pass")
    git(top, "commit", "-q", "--allow-empty", "-m", "wip")
    assert judged(turn, checks)["commit-convention"] == ("fail", "wip")


def test_an_agent_is_told_once_what_failed_and_where(tmp_path: Path) -> None:
    turn = started(repository(tmp_path / "r"))
    begun = msgspec.convert(turn.facts("begun"), Begun)
    checks = Checks(commands={"lint-clean": ("sh", "-c", "echo line 7 is ugly; exit 1")})
    facts, told = checked.run(turn, begun, checks, again=False)
    assert facts == {}
    assert "lint-clean" in told
    assert "line 7 is ugly" in told
    facts, told = checked.run(turn, begun, checks, again=True)
    assert told == ""
    assert facts["validations"][1]["status"] == "fail"
