"""Trees: what changed from one to another."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from remuda.git import git

GITLINK = "160000"
LETTERS = {"A": "added", "M": "modified", "T": "modified", "D": "deleted", "R": "renamed", "C": "added"}


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. A mode that changed alone is told apart, for no byte of the file did."""

    path: bytes
    change: str  # added, modified, deleted, renamed or mode
    mode: str  # after; of a deletion, before
    blob: str
    previous: bytes = b""  # of a rename


def changes(folder: Path, before: str, after: str, *, renames: bool = True) -> list[Change]:
    """From one tree to another, in the order of their paths."""
    detect = ("-M50%", "-l0") if renames else ("--no-renames",)
    raw = git(folder, "diff-tree", "-r", *detect, "--raw", "-z", "--no-abbrev", before, after)
    fields = iter(raw.split(b"\0")[:-1])
    found = [_change(head, fields) for head in fields if head.startswith(b":")]
    return sorted(found, key=lambda each: each.path)


def _change(head: bytes, fields: Iterable[bytes]) -> Change:
    old_mode, mode, old_blob, blob, letter = head.decode().removeprefix(":").split(" ")
    paths = iter(fields)
    first = next(paths)
    kind = LETTERS[letter[0]]
    if kind == "deleted":
        return Change(first, kind, old_mode, old_blob)
    if letter[0] in "RC":
        return Change(next(paths), kind, mode, blob, first if kind == "renamed" else b"")
    if kind == "modified" and blob == old_blob:
        kind = "mode"
    return Change(first, kind, mode, blob)
