"""The same word for the same content, another for any other."""

import asyncio
import subprocess
from pathlib import Path

from e2e.cli_kit import environment
from fakes import run
from remuda.domain.commands import Report, ReportToolCall
from remuda.domain.trigger_commands import ReportSaidAgain
from remuda.effects.steps import Steps
from remuda.git.fingerprint import fingerprint


def git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=environment(**who), capture_output=True)


def repository(folder: Path) -> Path:
    git(folder, "init", "-q", ".")
    (folder / "a file.txt").write_text("one")
    (folder / ".gitignore").write_text("build/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def test_a_change_is_another_word_and_taking_it_back_is_the_first_again(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    clean = fingerprint(folder)
    assert clean
    (folder / "a file.txt").write_text("two")
    changed = fingerprint(folder)
    (folder / "a file.txt").write_text("three")
    assert len({clean, changed, fingerprint(folder)}) == 3
    (folder / "a file.txt").write_text("one")
    assert fingerprint(folder) == clean
    (folder / "new").write_text("x")
    with_new = fingerprint(folder)
    (folder / "new").write_text("y")
    assert len({clean, with_new, fingerprint(folder)}) == 3


def test_ignored_files_do_not_count_and_a_folder_below_the_top_is_measured_as_well(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    clean = fingerprint(folder)
    (folder / "build").mkdir()
    (folder / "build" / "out.o").write_text("x")
    assert fingerprint(folder) == clean
    (folder / "sub").mkdir()
    (folder / "sub" / "b").write_text("1")
    first = fingerprint(folder / "sub")
    (folder / "sub" / "b").write_text("2")
    assert fingerprint(folder / "sub") != first


def test_a_log_that_grows_is_no_change_unless_it_belongs_to_the_project(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    clean = fingerprint(folder)
    (folder / "sub").mkdir()
    for name in ("build.log", "nohup.out", ".coverage", "sub/.coverage", "sub/server.pid"):
        (folder / name).write_text("a line\n")
        assert fingerprint(folder) == clean
    (folder / "changelog").write_text("no log by its name")
    assert fingerprint(folder) != clean
    git(folder, "add", "build.log")
    git(folder, "commit", "-qm", "a log that is kept")
    kept = fingerprint(folder)
    (folder / "build.log").write_text("another line\n")
    assert fingerprint(folder) != kept


def test_where_nobody_can_tell_there_is_no_word(tmp_path: Path) -> None:
    assert fingerprint(tmp_path / "nowhere") == ""


def test_links_deleted_large_and_renamed_files_are_measured_without_following_them(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "large").write_bytes(b"x" * (2 << 20))
    git(folder, "mv", "a file.txt", "b file.txt")
    (folder / ".gitignore").unlink()
    one = fingerprint(folder)
    (folder / "b file.txt").write_text("else")
    assert one
    assert fingerprint(folder) != one


def test_calls_are_told_in_order_with_the_tree_after_those_that_may_have_changed_it(tmp_path: Path) -> None:
    told: list[Report] = []

    async def story() -> None:
        steps = Steps(repository(tmp_path), told.append)
        for number, name in enumerate(("bash", "bash", "Read", "bash")):
            steps.add(ReportToolCall("ada", 1, 1, str(number), name, True, 0.1, "{}", "ok"))
        await steps.settle()
        steps.add(ReportToolCall("ada", 1, 1, "4", "bash", True, 0.1, "{}", "ok"))
        await steps.settle()
        steps.add(ReportToolCall("ada", 1, 1, "5", "Read", True, 0.1, "{}", "ok"))
        await asyncio.sleep(0)

    run(story())
    calls = [call for call in told if isinstance(call, ReportToolCall)]
    assert [call.id for call in calls] == ["0", "1", "2", "3", "4", "5"]
    trees = [call.reading.tree for call in calls if call.reading]
    assert trees[0]
    assert trees[4] == trees[0]
    assert trees[2] == trees[5] == ""


def test_only_what_was_said_before_or_is_chanted_is_told(tmp_path: Path) -> None:
    told: list[Report] = []

    async def story() -> None:
        steps = Steps(tmp_path, told.append)
        steps.say("nobody has begun a turn with it yet")
        steps.end_message()
        steps.place = ("ada", 1, 7)
        for text in ("I look at the parser now.", "ok", "I look at the lexer now.", "I look at the parser now."):
            steps.say(text)
            steps.end_message()
        for _ in range(400):
            steps.say("I will try once more. ")
        await steps.settle()

    run(story())
    assert all(
        isinstance(each, ReportSaidAgain) and (each.agent, each.epoch, each.turn) == ("ada", 1, 7) for each in told
    )
    assert len(told) == 2
