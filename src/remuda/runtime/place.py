"""Where a project lives on the disk: its root, its private folder, and who holds it."""

import fcntl
import hashlib
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from remuda.domain.errors import Conflict, EffectFailed, Invalid, StoreCorrupt, StoreFailed
from remuda.git import ask, text

STATE = ".remuda"
SETTINGS = "remuda.toml"
SOON = 10.0  # seconds for git to say where we are


@dataclass(frozen=True, slots=True)
class Place:
    root: Path

    @property
    def state(self) -> Path:
        return self.root / STATE

    @property
    def settings(self) -> Path:
        return self.root / SETTINGS

    @property
    def database(self) -> Path:
        return self.state / "remuda.db"

    @property
    def socket(self) -> Path:
        return self.state / "remuda.sock"

    @property
    def log(self) -> Path:
        return self.state / "runtime.log"

    @property
    def transcripts(self) -> Path:
        return self.state / "transcripts"

    @property
    def mark(self) -> str:
        """Begins the mark in the environment of every process of this project, and of no other's."""
        return hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:12]


def find_place(start: Path) -> Place:
    """The project that a directory belongs to: the nearest one above it that has been initialised."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / STATE).is_dir() or (folder / SETTINGS).is_file():
            return Place(folder)
    raise Invalid(f"no Remuda project in {start} or above it; `remuda init` makes one")


def make_place(folder: Path) -> Place:
    """Make the private folder, for its owner's eyes only, and keep it out of the user's git without touching theirs."""
    place = Place(folder.resolve())
    try:
        place.state.mkdir(mode=0o700, exist_ok=True)
        place.state.chmod(0o700)
        place.transcripts.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreFailed(f"{place.state} cannot be made ({error.strerror}); may you write in {place.root}?") from error
    exclude_from_git(place)
    return place


def exclude_from_git(place: Place) -> None:
    """Where the project is in a git repository; it need not be in one."""
    try:
        found = ask(place.root, "rev-parse", "--show-prefix", "--git-path", "info/exclude", within=SOON)
    except EffectFailed:
        return
    if found.code:
        return
    prefix, path = text(found.out).split("\n")[:2]
    line, exclude = f"/{prefix}{STATE}/", place.root / path
    lines = exclude.read_text().splitlines() if exclude.exists() else []
    if line not in lines:
        exclude.parent.mkdir(parents=True, exist_ok=True)
        with exclude.open("a") as file:
            file.write(("" if not lines or exclude.read_text().endswith("\n") else "\n") + line + "\n")


def repository_of(folder: Path) -> Path | None:
    """The top of the git repository that a folder is in, if it is in one and git is there to say so."""
    try:
        found = ask(folder, "rev-parse", "--show-toplevel", within=SOON)
    except EffectFailed:
        return None
    return Path(text(found.out).rstrip("\n")) if not found.code else None


def check_log(place: Place) -> None:
    """Agents have left transcripts, so there was a log. An empty file is then no new log but the rest of an old one."""
    try:
        empty = place.database.stat().st_size == 0
    except FileNotFoundError:
        return
    if empty and place.transcripts.is_dir() and any(place.transcripts.iterdir()):
        raise StoreCorrupt(
            f"{place.database} is empty, though agents have run here; `remuda doctor --repair` sets it aside"
        )


class Hold:
    """One runtime holds a project. The lock is the kernel's, so it is free the moment its holder is dead."""

    def __init__(self, place: Place) -> None:
        try:
            self._file = os.open(place.state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreFailed(f"{place.state} cannot be written ({error.strerror}); may you write there?") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = holder_of(os.read(self._file, 4096))
            os.close(self._file)
            raise Conflict(f"a runtime is up for {place.root} already{holder}; `remuda down` stops it") from error
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(who).encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


class Holder(NamedTuple):
    pid: int  # 0: somebody whose name cannot be read
    host: str
    since: str


def find_holder(place: Place) -> Holder | None:
    """Who holds the project, without taking it; nobody is None."""
    try:
        file = os.open(place.state / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            who = json.loads(os.pread(file, 4096, 0))
            return Holder(int(who["pid"]), str(who["host"]), str(who["since"]))
        except (ValueError, KeyError, TypeError):
            return Holder(0, "", "")
    finally:
        os.close(file)
    return None


def holder_of(data: bytes) -> str:
    try:
        who = json.loads(data)
        return f" (process {who['pid']} on {who['host']}, since {who['since']})"
    except (ValueError, KeyError, TypeError):
        return ""
