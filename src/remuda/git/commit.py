"""Is the work of a task in git? And where the agent left some of it uncommitted, the runtime commits it and says so.

The commit is made beside the worktree's index, in a copy, so that neither a lock that a killed git left nor one that
the agent's own git holds stands in the way; the copy then takes the index's place in one step. No hook runs: what must
hold of the work is said by its acceptance commands.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from remuda.git import GitFailed, ask, git, line, names, text
from remuda.git.refs import move
from remuda.git.repository import Repository, is_ancestor
from remuda.git.worktree import Worktree, git_folder

NAME, EMAIL = "Remuda", "remuda@localhost"

_MERGING = "MERGE_HEAD"
TAKING_IN = "remuda.taking-in"  # see update.py

# What git leaves in its folder while it is in the middle of something, and how to go on.
_UNFINISHED = {
    "rebase-merge": ("a rebase", "`git rebase --continue` or `git rebase --abort`"),
    "rebase-apply": ("a rebase", "`git rebase --continue` or `git rebase --abort`"),
    _MERGING: ("a merge", "`git commit` or `git merge --abort`"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "`git cherry-pick --continue` or `git cherry-pick --abort`"),
    "REVERT_HEAD": ("a revert", "`git revert --continue` or `git revert --abort`"),
    "BISECT_LOG": ("a bisection", "`git bisect reset`"),
}
_GITLINK = "160000"
_INDEX = "remuda.index"
_DONE = "remuda: commit what was left"  # in the branch's log, so that a second try knows of the first
_EMPTY_REPOSITORY = "does not have a commit checked out"


@dataclass(frozen=True, slots=True)
class Work:
    """All of it is in git."""

    commit: str
    base: str
    files: tuple[str, ...]
    by_runtime: bool = False  # the agent had left some of it uncommitted
    left_out: tuple[str, ...] = ()  # repositories inside the worktree: they are not the project's


@dataclass(frozen=True, slots=True)
class NoWork:
    why: str  # and what to do, in words for the one who can


def identity(folder: Path) -> dict[str, str]:
    """Variables that make commits possible where git was never told who commits; the user's own go first."""
    missing: dict[str, str] = {}
    for key, value in (("name", NAME), ("email", EMAIL)):
        if ask(folder, "config", f"user.{key}").code:
            missing |= {f"GIT_{who}_{key.upper()}": value for who in ("AUTHOR", "COMMITTER")}
    return missing


def gather(repository: Repository, tree: Worktree, message: str, trailers: Mapping[str, str]) -> Work | NoWork:
    """Commit what is not committed, and tell what the work is. Done again it commits nothing more. It blocks."""
    if why := _why_not(tree):
        return NoWork(why)
    before = line(tree.path, "rev-parse", "HEAD")
    try:
        made, left_out = _write_tree(tree, before)
    except GitFailed as error:
        if _EMPTY_REPOSITORY not in error.said:
            raise
        return NoWork(f"there is an empty git repository inside the worktree; remove it: {error.said}")
    commit, parents = before, _parents(repository, tree, before)
    if len(parents) > 1 or made != line(tree.path, "rev-parse", f"{before}^{{tree}}"):
        commit = _write_commit(tree, made, parents, message, trailers)
        if not move(repository, f"refs/heads/{tree.branch}", commit, before, _DONE):
            return NoWork(f"{tree.branch} moved while its changes were committed; let it stand and report again")
    _settle(tree)
    files = names(tree.path, "diff", "--name-only", "-z", "--no-renames", tree.base, commit)
    if not files:
        return NoWork(
            f"there is no change: {tree.branch} holds the same files as the commit at which the task began. "
            "Do the work in your worktree, or say why none is needed"
        )
    if marks := leftover_marks(tree.path, tree.base, commit):
        return NoWork(f"conflict marks are left in the files; resolve them and report again: {', '.join(marks[:10])}")
    return Work(commit, tree.base, tuple(files), commit != before or _ours(tree), tuple(left_out))


def _parents(repository: Repository, tree: Worktree, head: str) -> list[str]:
    """Two while a merge is under way, unless a crash came after its commit and before the end of it was noted."""
    merging = git_folder(tree.path) / _MERGING
    other = merging.read_text().split()[:1] if merging.exists() else []
    return [head, *(each for each in other if not is_ancestor(repository, each, head))]


def unfinished(path: Path) -> str:
    """What git is in the middle of in a worktree, and how to end it; or nothing."""
    folder = git_folder(path)
    for name, (what, how) in _UNFINISHED.items():
        if (folder / name).exists():
            return f"{what} is unfinished; end it: {how}"
    conflicted = _conflicted(path)
    return f"conflicts are not resolved: {', '.join(conflicted[:10])}; edit and `git add` them" if conflicted else ""


def _conflicted(path: Path) -> list[str]:
    return names(path, "diff", "--name-only", "-z", "--diff-filter=U")


def leftover_marks(folder: Path, base: str, commit: str) -> list[str]:
    """Where the change brought conflict marks with it, as file:line."""
    said = text(ask(folder, "-c", "core.whitespace=-trailing-space", "diff", "--check", base, commit).out)
    return [
        line.partition(": leftover")[0] for line in said.splitlines() if line.endswith(": leftover conflict marker")
    ]


def _why_not(tree: Worktree) -> str:
    if (git_folder(tree.path) / _MERGING).exists():
        if marked := [name for name in _conflicted(tree.path) if _is_marked(tree.path / name)]:
            return f"conflict marks are left in {', '.join(marked[:10])}; resolve them and report again"
    elif why := unfinished(tree.path):
        return f"in {tree.path} {why}"
    at = ask(tree.path, "symbolic-ref", "--quiet", "--short", "HEAD")
    if (now := text(at.out).strip()) != tree.branch:
        where = f"the branch {now}" if now else "no branch"
        return (
            f"the worktree is on {where}, and the work of the task must be on {tree.branch}; bring it there: "
            f"`git switch {tree.branch}`, and `git cherry-pick` what is missing"
        )
    return ""


def _is_marked(path: Path) -> bool:
    return path.is_file() and any(each.startswith(b"<<<<<<< ") for each in path.read_bytes().splitlines())


def _write_tree(tree: Worktree, head: str) -> tuple[str, list[str]]:
    """All that is in the worktree as git would commit it, and what is left out of it."""
    folder = git_folder(tree.path)
    index = folder / _INDEX
    index.with_name(f"{_INDEX}.lock").unlink(missing_ok=True)  # nobody but us uses it, one after the other
    if (folder / "index").exists():
        shutil.copyfile(folder / "index", index)  # it knows which files are unchanged, so they are not read again
    env = {"GIT_INDEX_FILE": str(index)}
    git(tree.path, "add", "--all", "--sparse", env=env, within=600)
    left_out = _leave_out_repositories(tree, head, env)
    return line(tree.path, "write-tree", env=env), left_out


def _settle(tree: Worktree) -> None:
    """The copy becomes the worktree's index, which then agrees with its branch, and a merge is over. Also after a
    crash before this."""
    folder = git_folder(tree.path)
    os.replace(folder / _INDEX, folder / "index")
    for name in (_MERGING, "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", TAKING_IN):
        (folder / name).unlink(missing_ok=True)


def _write_commit(tree: Worktree, made: str, parents: Sequence[str], message: str, trailers: Mapping[str, str]) -> str:
    options = [part for name, value in trailers.items() for part in ("--trailer", f"{name}: {value}")]
    whole = git(
        tree.path, "interpret-trailers", "--if-exists", "addIfDifferent", *options, stdin=f"{message}\n".encode()
    )
    on = [part for each in parents for part in ("-p", each)]
    written = git(tree.path, "commit-tree", made, *on, "-F", "-", stdin=whole, env=identity(tree.path))
    return text(written).strip()


def _leave_out_repositories(tree: Worktree, head: str, env: Mapping[str, str]) -> list[str]:
    """A repository that someone cloned into the worktree would be added as a submodule that nobody can fetch."""
    changed = text(git(tree.path, "diff-index", "--cached", "-z", "--no-renames", head, env=env)).split("\0")
    new = [
        name
        for facts, name in zip(changed[::2], changed[1::2], strict=False)
        if facts.split()[1] == _GITLINK and facts.split()[0] != f":{_GITLINK}"
    ]
    ours = [name for name in new if not _is_declared(tree, name)]
    if ours:
        git(tree.path, "update-index", "--force-remove", "-z", "--stdin", stdin=_joined(ours), env=env)
    return ours


def _is_declared(tree: Worktree, name: str) -> bool:
    if not (tree.path / ".gitmodules").exists():
        return False
    said = ask(tree.path, "config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    return name in [each.partition("\n")[2] for each in text(said.out).split("\0")]


def _joined(found: list[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\0" for name in found)


def _ours(tree: Worktree) -> bool:
    """Whether an earlier try made the newest commit, before a crash kept it from saying so."""
    said = ask(tree.path, "reflog", "show", "-1", "--format=%gs", f"refs/heads/{tree.branch}", "--")
    return text(said.out).strip() == _DONE
