"""A worktree for each task: `.remuda/worktrees/<task>`, on a branch `remuda/<task>` of its own.

Making one takes several steps and a crash may come between any two. So a file in git's own folder for the worktree
says how far it came: at first that its files are being checked out, and then that they are there, and what is in there
is somebody's work. Whatever is found where a worktree should be, and is not known to be worthless, is set aside and
never deleted.

The user's checkout, index, stash, branches, hooks and settings are not touched: a branch is made by its ref, without
tracking, and git's list of worktrees is never pruned, for the user may have some on a disk that is not there today.
"""

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from remuda.domain.errors import Conflict, Invalid, Refused
from remuda.git import GitFailed, ask, git, text
from remuda.git.locks import clear_stale_of
from remuda.git.refs import move
from remuda.git.repository import NOTHING, REGISTER, Entry, Repository, commit_of, worktrees

PREFIX = "remuda/"  # of every branch that Remuda makes
MERGED = "merged"  # remuda/merged: what was merged and the user has not taken yet
FOLDER = "worktrees"
STARTED = "remuda.json"  # in git's folder of the worktree

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,79}")
_FILTER = re.compile(r"(?:smudge|external) filter '?(.+?)'? failed|(\S+): (?:command )?not found")


@dataclass(frozen=True, slots=True)
class Worktree:
    task: str
    path: Path
    cwd: Path  # where the project is in it
    base: str  # the commit at which the task began
    ready: bool = False  # set up: an agent may begin, or has begun
    notes: tuple[str, ...] = ()  # what the user should know

    @property
    def branch(self) -> str:
        return branch_of(self.task)


def branch_of(task: str) -> str:
    if not _NAME.fullmatch(task) or task.endswith(".lock") or task == MERGED:
        raise Invalid(f"{task!r} cannot name a branch; use letters, digits, and . _ - between them")
    return PREFIX + task


def place_of(repository: Repository, task: str) -> Path:
    branch_of(task)
    return repository.state / FOLDER / task


def find(repository: Repository, task: str) -> Worktree | None:
    """The worktree of a task, when it is whole."""
    path = place_of(repository, task)
    if _entry(repository, path) is None or not path.is_dir():
        return None
    return _read(repository, task)


def is_registered(repository: Repository, path: Path) -> bool:
    return _entry(repository, path) is not None


def prepare(repository: Repository, task: str, start: str) -> Worktree:
    """Make the worktree from a commit, or find what an earlier try left of it. When it is not `ready` it must still be
    set up, and `mark_ready` called. It blocks."""
    path = place_of(repository, task)
    entry = _entry(repository, path)
    found = _read(repository, task) if entry and path.is_dir() else None
    if found is not None:
        clear_stale_of(git_folder(path), path)
        return found
    aside = _clear(repository, task, entry)
    base = _make_branch(repository, task, start)
    if not path.exists():
        _register(repository, path, branch_of(task), base)
    _check_out(path)
    write_ready(path, base, ready=False)
    made = _read(repository, task)
    assert made is not None
    return replace(made, notes=(*aside, *_notes(repository, path)))


def mark_ready(tree: Worktree) -> Worktree:
    write_ready(tree.path, tree.base, ready=True)
    return replace(tree, ready=True)


def git_folder(path: Path) -> Path:
    """Where git keeps the index and HEAD of a worktree: the worktree says so itself."""
    try:
        kind, _, folder = (path / ".git").read_text().rstrip("\n").partition(": ")
    except OSError as error:
        raise Refused(f"{path} is no worktree: {error.strerror}") from error
    if kind != "gitdir":
        raise Refused(f"{path} is no worktree: its .git says {kind[:40]!r}")
    return path / folder


# --- one step each ---


def _clear(repository: Repository, task: str, entry: Entry | None) -> tuple[str, ...]:
    """Make room for the checkout, unless one is there that only has to be seen through."""
    path = place_of(repository, task)
    worthless = not path.exists() or not any(path.iterdir())
    if entry and path.is_dir():
        worthless = entry.locked == "initializing"  # git itself was killed in the middle of making it
        if not worthless and (_started(path) is not None or _is_clean(path)):
            return ()
    aside = () if worthless else (f"what was at {path} is now at {_set_aside(path)}",)
    if entry:
        _unregister(repository, path)
    if path.exists():
        shutil.rmtree(path)
    return aside


def _unregister(repository: Repository, path: Path) -> None:
    with REGISTER:
        git(repository.root, "worktree", "remove", "--force", "--force", str(path))


def _set_aside(path: Path) -> Path:
    for number in range(1, 1000):
        aside = path.with_name(f".{path.name}.aside-{number}")
        with suppress(OSError):
            path.rename(aside)
            return aside
    raise Refused(f"{path} holds what Remuda did not put there; move it away")


def _make_branch(repository: Repository, task: str, start: str) -> str:
    """The commit at which the task begins; its branch may have gone on from there in an earlier worktree."""
    branch = branch_of(task)
    tip = commit_of(repository, f"refs/heads/{branch}")
    if tip:
        shared = ask(repository.root, "merge-base", start, tip)
        return text(shared.out).strip() or tip
    try:
        if not move(repository, f"refs/heads/{branch}", start, NOTHING, f"remuda: begin {task}"):
            raise Conflict(f"somebody made the branch {branch} at the same moment")
    except GitFailed as error:
        if "refs/heads/remuda'" in error.said:
            raise Refused(
                f"the branch `remuda` stands where Remuda's branches go ({branch}); rename it: "
                "`git branch -m remuda another-name`"
            ) from error
        raise
    return start


def _register(repository: Repository, path: Path, branch: str, base: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with REGISTER:
            git(repository.root, "worktree", "add", "--quiet", "--no-checkout", str(path), branch)
    except GitFailed as error:
        if "already checked out" in error.said or "already used by worktree" in error.said:
            raise Refused(
                f"{branch} is checked out elsewhere ({error.said}); leave it there: `git switch -`"
            ) from error
        raise
    write_ready(path, base, ready=False, whole=False)


def _check_out(path: Path) -> None:
    """Nobody has worked in it yet, so this may be done again."""
    clear_stale_of(git_folder(path), path)
    try:
        git(path, "reset", "--quiet", "--hard", within=1800)
    except GitFailed as error:
        if found := _FILTER.search(error.said):
            raise Refused(
                f"the files cannot be checked out: the filter {found[1] or found[2]!r} of this repository does not "
                f"work here; install it (git-lfs?) and see that `git checkout` works: {error.said[-300:]}"
            ) from error
        raise


def _is_clean(path: Path) -> bool:
    return not git(path, "status", "--porcelain", "-z", "--untracked-files=all")


def _notes(repository: Repository, path: Path) -> tuple[str, ...]:
    notes = []
    if (path / ".gitmodules").exists():
        notes.append("submodules are not checked out in worktrees; let the set-up command do it, if they are needed")
    if repository.shallow:
        notes.append("the repository is shallow: what happened before its first commit cannot be seen")
    return tuple(notes)


# --- how far it came ---


def _entry(repository: Repository, path: Path) -> Entry | None:
    wanted = os.path.realpath(path)
    return next((each for each in worktrees(repository) if os.path.realpath(each.path) == wanted), None)


def _read(repository: Repository, task: str) -> Worktree | None:
    """Nothing while its files are being checked out."""
    path = place_of(repository, task)
    started = _started(path)
    if started is None or not started["whole"]:
        return None
    return Worktree(task, path, path / repository.prefix, str(started["base"]), bool(started["ready"]))


def is_ready(path: Path) -> bool:
    started = _started(path)
    return started is not None and bool(started["ready"])


def is_half_made(path: Path) -> bool:
    """Its files were still being checked out when something stopped that."""
    started = _started(path)
    return started is not None and not started["whole"]


def _started(path: Path) -> dict[str, object] | None:
    try:
        said = json.loads((git_folder(path) / STARTED).read_bytes())
        return {name: said[name] for name in ("base", "ready", "whole")}
    except (OSError, ValueError, KeyError, TypeError, Refused):
        return None


def write_ready(path: Path, base: str, *, ready: bool, whole: bool = True) -> None:
    """At once or not at all."""
    file = git_folder(path) / STARTED
    new = file.with_suffix(".new")
    with new.open("w") as out:
        json.dump({"base": base, "ready": ready, "whole": whole}, out)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
