"""Saves what can be read of a damaged log: the longest run of events from the first one on, without a hole.

A log is only true from its beginning: after a hole nobody knows what state the next event was decided in. So what
stands behind the first event that cannot be read is left in the damaged file, which is kept.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import apsw

from remuda.domain.errors import RemudaError, StoreFailed
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import State
from remuda.store.codec import decode_event
from remuda.store.file import explain, open_log
from remuda.store.sqlite import INSERT

_ROWS = "select seq, at, cause, kind, agent, data from events order by seq"
_ALSO = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Repair:
    saved: int  # events
    lost: int  # events that are known to stand behind the first one that cannot be read
    why: str  # what stopped the reading; empty where all could be read
    kept: Path  # the damaged file


@dataclass(frozen=True, slots=True)
class Examined:
    """What stands in a log, read from the first event to the last."""

    events: int
    fault: str


def examine(path: Path) -> Examined:
    """Read every event, as a start without a snapshot would. Raises what `open_log` raises."""
    db = open_log(path, readonly=True)
    try:
        events, fault = 0, _quick_check(db)
        for row in _rows(db):
            if isinstance(row, str):
                return Examined(events, fault or row)
            events += 1
        return Examined(events, fault)
    except apsw.Error as error:
        raise explain(path, error) from error
    finally:
        db.close()


def _quick_check(db: apsw.Connection) -> str:
    said = str(db.execute("pragma quick_check(1)").get)
    return "" if said == "ok" else f"SQLite finds it damaged ({said.splitlines()[-1]})"


def repair(path: Path) -> Repair:
    """Write a new log with what can be read. The damaged file stays, under another name. Nobody else may write."""
    fresh, kept = path.with_name(f"{path.name}.new"), _free_name(path)
    for name in (fresh, *_beside(fresh)):
        name.unlink(missing_ok=True)
    target = open_log(fresh)
    saved, lost, why = 0, 0, ""
    try:
        source = _open_damaged(path)
        with target:
            for row in _rows(source):
                if isinstance(row, str):
                    why = row
                    break
                target.execute(INSERT, row)
                saved = row[0]
        lost = max(0, _highest(source) - saved)
        source.close()
    except apsw.Error as error:
        why = why or str(error)
    finally:
        target.pragma("wal_checkpoint(truncate)")
        target.close()
    _exchange(path, fresh, kept)
    return Repair(saved, lost, why, kept)


Row = tuple[int, float, str, str, str, bytes]


def _rows(db: apsw.Connection) -> Iterator[Row | str]:
    """The rows of the log that are sound, one after the other; then, where one is not, what is wrong with it."""
    state = State()
    cursor = db.cursor()
    while True:
        try:
            row: Row | None = (cursor if state.seq else cursor.execute(_ROWS)).fetchone()
            if row is None:
                return
            seq, at, cause, kind, _, data = row
            if seq != state.seq + 1:
                yield f"event {state.seq + 1} is missing"
                return
            evolve(state, Recorded(seq, at, cause, decode_event(seq, kind, data)))
        except (apsw.Error, RemudaError, AssertionError, LookupError, TypeError, ValueError) as error:
            yield f"event {state.seq + 1} cannot be read: {error}"
            return
        yield row


def _open_damaged(path: Path) -> apsw.Connection:
    """Without the checks of `open_log`, because it is known to be damaged, and without a change to it."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    # Otherwise SQLite reads nothing at all of a file that is shorter than its header says.
    db.pragma("writable_schema", True)
    return db


def _highest(db: apsw.Connection) -> int:
    try:
        return int(db.execute("select coalesce(max(seq), 0) from events").get)
    except (apsw.Error, TypeError, ValueError):
        return 0


def _exchange(path: Path, fresh: Path, kept: Path) -> None:
    try:
        for old, new in zip((path, *_beside(path)), (kept, *_beside(kept)), strict=True):
            if old.exists():
                old.rename(new)
        fresh.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be put in place: {error.strerror}; what was saved is in {fresh}") from error


def _beside(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + end) for end in _ALSO)


def _free_name(path: Path) -> Path:
    stem = f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain((path.with_name(stem),), (path.with_name(f"{stem}-{number}") for number in count(2)))
    return next(name for name in names if not name.exists())
