"""Many objects of one repository, read through one git process."""

import hashlib
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from remuda.domain.errors import EffectFailed

ABSENT = (b" missing", b" ambiguous", b" excluded", b" submodule")


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
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        try:
            self._git.stdin.write(asked + b"\n")
            self._git.stdin.flush()
            head = self._git.stdout.readline()
        except BrokenPipeError:
            head = b""
        if not head:
            raise EffectFailed("git cat-file ended; see `git fsck`")
        if head.rstrip(b"\n").endswith(ABSENT):
            return None
        found, kind, size = head.split()
        data = self._git.stdout.read(int(size))
        self._git.stdout.read(1)
        return Object(found.decode(), kind.decode(), data)

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
