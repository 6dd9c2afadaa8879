"""What an agent began from and what it left, in git: under refs of our own, beside everything that is the user's.

`refs/remuda/starts/AGENT` is the tree that it found where it works. `refs/remuda/bodies/AGENT` is a commit of what
there was after its last session, on top of a commit of what it began from; no history of the user's is part of it. The
refs keep both from being collected, until the agent is buried.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from remuda.domain.body import Begun
from remuda.domain.effects import KeepWork
from remuda.domain.errors import EffectFailed
from remuda.effects.places import Places
from remuda.git import GitFailed, ask, git, line, text
from remuda.git.commit import EMAIL, NAME
from remuda.git.keeping import TASKS
from remuda.git.locks import clear_stale
from remuda.git.worktree import branch_of
from remuda.records.repository import NoRepository, Repository, find_repository
from remuda.records.snapshot import SnapshotFailed, snapshot

log = logging.getLogger("remuda.bodies")

STARTS = "refs/remuda/starts"
BODIES = "refs/remuda/bodies"
_DEPTH = 3  # of a worktree below the root: .remuda/worktrees/TASK

NEVER_BEGAN = "no session of it ever started"
UNKNOWN = "what it began from is not known: the work tree could not be read when it started"


@dataclass(frozen=True, slots=True)
class Yard:
    """Where a project's agents work: its root, and the folder of the turn records, which are nobody's work."""

    root: Path
    records: str


def repository_of(yard: Yard, folder: str) -> Repository:
    """Of a place where an agent works. A worktree that is gone is not found in the repository around it."""
    found = find_repository(str(yard.root / folder))
    if folder and Path(found.top) != _top(yard, folder):
        raise NoRepository(f"the worktree {folder} is gone")
    return found


def _top(yard: Yard, folder: str) -> Path:
    """Of the worktree that a folder is in, which lies deeper where the project is not at the top of its repository."""
    return yard.root.resolve().joinpath(*Path(folder).parts[:_DEPTH])


async def begin(yard: Yard, places: Places, folder: str, agent: str) -> str:
    """The tree that an agent finds; empty where nobody can tell, which its body will say."""
    try:
        repository = repository_of(yard, folder)
        tree = await places.look(folder, lambda: snapshot(repository, yard.records).tree)
        await asyncio.to_thread(point, repository, f"{STARTS}/{agent}", tree)
    except NoRepository:
        return ""
    except (SnapshotFailed, EffectFailed, OSError) as error:
        log.warning("what %s begins from is not known: %s", agent, error)
        return ""
    return tree


async def keep(yard: Yard, places: Places, effect: KeepWork, now: float) -> tuple[str, str]:
    """The commit of what an agent has left, or why there is none. Done again for the same session it changes nothing,
    whatever has become of the files meanwhile."""
    try:
        repository = find_repository(str(yard.root))
    except NoRepository as why:
        return "", str(why)
    begun = effect.begun
    if begun is None or not begun.tree:
        return "", UNKNOWN if begun else NEVER_BEGAN
    found = await asyncio.to_thread(_found, repository, effect)
    if found:
        return found, ""
    try:
        end = await places.look(begun.folder, lambda: _tree_now(yard, repository, begun))
    except SnapshotFailed as error:
        raise EffectFailed(f"the work of {effect.agent} could not be kept: {error}") from error
    if not end:
        return "", f"the worktree {begun.folder} is gone, and its branch with it"
    return await asyncio.to_thread(_write, repository, effect, (begun.tree, end), now), ""


def _said(effect: KeepWork) -> str:
    return f"{effect.agent}: what session {effect.epoch} left"


def _write(repository: Repository, effect: KeepWork, trees: tuple[str, str], now: float) -> str:
    names = {"NAME": NAME, "EMAIL": EMAIL, "DATE": f"@{int(now)} +0000"}
    stamp = {f"GIT_{who}_{name}": value for who in ("AUTHOR", "COMMITTER") for name, value in names.items()}
    start = _commit(repository, trees[0], f"{effect.agent}: what it began from", stamp)
    commit = _commit(repository, trees[1], _said(effect), stamp, start)
    point(repository, f"{BODIES}/{effect.agent}", commit)
    return commit


def _found(repository: Repository, effect: KeepWork) -> str:
    """By a try before this one, whose report was lost."""
    ref = f"{BODIES}/{effect.agent}"
    told = line(Path(repository.top), "for-each-ref", "--format=%(objectname) %(subject)", ref)
    commit, _, subject = told.partition(" ")
    return commit if subject == _said(effect) else ""


def _tree_now(yard: Yard, repository: Repository, begun: Begun) -> str:
    """What is there; of a worktree that is gone already, what its branch has: it would not be gone otherwise."""
    try:
        return snapshot(repository_of(yard, begun.folder), yard.records).tree
    except (NoRepository, FileNotFoundError):
        task = _top(yard, begun.folder).name
    for name in (f"refs/heads/{branch_of(task)}", f"{TASKS}/{task}"):
        found = ask(Path(repository.top), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{tree}}")
        if not found.code:
            return text(found.out).strip()
    return ""


def _commit(repository: Repository, tree: str, said: str, stamp: Mapping[str, str], *parents: str) -> str:
    on = [part for each in parents for part in ("-p", each)]
    return line(Path(repository.top), "commit-tree", tree, *on, "-m", said, env=stamp)


def point(repository: Repository, ref: str, to: str) -> None:
    """A ref of ours; where it was does not matter."""
    top, arguments = Path(repository.top), ("update-ref", ref, to)
    answer = ask(top, *arguments)
    if answer.code and clear_stale(Path(repository.common) / f"{ref}.lock", top):
        answer = ask(top, *arguments)
    if answer.code:
        raise GitFailed(arguments, answer.code, answer.said)


def forget(root: Path, agent: str) -> None:
    """Let go of what was kept of an agent; git collects it when it likes. It blocks."""
    try:
        repository = find_repository(str(root))
    except NoRepository:
        return
    for ref in (f"{STARTS}/{agent}", f"{BODIES}/{agent}"):
        if line(Path(repository.top), "for-each-ref", "--format=%(refname)", ref):
            git(Path(repository.top), "update-ref", "-d", ref)
