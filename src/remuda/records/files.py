"""Files that are whole or not there, whoever is killed and whenever."""

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20


def write_whole(path: str, data: bytes, mode: int = 0o644, *, flush: bool = True) -> None:
    """Into a file of its own first, so that a reader sees the old bytes or the new, and flushed before it is named.
    What can be made again need not be flushed: a power cut may then leave it empty."""
    part = f"{path}.{os.getpid()}.part"
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        write_all(file, data)
        if flush:
            os.fsync(file)
    finally:
        os.close(file)
    os.replace(part, path)
    if flush:
        sync_folder(os.path.dirname(path))


def append(path: str, data: bytes) -> None:
    """One line, in one write: lines of processes that append at once do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        write_all(file, data)
    finally:
        os.close(file)


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def read(path: str) -> bytes | None:
    """What is in a file, or None where there is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return b"".join(_chunks(file))
    finally:
        os.close(file)


def _chunks(file: int) -> "Iterator[bytes]":
    while chunk := os.read(file, CHUNK):
        yield chunk


def discard(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def listed(folder: str) -> list[str]:
    """The names in a folder, none where it is not there."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def sync_folder(folder: str) -> None:
    file = os.open(folder or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Lock:
    """One at a time, over all processes of the machine. It is the kernel's, so it is free when its holder is dead."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
