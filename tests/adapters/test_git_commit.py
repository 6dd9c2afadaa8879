"""Is the work in git? The runtime commits what the agent left, and says so."""

import os
from pathlib import Path

import pytest

from adapters.git_kit import commit, fingerprint, fsck, make_dirty, make_repository, sh, write
from remuda.git.commit import NoWork, Work, gather, identity
from remuda.git.repository import Repository, head, open_repository
from remuda.git.worktree import Worktree, git_folder, mark_ready, prepare

TRAILERS = {"Remuda-Task": "t-1", "Remuda-Agent": "worker-1"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return open_repository(make_dirty(make_repository(tmp_path / "project")))


@pytest.fixture
def tree(repository: Repository) -> Worktree:
    return mark_ready(prepare(repository, "t-1", head(repository)))


def gathered(tree: Worktree) -> Work:
    work = gather(open_repository(tree.path.parents[2]), tree, "Add a limit", TRAILERS)
    assert isinstance(work, Work), work
    return work


def refused(tree: Worktree) -> str:
    work = gather(open_repository(tree.path.parents[2]), tree, "Add a limit", TRAILERS)
    assert isinstance(work, NoWork), work
    return work.why


def test_what_the_agent_committed_is_taken_as_it_is(tree: Worktree) -> None:
    tip = commit(tree.path, "Mine", new_txt="new\n")
    assert gathered(tree) == Work(tip, tree.base, ("new.txt",), by_runtime=False)


def test_what_the_agent_left_is_committed_and_it_is_said(repository: Repository, tree: Worktree) -> None:
    before = fingerprint(repository.root)
    (tree.path / "a.txt").unlink()
    write(tree.path, b_txt="changed\n", new_txt="new\n", noise_log="ignored")
    (tree.path / "odd\nname").write_text("odd")
    work = gathered(tree)
    assert work.by_runtime
    assert set(work.files) == {"a.txt", "b.txt", "new.txt", "odd\nname", "noise.log"}
    said = sh(tree.path, "git", "log", "-1", "--format=%an <%ae>%n%B", work.commit)
    assert said == "Una User <una@example.org>\nAdd a limit\n\nRemuda-Task: t-1\nRemuda-Agent: worker-1"
    assert sh(tree.path, "git", "status", "--porcelain") == ""
    assert sh(tree.path, "git", "branch", "--show-current") == "remuda/t-1"
    assert fingerprint(repository.root) == before
    fsck(repository.root)


def test_done_again_nothing_more_is_committed_and_the_same_is_said(tree: Worktree) -> None:
    write(tree.path, new_txt="new\n")
    first = gathered(tree)
    assert gathered(tree) == first


def test_a_crash_between_the_commit_and_the_index_is_mended(tree: Worktree) -> None:
    old = (git_folder(tree.path) / "index").read_bytes()
    write(tree.path, new_txt="new\n")
    first = gathered(tree)
    (git_folder(tree.path) / "index").write_bytes(old)
    assert gathered(tree) == first
    assert sh(tree.path, "git", "status", "--porcelain") == ""


def test_a_lock_left_by_a_killed_git_is_not_in_the_way(tree: Worktree) -> None:
    (git_folder(tree.path) / "index.lock").touch()
    write(tree.path, new_txt="new\n")
    assert gathered(tree).by_runtime


def test_it_commits_where_git_was_never_told_who_commits(
    repository: Repository, tree: Worktree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sh(repository.root, "git", "config", "--unset", "user.name")
    sh(repository.root, "git", "config", "--unset", "user.email")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(tree.path, new_txt="new\n")
    work = gathered(tree)
    assert sh(tree.path, "git", "log", "-1", "--format=%an <%ae>", work.commit) == "Remuda <remuda@localhost>"


def test_the_users_name_goes_first(repository: Repository) -> None:
    assert identity(repository.root) == {}


def test_no_change_is_no_work(tree: Worktree) -> None:
    assert "there is no change" in refused(tree)


def test_a_change_that_was_taken_back_is_no_work(tree: Worktree) -> None:
    commit(tree.path, "There", new_txt="new\n")
    (tree.path / "new.txt").unlink()
    commit(tree.path, "and back")
    assert "there is no change" in refused(tree)


def test_an_unfinished_merge_or_rebase_goes_back_with_what_to_do(repository: Repository, tree: Worktree) -> None:
    commit(tree.path, "Mine", a_txt="mine\n")
    sh(tree.path, "git", "switch", "-q", "-c", "other", tree.base)
    commit(tree.path, "Other", a_txt="other\n")
    sh(tree.path, "git", "switch", "-q", tree.branch)
    sh(tree.path, "sh", "-c", "! git merge other")
    assert "conflict marks are left in a.txt" in refused(tree)
    sh(tree.path, "git", "merge", "--abort")
    sh(tree.path, "sh", "-c", "! git rebase other")
    assert "a rebase is unfinished" in refused(tree)
    sh(tree.path, "git", "rebase", "--abort")
    assert gathered(tree).files == ("a.txt",)


def test_conflict_marks_are_no_work(tree: Worktree) -> None:
    commit(tree.path, "Resolved?", a_txt="one\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> main\n")
    assert "a.txt:2" in refused(tree)


def test_work_on_another_branch_or_on_none_goes_back(tree: Worktree) -> None:
    sh(tree.path, "git", "switch", "-q", "--detach")
    commit(tree.path, "Lost", new_txt="new\n")
    assert "on no branch" in refused(tree)
    sh(tree.path, "git", "switch", "-q", "-c", "mine")
    assert "on the branch mine" in refused(tree)


def test_a_repository_cloned_into_the_worktree_does_not_become_a_submodule(tree: Worktree, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    sh(tree.path, "git", "clone", "-q", str(other), "vendor")
    write(tree.path, new_txt="new\n")
    work = gathered(tree)
    assert work.left_out == ("vendor",)
    assert work.files == ("new.txt",)


def test_an_empty_repository_in_the_worktree_goes_back(tree: Worktree) -> None:
    os.mkdir(tree.path / "vendor")
    sh(tree.path / "vendor", "git", "init", "-q")
    assert "empty git repository" in refused(tree)


def test_a_declared_submodule_is_committed(tree: Worktree, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    sh(tree.path, "git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    assert set(gathered(tree).files) == {".gitmodules", "lib"}
