"""Trees and blobs: what changed from one tree to another, and the digests of what is in them."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from remuda.domain.errors import EffectFailed
from remuda.git import git

CHUNK = 1 << 20
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


def entries(folder: Path, tree: str, *paths: str) -> dict[bytes, tuple[str, str]]:
    """Path -> mode and id, of everything in a tree, or of these paths only."""
    raw = git(folder, "ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths, env={"GIT_LITERAL_PATHSPECS": "1"})
    found = {}
    for line in raw.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, name = head.decode().split(" ")
        found[path] = (mode, name)
    return found


def digests(folder: Path, blobs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Id -> sha256, for (mode, id). They are streamed: a file may be larger than the memory. A submodule has no bytes
    here; the digest is of the commit that it stands at."""
    wanted = dict.fromkeys(name for mode, name in blobs if mode != GITLINK)
    found = {name: hashlib.sha256(name.encode()).hexdigest() for mode, name in blobs if mode == GITLINK}
    if wanted:
        found |= _read(folder, list(wanted))
    return found


def _read(folder: Path, names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(f"{name}\n" for name in names).encode())
        asked.seek(0)
        with subprocess.Popen(
            ["git", "-C", str(folder), "cat-file", "--batch"],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        ) as reading:
            assert reading.stdout is not None
            for name in names:
                found[name] = _digest(reading.stdout, name)
    return found


def _digest(stream: IO[bytes], name: str) -> str:
    head = stream.readline().split()
    if len(head) != 3:
        raise Missing(f"object {name} is not in this repository; `git fetch` may bring it")
    left, digest = int(head[2]), hashlib.sha256()
    while left:
        chunk = stream.read(min(left, CHUNK))
        if not chunk:
            raise Missing(f"object {name} could not be read to its end; see `git fsck`")
        digest.update(chunk)
        left -= len(chunk)
    stream.read(1)
    return digest.hexdigest()


class Missing(EffectFailed):
    """An object that should be here is not."""


def read_objects(folder: Path, names: Iterable[str]) -> dict[str, bytes | None]:
    """The bytes behind each name (an id, or COMMIT:PATH without a line end in it); None for what is not there."""
    asked = list(dict.fromkeys(names))
    raw = git(
        folder, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in asked).encode(errors="surrogateescape")
    )
    found: dict[str, bytes | None] = {}
    at = 0
    for name in asked:
        end = raw.index(b"\n", at)
        head = raw[at:end].rsplit(b" ", 2)
        at = end + 1
        if raw[:end].endswith((b" missing", b" ambiguous")) or not head[-1].isdigit():
            found[name] = None
            continue
        size = int(head[-1])
        found[name] = raw[at : at + size]
        at += size + 1
    return found


def look_up(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The id behind each name, or nothing, all in one question. A name holds no line end."""
    asked = list(names)
    answers = git(
        folder, "cat-file", "--batch-check=%(objectname)", stdin="".join(f"{each}\n" for each in asked).encode()
    )
    lines = answers.decode(errors="replace").splitlines()
    return {name: "" if " " in answer else answer for name, answer in zip(asked, lines, strict=True)}
