"""Worktrees for tasks, in a real repository whose user is in the middle of things."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters.git_kit import commit, fingerprint, fsck, make_dirty, make_repository, sh, write
from remuda.domain.errors import Invalid, Refused
from remuda.git import GitFailed
from remuda.git.repository import Repository, head, open_repository
from remuda.git.worktree import Worktree, branch_of, find, git_folder, mark_ready, prepare


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return open_repository(make_repository(tmp_path / "project"))


def prepared(repository: Repository, task: str = "t-1") -> Worktree:
    return mark_ready(prepare(repository, task, head(repository)))


def test_a_task_gets_a_worktree_of_its_own_on_a_branch_of_its_own(repository: Repository) -> None:
    tree = prepared(repository)
    assert tree.path == repository.root / ".remuda" / "worktrees" / "t-1"
    assert sh(tree.path, "git", "branch", "--show-current") == "remuda/t-1"
    assert (tree.path / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert find(repository, "t-1") == tree
    assert sh(tree.path, "git", "status", "--porcelain") == ""


def test_nothing_of_the_users_is_touched_and_no_hook_of_theirs_runs(repository: Repository) -> None:
    make_dirty(repository.root)
    before = fingerprint(repository.root)
    tree = prepared(repository)
    assert (tree.path / "b.txt").read_text() == "b\n"  # what the user has staged is theirs
    assert not (repository.root / "hooks-ran").exists()
    assert fingerprint(repository.root) == before
    fsck(repository.root)


def test_to_prepare_again_finds_what_is_there_with_the_work_in_it(repository: Repository) -> None:
    tree = prepared(repository)
    write(tree.path, half_txt="half done\n")
    assert prepare(repository, "t-1", head(repository)) == tree
    assert (tree.path / "half.txt").exists()


def test_work_goes_on_from_the_branch_when_the_worktree_is_gone(repository: Repository) -> None:
    tree = prepared(repository)
    tip = commit(tree.path, "Half", half_txt="half\n")
    sh(repository.root, "git", "worktree", "remove", str(tree.path))
    commit(repository.root, "Meanwhile", other_txt="other\n")
    again = prepare(repository, "t-1", head(repository))
    assert sh(again.path, "git", "rev-parse", "HEAD") == tip
    assert again.base == tree.base
    assert not again.ready


def test_a_project_below_the_top_of_its_repository_is_found_in_the_worktree(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "project")
    repository = open_repository(root / "src")
    tree = prepared(repository)
    assert tree.cwd == tree.path / "src"
    assert (tree.cwd / "c.txt").exists()


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a..b", "a.lock", "-x", "a b", "x\n", "merged", "é", "a."]
)
def test_a_name_that_could_lead_elsewhere_is_refused(repository: Repository, name: str) -> None:
    with pytest.raises(Invalid):
        prepare(repository, name, head(repository))


# --- crashes ---


def test_a_checkout_that_was_killed_halfway_is_made_anew(repository: Repository) -> None:
    """The repository's own filter kills git in the middle of the checkout, with SIGKILL, once."""
    killer = repository.root.parent / "killer"
    killer.write_text(f"#!/bin/sh\nif mkdir '{killer}.once' 2>/dev/null; then kill -9 $PPID; fi\ncat\n")
    killer.chmod(killer.stat().st_mode | stat.S_IXUSR)
    commit(repository.root, "Filter", _gitattributes="b.txt filter=killer\n")
    sh(repository.root, "git", "config", "filter.killer.smudge", str(killer))
    with pytest.raises(GitFailed):
        prepare(repository, "t-1", head(repository))
    tree = prepared(repository)
    assert sorted(os.listdir(tree.path)) == [".git", ".gitattributes", "a.txt", "b.txt", "src"]
    assert sh(tree.path, "git", "status", "--porcelain") == ""
    assert tree.notes == ()


def test_a_crash_after_the_branch_and_before_the_checkout(repository: Repository) -> None:
    sh(repository.root, "git", "update-ref", "refs/heads/remuda/t-1", head(repository))
    assert prepared(repository).base == head(repository)


def test_a_crash_after_the_checkout_and_before_it_was_written_down(repository: Repository) -> None:
    tree = prepare(repository, "t-1", head(repository))
    (git_folder(tree.path) / "remuda.json").unlink()
    assert prepare(repository, "t-1", head(repository)) == tree


def test_a_crash_during_the_set_up_lets_it_be_done_again(repository: Repository) -> None:
    assert not prepare(repository, "t-1", head(repository)).ready
    assert not prepare(repository, "t-1", head(repository)).ready
    mark_ready(prepare(repository, "t-1", head(repository)))
    assert prepare(repository, "t-1", head(repository)).ready


def test_work_whose_beginning_was_never_written_down_is_set_aside_and_not_deleted(repository: Repository) -> None:
    tree = prepared(repository)
    write(tree.path, precious_txt="hours of work\n")
    (git_folder(tree.path) / "remuda.json").unlink()
    again = prepare(repository, "t-1", head(repository))
    aside = tree.path.with_name(".t-1.aside-1")
    assert (aside / "precious.txt").read_text() == "hours of work\n"
    assert str(aside) in again.notes[0]
    assert not (again.path / "precious.txt").exists()


def test_work_in_a_worktree_that_git_was_made_to_forget_is_set_aside(repository: Repository) -> None:
    tree = prepared(repository)
    write(tree.path, precious_txt="hours of work\n")
    tree.path.rename(tree.path.with_name("elsewhere"))
    sh(repository.root, "git", "worktree", "prune")
    tree.path.with_name("elsewhere").rename(tree.path)
    again = prepare(repository, "t-1", head(repository))
    assert (tree.path.with_name(".t-1.aside-1") / "precious.txt").exists()
    assert again.notes


def test_a_lock_that_a_killed_git_left_is_cleared_away(repository: Repository) -> None:
    tree = prepared(repository)
    (git_folder(tree.path) / "index.lock").touch()
    prepare(repository, "t-1", head(repository))
    sh(tree.path, "git", "add", "--all")


def test_many_are_made_at_once_without_getting_in_each_others_way(repository: Repository) -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda number: prepared(repository, f"t-{number}"), range(16)))
    assert len({tree.path for tree in trees}) == 16
    assert all(sh(tree.path, "git", "status", "--porcelain") == "" for tree in trees)


def test_worktrees_of_the_users_that_are_away_today_stay_known(repository: Repository, tmp_path: Path) -> None:
    sh(repository.root, "git", "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "stick"))
    (tmp_path / "stick").rename(tmp_path / "unplugged")
    prepared(repository)
    assert str(tmp_path / "stick") in sh(repository.root, "git", "worktree", "list")


# --- repositories of every kind ---


def test_without_a_repository_it_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="git init"):
        open_repository(tmp_path)


def test_without_a_first_commit_it_says_how_to_make_one(tmp_path: Path) -> None:
    sh(tmp_path, "git", "init", "--quiet")
    with pytest.raises(Refused, match=r"no commit yet.*--allow-empty"):
        head(open_repository(tmp_path))


def test_a_detached_head_is_a_place_to_begin(repository: Repository) -> None:
    sh(repository.root, "git", "checkout", "--quiet", "--detach")
    assert prepared(repository).base == head(repository)


def test_a_bare_repository_has_worktrees_too(repository: Repository, tmp_path: Path) -> None:
    sh(tmp_path, "git", "clone", "--quiet", "--bare", str(repository.root), "bare.git")
    bare = open_repository(tmp_path / "bare.git")
    assert bare.bare
    assert (prepared(bare).path / "a.txt").exists()


def test_a_shallow_repository_works_and_is_said_to_be_so(repository: Repository, tmp_path: Path) -> None:
    commit(repository.root, "Two", two_txt="2\n")
    sh(tmp_path, "git", "clone", "--quiet", "--depth=1", f"file://{repository.root}", "shallow")
    tree = prepare(open_repository(tmp_path / "shallow"), "t-1", "HEAD")
    assert "shallow" in tree.notes[0]


def test_a_sparse_checkout_stays_sparse_in_the_worktree(repository: Repository) -> None:
    sh(repository.root, "git", "sparse-checkout", "set", "src")
    before = fingerprint(repository.root)
    tree = prepared(repository)
    assert (tree.path / "src" / "c.txt").exists()
    assert fingerprint(repository.root) == before


def test_submodules_are_left_empty_and_it_is_said(repository: Repository, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    sh(repository.root, "git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    commit(repository.root, "Submodule")
    tree = prepare(repository, "t-1", head(repository))
    assert "submodules" in tree.notes[0]
    assert list((tree.path / "lib").iterdir()) == []


def test_a_filter_that_is_not_installed_is_named(repository: Repository) -> None:
    commit(repository.root, "Large files", _gitattributes="*.bin filter=lfs\n", x_bin="pointer\n")
    sh(repository.root, "git", "config", "filter.lfs.smudge", "git-lfs-that-is-not-there smudge -- %f")
    sh(repository.root, "git", "config", "filter.lfs.required", "true")
    with pytest.raises(Refused, match="git-lfs"):
        prepare(repository, "t-1", head(repository))


def test_file_names_may_hold_anything(repository: Repository) -> None:
    name = os.fsdecode(b"new\nline \xff\t'\"")
    (repository.root / name).write_text("odd\n")
    commit(repository.root, "Odd")
    assert (prepared(repository).path / name).read_text() == "odd\n"


def test_a_branch_named_like_our_folder_of_branches_is_in_the_way(repository: Repository) -> None:
    sh(repository.root, "git", "branch", "remuda")
    with pytest.raises(Refused, match="git branch -m remuda"):
        prepare(repository, "t-1", head(repository))


def test_a_branch_that_the_user_is_on_is_in_the_way(repository: Repository) -> None:
    sh(repository.root, "git", "switch", "--quiet", "--create", branch_of("t-1"))
    with pytest.raises(Refused, match="checked out elsewhere"):
        prepare(repository, "t-1", head(repository))


def test_what_is_written_down_of_it_is_whole_or_not_there(repository: Repository) -> None:
    tree = prepared(repository)
    file = git_folder(tree.path) / "remuda.json"
    assert json.loads(file.read_text()) == {"base": tree.base, "ready": True, "whole": True}
    file.write_text('{"base"')
    assert prepare(repository, "t-1", head(repository)).base == tree.base
