"""What git's own hooks do: commits that take up the work of turns say so, and notes follow commits that are rewritten.

A commit is the user's. Whatever we cannot find out we leave out, and nothing here may fail it.
"""

import os
import sys
from pathlib import Path

from remuda.domain.errors import RemudaError
from remuda.git import git, line
from remuda.git.objects import Objects
from remuda.git.record import annotate, resolve
from remuda.records.begin import find_open
from remuda.records.files import Lock
from remuda.records.ledger import TURNS, Marked, marked, read_turn
from remuda.records.manifest import Manifest
from remuda.records.publish import NOTES
from remuda.records.repository import find_repository
from remuda.records.text import one_line, path_bytes

MOST = 200  # turns that are looked at, the newest


def told(arguments: list[str]) -> None:
    top = Path(find_repository(os.getcwd()).top)
    match arguments:
        case ["prepare-commit-msg", message, *_]:
            add_trailers(top, Path(message).resolve())
        case ["post-commit"]:
            note_commit(top)
        case ["post-rewrite", *_]:
            pairs = sys.stdin.buffer.read()
            with Lock(f"{find_repository(str(top)).shared}/refs-lock"):
                git(top, "notes", f"--ref={NOTES}", "copy", "-f", "--stdin", stdin=pairs)


def add_trailers(top: Path, message: Path) -> None:
    """`Turn-Id:` and `Assisted-by:` for every turn whose work is in what is about to be committed."""
    found = taken_up(top)
    under_way = find_open(find_repository(str(top)), top=str(top))
    begun = under_way.facts("begun") if under_way else None
    if begun:
        found.append((begun["uuid"], begun["agent"], begun["model"]))
    trailers: list[str] = []
    for uuid, agent, model in found:
        who = one_line(agent).replace(":", "-") + (f":{one_line(model)}" if model else "")
        trailers += ["--trailer", f"Turn-Id: {uuid}", "--trailer", f"Assisted-by: {who}"]
    if trailers:
        git(top, "interpret-trailers", "--in-place", "--if-exists", "addIfDifferent", *trailers, str(message))


def taken_up(top: Path) -> list[tuple[str, str, str]]:
    """(uuid, agent, model), the oldest first. A turn's file may since have been changed by a later turn that is taken
    up as well: then it is that turn's content which counts."""
    head, found = resolve(top, "HEAD"), []
    covered: set[str] = set()
    with Objects(top) as objects:
        for turn, manifest in _newest(top, objects, head):
            open_paths = [each for each in manifest.outputs if each.path not in covered]
            gone = [each.path for each in manifest.deletions if each.path not in covered]
            touched = {each.path for each in manifest.outputs} | {each.path for each in manifest.deletions}
            if not touched or not _staged(top, objects, turn, [each.path for each in open_paths], gone):
                continue
            covered |= touched
            found.append((manifest.turn_uuid, manifest.provenance.agent, manifest.provenance.model))
    return found[::-1]


def _newest(top: Path, objects: Objects, head: str) -> list[tuple[Marked, Manifest]]:
    """The turns that were recorded beside the commit that is checked out, the newest first."""
    names = (
        git(top, "for-each-ref", f"--count={MOST}", "--sort=-refname", "--format=%(objectname)", TURNS).decode().split()
    )
    recent = [each for each in marked(top, objects) if each.commit in set(names)]
    found = []
    for each in sorted(recent, key=lambda one: one.uuid, reverse=True):
        try:
            _, manifest = read_turn(objects, each)
        except RemudaError:
            continue
        if manifest.provenance.commit_after == head and manifest.provenance.placement != "branch":
            found.append((each, manifest))
    return found


def _staged(top: Path, objects: Objects, turn: Marked, paths: list[str], gone: list[str]) -> bool:
    """Whether the index has these files as the turn left them, and not those that it deleted."""
    wanted = {path: objects.get(turn.commit.encode() + b":" + path_bytes(path)) for path in paths}
    raw = git(top, "ls-files", "--stage", "-z", "--", *(os.fsdecode(path_bytes(path)) for path in [*paths, *gone]),
              env={"GIT_LITERAL_PATHSPECS": "1", **_index()})  # fmt: skip
    there = {}
    for entry in raw.split(b"\0")[:-1]:
        head, _, path = entry.partition(b"\t")
        there[path] = head.split()[1].decode()
    same = all(each is not None and there.get(path_bytes(path)) == each.id for path, each in wanted.items())
    return same and not any(path_bytes(path) in there for path in gone)


def _index() -> dict[str, str]:
    """`git commit -a` and `git commit FILE` have an index of their own, and name it to their hooks."""
    index = os.environ.get("GIT_INDEX_FILE")
    return {"GIT_INDEX_FILE": os.path.abspath(index)} if index else {}


def note_commit(top: Path) -> None:
    """A note on the new commit for each turn that it names, so that it can be looked up from either side."""
    head = line(top, "rev-parse", "HEAD")
    uuids = git(top, "log", "-1", "--format=%(trailers:key=Turn-Id,valueonly,separator=%x0A)", head).decode().split()
    lines = [f"turn {uuid}\n" for uuid in uuids if resolve(top, f"{TURNS}{uuid}")]
    if lines:
        with Lock(f"{find_repository(str(top)).shared}/refs-lock"):
            annotate(top, NOTES, head, "".join(lines).encode())
