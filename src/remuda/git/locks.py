"""Locks that a git left behind when it was killed.

git makes `<file>.lock`, writes into it and renames it; a kill between leaves it there, and every later git stops at it.
We kill agents, and with them their gits, so this happens. A lock is taken away only with proof that nobody holds it:
no git runs in the folder, nor has the file open. Where there is no /proc to look in, age must do.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

OLD = 600.0  # seconds


def clear_stale(lock: Path, folder: Path) -> bool:
    """Whether there was one that nobody holds; it is gone then."""
    try:
        age = time.time() - lock.stat().st_mtime
    except OSError:
        return False
    if age < OLD if not Path("/proc/self").exists() else _held(lock, folder):
        return False
    with suppress(FileNotFoundError):
        lock.unlink()
    return True


def clear_stale_of(git_folder: Path, worktree: Path) -> None:
    """All those of one worktree: of its index, its HEAD and the like."""
    for lock in git_folder.glob("*.lock"):
        clear_stale(lock, worktree)


def _held(lock: Path, folder: Path) -> bool:
    wanted, inside = os.path.realpath(lock), os.path.realpath(folder)
    return any(
        (_leads(f"{process}/cwd") + "/").startswith(inside + "/") or wanted in _open_files(process)
        for process in _gits()
    )


def _gits() -> Iterator[str]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError):
            if Path(f"/proc/{name}/comm").read_text().startswith("git"):
                yield f"/proc/{name}"


def _open_files(process: str) -> set[str]:
    try:
        return {_leads(f"{process}/fd/{number}") for number in os.listdir(f"{process}/fd")}
    except OSError:
        return set()


def _leads(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
