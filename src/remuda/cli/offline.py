"""Reads without a runtime: the same answers, from the log file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import apsw

from remuda.cli.say import note
from remuda.domain.events import Recorded
from remuda.domain.state import State
from remuda.runtime.place import Place, check_log
from remuda.store.file import explain, open_log
from remuda.store.sqlite import read_records, restore
from remuda.views.text import moment


@dataclass(frozen=True, slots=True)
class LogFile:
    place: Place
    db: apsw.Connection | None  # None: no runtime was ever up here

    def state(self) -> State:
        return State() if self.db is None else restore(self.db, self.place.database)

    async def read(self, after: int, limit: int) -> list[Recorded]:
        if self.db is None:
            return []
        try:
            return list(read_records(self.db, after, limit))
        except apsw.Error as error:
            raise explain(self.place.database, error) from error

    def head(self) -> tuple[int, float]:
        """The number and the time of the last event."""
        if self.db is None:
            return 0, 0.0
        try:
            row = self.db.execute("select seq, at from events order by seq desc limit 1").fetchone()
        except apsw.Error as error:
            raise explain(self.place.database, error) from error
        return row if row is not None else (0, 0.0)


def _written(place: Place) -> bool:
    try:
        return place.database.stat().st_size > 0
    except FileNotFoundError:
        return False


@contextmanager
def log_file(place: Place) -> Iterator[LogFile]:
    """The project's log, with a remark that nobody is writing it."""
    check_log(place)
    db = open_log(place.database, readonly=True) if _written(place) else None
    try:
        log = LogFile(place, db)
        _, at = log.head()
        note(f"no runtime is up{f'; this is from the log as of {moment(at)}' if at else ', and none has been yet'}")
        yield log
    finally:
        if db is not None:
            db.close()
