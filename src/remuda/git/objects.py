"""Many objects of one repository, read through one git process."""

import hashlib
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from remuda.domain.errors import EffectFailed
from remuda.git.tree import GITLINK

CHUNK = 1 << 20
ABSENT = (b" missing", b" ambiguous", b" excluded", b" submodule")


class Missing(EffectFailed):
    """An object that should be here is not."""


class Object(NamedTuple):
    id: str
    kind: str  # blob, tree, commit or tag
    data: bytes


class Entry(NamedTuple):
    mode: str
    name: bytes
    id: str


class Objects:
    def __init__(self, folder: Path) -> None:
        self._git = subprocess.Popen(
            ["git", "-C", str(folder), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.close()
        self._git.stdout.close()
        self._git.wait()

    def get(self, name: str | bytes) -> Object | None:
        """By id, by ref, or COMMIT:PATH. None where there is none, also for a name that git could not be asked for."""
        asked = os.fsencode(name)
        if b"\n" in asked or not asked:
            return None
        found, kind, size = self._ask(asked)
        if size < 0:
            return None
        assert self._git.stdout is not None
        data = self._git.stdout.read(size)
        self._git.stdout.read(1)
        return Object(found, kind, data)

    def _ask(self, name: bytes) -> tuple[str, str, int]:
        """Id, kind and size; a size of -1 for what is not there. The bytes come next."""
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        try:
            self._git.stdin.write(name + b"\n")
            self._git.stdin.flush()
            head = self._git.stdout.readline()
        except BrokenPipeError:
            head = b""
        if not head:
            raise EffectFailed("git cat-file ended; see `git fsck`")
        if head.rstrip(b"\n").endswith(ABSENT):
            return "", "", -1
        found, kind, size = head.split()
        return found.decode(), kind.decode(), int(size)

    def id(self, name: str | bytes) -> str:
        """Of whatever has this name, or nothing."""
        found = self.get(name)
        return found.id if found else ""

    def digest(self, mode: str, name: str) -> str:
        """sha256 of a blob's bytes, a piece at a time: a file may be larger than the memory. A submodule has no bytes
        here; the digest is of the commit that it stands at."""
        if mode == GITLINK:
            return hashlib.sha256(name.encode()).hexdigest()
        left, digest = self._ask(name.encode())[2], hashlib.sha256()
        if left < 0:
            raise Missing(f"object {name} is not in this repository; `git fetch` may bring it")
        assert self._git.stdout is not None
        while left:
            chunk = self._git.stdout.read(min(left, CHUNK))
            if not chunk:
                raise Missing(f"object {name} could not be read to its end; see `git fsck`")
            digest.update(chunk)
            left -= len(chunk)
        self._git.stdout.read(1)
        return digest.hexdigest()

    def entries(self, name: str | bytes) -> list[Entry]:
        """Of a tree, in git's order."""
        tree = self.get(name)
        if tree is None or tree.kind != "tree":
            return []
        found, at, width = [], 0, len(tree.id) // 2
        while at < len(tree.data):
            space = tree.data.index(b" ", at)
            end = tree.data.index(b"\0", space)
            found.append(
                Entry(
                    tree.data[at:space].decode(), tree.data[space + 1 : end], tree.data[end + 1 : end + 1 + width].hex()
                )
            )
            at = end + 1 + width
        return found

    def tree_without(self, tree: str, folder: list[bytes], names: tuple[bytes, ...]) -> str:
        """The id that a tree would have without some names in one of its folders; empty when nothing is left."""
        changed: list[Entry] = []
        for each in self.entries(tree):
            if folder and each.name == folder[0] and each.mode == "40000":
                below = self.tree_without(each.id, folder[1:], names)
                changed += [each._replace(id=below)] if below else []
            elif folder or each.name not in names:
                changed.append(each)
        return tree_id(changed, len(tree)) if changed else ""


def tree_id(entries: list[Entry], width: int) -> str:
    data = b"".join(b"%b %b\0%b" % (each.mode.encode(), each.name, bytes.fromhex(each.id)) for each in entries)
    algorithm = hashlib.sha1 if width == 40 else hashlib.sha256
    return algorithm(b"tree %d\0" % len(data) + data).hexdigest()
