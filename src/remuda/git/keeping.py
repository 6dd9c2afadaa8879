"""When a worktree may go: only with proof that nothing goes with it.

Kept, in this sense, is what a branch, a tag or a remote's branch leads to, or a ref of Remuda's own (`refs/remuda/`),
which no list of branches shows and no garbage collection passes over. The stash is not: its entries are dropped as
they are used. What an agent left behind by amending, rebasing or resetting is given such a ref before its worktree
goes, for only the worktree's own log still leads there.

A removal is one rename and then clearing away: a crash in the middle leaves a folder whose name says that it is to go.
"""

import filecmp
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from remuda.git import ask, git, line, names, text
from remuda.git.commit import unfinished
from remuda.git.refs import move
from remuda.git.repository import REGISTER, Repository, commit_of
from remuda.git.worktree import Worktree, branch_of, find, is_half_made, is_registered, place_of

# Ignored by git and yet not to be made anew by a build. A file like its namesake in the user's own checkout may go.
PRECIOUS = (".env", ".env.*", "*.pem", "*.key", "*.sqlite", "*.sqlite3", "*.db", "*.local.*")
KEPT = "refs/remuda/kept"
TASKS = "refs/remuda/tasks"
_LISTED = 5  # names of files in a sentence

_EVERY_KEPT = ("--branches", "--tags", "--remotes", "--glob=refs/remuda/*")


@dataclass(frozen=True, slots=True)
class Removed:
    pass


@dataclass(frozen=True, slots=True)
class Kept:
    why: tuple[str, ...]


def remove(repository: Repository, task: str, precious: Sequence[str] = PRECIOUS) -> Removed | Kept:
    """Remove a task's worktree if nothing can be lost by it; its branch stays. Done again it does no more. Blocks."""
    path = place_of(repository, task)
    going = path.with_name(f".{path.name}.going")
    tree = find(repository, task)
    if tree is not None:
        why = why_keep(repository, tree, precious)
        if why:
            return Kept(why)
        _keep_abandoned(repository, tree)
        path.rename(going)
    elif is_half_made(path):  # nobody has worked in it
        path.rename(going)
    elif path.exists():
        return Kept((f"{path} is no whole worktree; look into it, and remove it yourself",))
    if is_registered(repository, path):
        if (
            going.exists() and not is_half_made(going) and (why := dirt(going))
        ):  # somebody was at work between the look and the rename
            going.rename(path)
            return Kept(why)
        with REGISTER:
            git(repository.root, "worktree", "remove", "--force", "--force", str(path))
    shutil.rmtree(going, ignore_errors=True)
    return Removed()


def why_keep(repository: Repository, tree: Worktree, precious: Sequence[str] = PRECIOUS) -> tuple[str, ...]:
    """Why the worktree must stay; nothing when it may go."""
    middle = unfinished(tree.path)
    reasons = [f"in the worktree {middle}"] if middle else []
    reasons += dirt(tree.path)
    reasons += _precious(repository, tree, precious)
    reasons += _stashed(repository, tree)
    reasons += _submodules(tree)
    if lost := _only_here(repository, line(tree.path, "rev-parse", "HEAD")):
        reasons.append(f"no branch holds its commit {lost[0][:12]}; `git branch NAME {lost[0][:12]}` keeps it")
    return tuple(reasons)


def put_branch_away(repository: Repository, task: str) -> str:
    """Take a task's branch from the list of branches; its commits stay, at the ref that is returned."""
    name, away = f"refs/heads/{branch_of(task)}", f"{TASKS}/{task}"
    tip = commit_of(repository, name)
    if tip:
        move(repository, away, tip)
        git(repository.root, "update-ref", "-d", name, tip)
    return away


# --- what would be lost ---


def dirt(path: Path) -> tuple[str, ...]:
    """What is not in git, in sentences."""
    said = text(git(path, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"))
    entries = [each for each in said.split("\0") if each]
    untracked = [each[3:] for each in entries if each.startswith("??")]
    changed = [each[3:] for each in entries if not each.startswith("??")]
    found = (("changes are not committed", changed), ("files are not in git", untracked))
    return tuple(f"{what}: {_some(which)}" for what, which in found if which)


def _precious(repository: Repository, tree: Worktree, patterns: Sequence[str]) -> list[str]:
    ignored = names(tree.path, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    found = [
        name
        for name in ignored
        if any(fnmatch(Path(name).name, pattern) for pattern in patterns)
        and not _same(tree.path / name, _top(repository) / name)
    ]
    return [f"ignored files may be wanted: {_some(found)}"] if found else []


def _stashed(repository: Repository, tree: Worktree) -> list[str]:
    said = ask(repository.root, "stash", "list", "--format=%gd %gs")
    of_it = re.compile(f"on {re.escape(tree.branch)}:", re.IGNORECASE)
    ours = [each for each in text(said.out).splitlines() if of_it.search(each)]
    return [f"work of it is stashed: {_some(ours)}"] if ours else []


def _submodules(tree: Worktree) -> list[str]:
    listed = text(git(tree.path, "ls-files", "--stage", "-z")).split("\0")
    links = [each.partition("\t")[2] for each in listed if each.startswith("160000 ")]
    filled = [name for name in links if (tree.path / name / ".git").exists()]
    return [f"submodules are checked out in it, with commits of their own: {_some(filled)}"] if filled else []


def _only_here(repository: Repository, *commits: str) -> list[str]:
    """Those commits, and what they lead to, that no kept ref leads to; the newest first."""
    return line(repository.root, "rev-list", *commits, "--not", *_EVERY_KEPT).split() if commits else []


def _keep_abandoned(repository: Repository, tree: Worktree) -> None:
    """Give a ref to each end of what only the logs of the worktree lead to."""
    logged: set[str] = set()
    for log in ("HEAD", f"refs/heads/{tree.branch}"):
        logged |= set(text(ask(tree.path, "reflog", "show", "--format=%H", log, "--").out).split())
    while left := _only_here(repository, *sorted(logged)):
        move(repository, f"{KEPT}/{tree.task}/{left[0]}", left[0])


def _top(repository: Repository) -> Path:
    return Path(line(repository.root, "rev-parse", "--show-toplevel")) if not repository.bare else repository.root


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more
