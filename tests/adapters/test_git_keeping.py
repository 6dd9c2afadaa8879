"""A worktree goes only with proof that nothing goes with it."""

import shutil
from pathlib import Path

import pytest

from adapters.git_kit import commit, fingerprint, fsck, make_dirty, make_repository, sh, write
from remuda.git import keeping
from remuda.git.keeping import Kept, Removed, put_branch_away, remove
from remuda.git.repository import Repository, head, open_repository
from remuda.git.worktree import Worktree, find, mark_ready, prepare, write_ready


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return open_repository(make_repository(tmp_path / "project"))


@pytest.fixture
def tree(repository: Repository) -> Worktree:
    return mark_ready(prepare(repository, "t-1", head(repository)))


def kept(repository: Repository) -> str:
    found = remove(repository, "t-1")
    assert isinstance(found, Kept)
    assert find(repository, "t-1") is not None
    return "; ".join(found.why)


def removed(repository: Repository) -> None:
    assert remove(repository, "t-1") == Removed()
    assert not list((repository.state / "worktrees").iterdir())
    assert len(sh(repository.root, "git", "worktree", "list").splitlines()) == 1


def reachable(repository: Repository, wanted: str) -> bool:
    shutil.rmtree(repository.common / "logs")
    sh(repository.root, "git", "gc", "--quiet", "--prune=now")
    return wanted in sh(repository.root, "git", "rev-list", "--all").split()


def test_a_worktree_whose_work_is_on_its_branch_goes_and_the_branch_stays(
    repository: Repository, tree: Worktree
) -> None:
    make_dirty(repository.root)
    before = fingerprint(repository.root)
    tip = commit(tree.path, "Mine", new_txt="new\n")
    removed(repository)
    assert sh(repository.root, "git", "rev-parse", "remuda/t-1") == tip
    assert fingerprint(repository.root) == before
    fsck(repository.root)


def test_done_again_it_does_no_more(repository: Repository, tree: Worktree) -> None:
    removed(repository)
    removed(repository)


def test_one_that_never_was_is_gone(repository: Repository) -> None:
    assert remove(repository, "t-9") == Removed()


def test_changes_and_files_that_are_not_in_git_keep_it(repository: Repository, tree: Worktree) -> None:
    write(tree.path, a_txt="changed\n", new_txt="new\n")
    said = kept(repository)
    assert "changes are not committed: a.txt" in said
    assert "files are not in git: new.txt" in said


def test_only_a_few_of_many_files_are_named(repository: Repository, tree: Worktree) -> None:
    for number in range(20):
        (tree.path / f"{number}").touch()
    assert "and 15 more" in kept(repository)


def test_ignored_files_go_but_for_those_that_may_be_wanted(repository: Repository, tree: Worktree) -> None:
    commit(tree.path, "Ignore", _gitignore="*.o\n.env\nbuild/\n")
    write(tree.path, x_o="object", build__y_o="object", _env="KEY=1\n")
    assert "ignored files may be wanted: .env" in kept(repository)
    write(repository.root, _env="KEY=1\n")  # as in the user's checkout: a copy
    removed(repository)


def test_a_stash_of_it_keeps_it_and_a_stash_of_the_users_does_not(repository: Repository, tree: Worktree) -> None:
    write(repository.root, a_txt="theirs\n")
    sh(repository.root, "git", "stash")
    write(tree.path, a_txt="mine\n")
    sh(tree.path, "git", "stash", "push", "-m", "later")
    assert "stash@{0} On remuda/t-1: later" in kept(repository)
    sh(tree.path, "git", "stash", "drop")
    removed(repository)


def test_an_unfinished_rebase_keeps_it(repository: Repository, tree: Worktree) -> None:
    commit(tree.path, "Mine", a_txt="mine\n")
    commit(repository.root, "Theirs", a_txt="theirs\n")
    sh(tree.path, "sh", "-c", "! git rebase main")
    assert "a rebase is unfinished" in kept(repository)


def test_commits_that_no_branch_holds_keep_it(repository: Repository, tree: Worktree) -> None:
    sh(tree.path, "git", "switch", "-q", "--detach")
    tip = commit(tree.path, "Lost", new_txt="new\n")
    assert f"git branch NAME {tip[:12]}" in kept(repository)
    sh(repository.root, "git", "tag", "found", tip)
    removed(repository)


def test_what_was_amended_and_reset_away_is_kept_by_a_ref(repository: Repository, tree: Worktree) -> None:
    first = commit(tree.path, "First", new_txt="first\n")
    sh(tree.path, "git", "reset", "-q", "--hard", tree.base)
    second = commit(tree.path, "Second", new_txt="second\n")
    sh(tree.path, "git", "commit", "-q", "--amend", "-m", "Third")
    removed(repository)
    shutil.rmtree(repository.common / "logs")
    sh(repository.root, "git", "gc", "--quiet", "--prune=now")
    assert {first, second} <= set(sh(repository.root, "git", "rev-list", "--all").split())


def test_submodules_that_are_checked_out_keep_it(repository: Repository, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    allowed = ("git", "-c", "protocol.file.allow=always", "submodule")
    sh(repository.root, *allowed, "add", "-q", str(other), "lib")
    commit(repository.root, "Submodule")
    tree = mark_ready(prepare(repository, "t-1", head(repository)))
    sh(tree.path, *allowed, "update", "-q", "--init")
    assert "submodules are checked out in it" in kept(repository)


def test_a_crash_after_the_rename_is_seen_through(repository: Repository, tree: Worktree) -> None:
    tree.path.rename(tree.path.with_name(".t-1.going"))
    removed(repository)


def test_a_crash_in_the_middle_of_deleting_is_seen_through(repository: Repository, tree: Worktree) -> None:
    going = tree.path.with_name(".t-1.going")
    tree.path.rename(going)
    sh(repository.root, "git", "worktree", "remove", str(tree.path))
    (going / "a.txt").unlink()
    removed(repository)


def test_one_that_was_never_made_to_its_end_goes(repository: Repository, tree: Worktree) -> None:
    write_ready(tree.path, tree.base, ready=False, whole=False)
    (tree.path / "a.txt").unlink()
    removed(repository)


def test_what_was_written_between_the_look_and_the_rename_brings_it_back(
    repository: Repository, tree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = keeping.why_keep

    def look_and_be_late(*arguments: object) -> tuple[str, ...]:
        found = looked(*arguments)  # type: ignore[arg-type]
        write(tree.path, late_txt="late\n")
        return found

    monkeypatch.setattr(keeping, "why_keep", look_and_be_late)
    assert "late.txt" in kept(repository)
    assert (tree.path / "late.txt").exists()


def test_a_folder_that_is_no_worktree_is_left_alone(repository: Repository) -> None:
    path = repository.state / "worktrees" / "t-1"
    path.mkdir(parents=True)
    (path / "x").touch()
    found = remove(repository, "t-1")
    assert isinstance(found, Kept)
    assert (path / "x").exists()


def test_a_branch_is_put_away_and_its_commits_stay(repository: Repository, tree: Worktree) -> None:
    tip = commit(tree.path, "Mine", new_txt="new\n")
    removed(repository)
    assert put_branch_away(repository, "t-1") == "refs/remuda/tasks/t-1"
    assert put_branch_away(repository, "t-1") == "refs/remuda/tasks/t-1"
    assert "remuda/t-1" not in sh(repository.root, "git", "branch")
    assert reachable(repository, tip)
