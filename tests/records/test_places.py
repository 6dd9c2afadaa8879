"""Repositories in every state that people have them in."""

import os
import time
from pathlib import Path

import pytest

from records.kit import all_valid, git, record, repository, verified, write
from remuda.records.begin import Asked, begin, end
from remuda.records.journal import OpenTurn, open_turns
from remuda.records.keeping import Keeping
from remuda.records.publish import publish
from remuda.records.recover import recover
from remuda.records.repository import NoRepository, find_repository

WAYS = ["beside", "files", "branch"]


@pytest.mark.parametrize("way", WAYS)
def test_an_unborn_branch(tmp_path: Path, way: str) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path, "there.txt", "before\n")
    record(tmp_path, keeping=Keeping(way))
    record(tmp_path, keeping=Keeping(way))
    assert all_valid(tmp_path) == 2
    assert verified(tmp_path)[0].manifest is not None


def test_an_empty_repository_in_which_nothing_happens(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    made = record(tmp_path, lambda _: None)
    assert made.manifest.outputs == []
    assert all_valid(tmp_path) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_detached_head(tmp_path: Path, way: str) -> None:
    top = repository(tmp_path / "r")
    git(top, "checkout", "-q", "--detach")
    made = record(top, keeping=Keeping(way))
    assert made.manifest.provenance.branch == ""
    assert all_valid(top) == 1


def test_a_bare_repository_and_no_repository_are_refused_with_the_reason(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(NoRepository, match="bare"):
        find_repository(str(tmp_path / "bare"))
    (tmp_path / "none").mkdir()
    with pytest.raises(NoRepository, match="git init"):
        find_repository(str(tmp_path / "none"))


def test_a_broken_link_to_a_repository_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    with pytest.raises(NoRepository, match="nowhere"):
        find_repository(str(tmp_path))


def test_a_subdirectory_records_into_the_one_ledger_of_the_repository(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    (top / "deep/er").mkdir(parents=True)
    turn = begin(find_repository(str(top / "deep/er")), Keeping("files"), Asked("Do it.", "claude"))
    end(turn, "completed")
    publish(turn)
    assert (top / "ai/agentic-pipeline/turns/turn-1/manifest.json").is_file()
    assert not (top / "deep/er/ai").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_repository_that_cannot_be_written_is_refused_for_someone_who_may_not(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    (top / ".git").chmod(0o500)
    try:
        with pytest.raises(OSError, match="remuda"):
            begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    finally:
        (top / ".git").chmod(0o700)


def test_a_repository_whose_folder_of_ours_cannot_be_made_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    (top / ".git/remuda").write_text("in the way\n")
    with pytest.raises(OSError, match="remuda"):
        begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    assert git(top, "for-each-ref", "refs/tags", "refs/turns") == ""


def test_a_submodule_is_a_repository_of_its_own_and_a_commit_to_the_one_around_it(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"lib.txt": "1\n"})
    top = repository(tmp_path / "r")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(top, "commit", "-q", "-m", "with a library")
    inner = record(top / "lib")
    assert inner.manifest.turn_id == 1
    assert all_valid(top / "lib") == 1

    def move(_: OpenTurn) -> None:
        git(top / "lib", "commit", "-q", "--allow-empty", "-m", "moved")

    outer = record(top, move)
    assert [(each.path, each.mode, each.change) for each in outer.manifest.outputs] == [("lib", "160000", "modified")]
    assert all_valid(top) == 1


def test_an_embedded_repository_without_a_commit_does_not_cost_the_record(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "init", "-q", "inner")
    made = record(top)
    assert "work.txt" in [each.path for each in made.manifest.outputs]
    assert "inner" in made.manifest.provenance.unread


def test_a_conflicted_merge_is_recorded_as_it_lies_and_left_as_it_is(tmp_path: Path) -> None:
    top = repository(tmp_path / "r", {"f": "1\n"})
    git(top, "checkout", "-q", "-b", "other")
    write(top, "f", "2\n")
    git(top, "commit", "-qam", "two")
    git(top, "checkout", "-q", "main")
    write(top, "f", "3\n")
    git(top, "commit", "-qam", "three")
    with pytest.raises(AssertionError, match="merge"):
        git(top, "merge", "other")
    unmerged = git(top, "ls-files", "--unmerged")
    record(top)
    assert git(top, "ls-files", "--unmerged") == unmerged
    assert all_valid(top) == 1


def test_a_branch_named_turn_is_no_obstacle(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "branch", "turn")
    git(top, "branch", "-m", "turn", "turn/1")
    record(top)
    assert all_valid(top) == 1


def test_a_tag_named_turn_is_left_alone_and_once_it_is_gone_the_record_is_completed(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "tag", "turn")
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    end(turn, "completed")
    made = publish(turn)
    assert made is not None
    assert "rename it" in made.failed[0]
    assert [each.findings.get("unfinished") for each in verified(top)] == ["it has no tag here"]
    git(top, "tag", "renamed", "turn")
    git(top, "tag", "-d", "turn")
    (again,) = recover(find_repository(str(top)), lambda _: False)
    assert (again.failed, again.commit) == ([], made.commit)
    assert all_valid(top) == 1


def test_an_existing_tag_of_the_next_number_is_never_moved(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "tag", "turn/1", "-m", "mine")
    mine = git(top, "rev-parse", "turn/1")
    assert record(top).manifest.turn_id == 2
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    git(top, "tag", f"turn/{turn.number}", "-m", "taken meanwhile")
    taken = git(top, "rev-parse", f"turn/{turn.number}")
    end(turn, "completed")
    made = publish(turn)
    assert made is not None
    assert "left alone" in made.failed[0]
    assert (git(top, "rev-parse", "turn/1"), git(top, "rev-parse", f"turn/{turn.number}")) == (mine, taken)


def test_a_clock_that_goes_back_costs_no_order_and_no_negative_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = repository(tmp_path / "r")
    turn = begin(find_repository(str(top)), Keeping(), Asked("Do it.", "claude"))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 86_400)
    end(turn, "completed")
    made = publish(turn)
    assert made is not None
    origin = made.manifest.provenance
    assert origin.elapsed_seconds >= 0
    assert origin.finished_at >= origin.started_at
    assert all_valid(top) == 1


def test_a_work_tree_that_is_gone_at_the_end_leaves_a_record_all_the_same(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    git(top, "worktree", "add", "-q", str(tmp_path / "side"), "-b", "side")
    begin(find_repository(str(tmp_path / "side")), Keeping("files"), Asked("Do it.", "claude"))
    git(top, "worktree", "remove", "--force", str(tmp_path / "side"))
    here = find_repository(str(top))
    (made,) = recover(here, lambda _: True)
    assert (made.failed, made.manifest.status) == ([], "interrupted")
    assert "could not be read" in made.manifest.provenance.unread
    assert open_turns(here) == []
    assert all_valid(top) == 1


def test_a_file_that_cannot_be_read_does_not_cost_the_record(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    os.mkfifo(top / "pipe")
    record(top)
    assert all_valid(top) == 1


def test_a_file_that_was_forced_in_although_ignored_counts_as_soon_as_it_is_tracked(tmp_path: Path) -> None:
    top = repository(tmp_path / "r", {".gitignore": "*.log\n", "a": "a\n"})
    record(top)
    write(top, "kept.log", "1\n")
    git(top, "add", "-f", "kept.log")
    git(top, "commit", "-q", "-m", "keep it")
    made = record(top, lambda _: write(top, "kept.log", "2\n"))
    assert [each.path for each in made.manifest.outputs] == ["kept.log"]


def test_a_lock_that_a_killed_git_left_on_the_private_index_is_cleared(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top)
    (top / ".git/remuda/index.lock").write_text("")
    record(top)
    assert all_valid(top) == 2


def test_a_private_index_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top)
    (top / ".git/remuda/index").write_bytes(b"nonsense")
    record(top)
    assert all_valid(top) == 2


def test_a_repository_with_sha256_ids(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256")
    write(tmp_path, "a", "a\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    record(tmp_path, keeping=Keeping("branch"))
    record(tmp_path, keeping=Keeping("beside"))
    assert all_valid(tmp_path) == 2
