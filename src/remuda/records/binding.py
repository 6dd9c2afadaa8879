"""Where the work of a turn is now. Records stay as they were; branches are amended, rebased, squashed and picked from.

bound      the record's own commit is in the history that is checked out
landed     it was recorded beside the branch, and a commit of the branch carries its id and its content
loose      it was recorded beside the branch, and nothing of the branch says that it has been taken up (yet)
rebound    its commit was on the branch and is no more; another one there holds the same content
orphaned   its commit was on the branch, or a commit there carries its id, and no commit there holds the content
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remuda.domain.errors import RemudaError
from remuda.git import GitFailed, git
from remuda.git.objects import Objects
from remuda.records.ledger import Marked, read_turn
from remuda.records.manifest import Manifest
from remuda.records.text import path_bytes

Binding = Literal["bound", "landed", "loose", "rebound", "orphaned"]
MOST_CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class History:
    """What is checked out: its commits, which of them carry which turn's id, and the turns by theirs."""

    commits: frozenset[str]
    carrying: Mapping[str, tuple[str, ...]]
    head: str
    turns: Mapping[str, Marked]


def read_history(folder: Path, turns: Iterable[Marked]) -> History:
    try:
        listed = git(folder, "log", "--format=%H%x00%(trailers:key=Turn-Id,valueonly,separator=%x2C)", "HEAD", "--")
    except GitFailed:  # nothing is committed yet
        return History(frozenset(), {}, "", {})
    carrying: dict[str, tuple[str, ...]] = {}
    commits = []
    for line in listed.decode(errors="replace").splitlines():
        commit, _, ids = line.partition("\0")
        commits.append(commit)
        for each in filter(None, (one.strip() for one in ids.split(","))):
            carrying[each] = (*carrying.get(each, ()), commit)
    return History(frozenset(commits), carrying, commits[0] if commits else "", {each.uuid: each for each in turns})


def binding(folder: Path, objects: Objects, history: History, turn: Marked, manifest: Manifest) -> tuple[Binding, str]:
    """How the turn is bound, and by which commit."""
    if turn.commit in history.commits:
        return "bound", turn.commit
    carrying = history.carrying.get(manifest.turn_uuid, ())[:MOST_CANDIDATES]
    on_branch = manifest.provenance.placement == "branch"
    candidates = [*carrying, *([history.head] if history.head and on_branch else [])]
    if on_branch:
        candidates += _with_content(folder, history, objects, turn, manifest)
    holder = next((each for each in candidates if _holds(objects, history, each, turn, manifest)), "")
    if holder:
        return ("rebound" if on_branch else "landed"), holder
    return ("orphaned" if on_branch or carrying else "loose"), ""


def _holds(objects: Objects, history: History, commit: str, turn: Marked, manifest: Manifest) -> bool:
    """Whether a commit has every file as the turn left it, and none that it deleted. What a later turn changed, that
    the same commit carries, is that turn's to answer for."""
    later = _touched_later(objects, history, commit, manifest.turn_uuid)
    for output in manifest.outputs:
        path = path_bytes(output.path)
        ours, theirs = objects.get(_at(turn.commit, path)), objects.get(_at(commit, path))
        same = ours is not None and theirs is not None and ours.id == theirs.id
        if not same and output.path not in later:
            return False
    gone = [each.path for each in manifest.deletions if each.path not in later]
    return all(objects.get(_at(commit, path_bytes(path))) is None for path in gone)


def _touched_later(objects: Objects, history: History, commit: str, uuid: str) -> set[str]:
    found: set[str] = set()
    for other in (each for each, commits in history.carrying.items() if commit in commits and each > uuid):
        if other in history.turns:
            with suppress(RemudaError):
                _, manifest = read_turn(objects, history.turns[other])
                found |= {each.path for each in manifest.outputs} | {each.path for each in manifest.deletions}
    return found


def _with_content(folder: Path, history: History, objects: Objects, turn: Marked, manifest: Manifest) -> list[str]:
    """Commits that brought the first of its files in as it is: a squash or an amended message may have lost the id."""
    first = next((objects.get(_at(turn.commit, path_bytes(each.path))) for each in manifest.outputs), None)
    if first is None or not history.head:
        return []
    found = git(folder, "log", "--format=%H", f"--find-object={first.id}", "-n", str(MOST_CANDIDATES), "HEAD", "--")
    return found.decode().split()


def _at(commit: str, path: bytes) -> bytes:
    return commit.encode() + b":" + path
