"""The log in SQLite: write-ahead log, synchronous=FULL, one writer thread, group commit.

The thread takes every append that has gathered while the last commit was under way and commits them together, so
many agents cost about as many disk flushes as one.
"""

import asyncio
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from remuda.domain.errors import Conflict, RemudaError, StoreCorrupt, StoreFailed
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import State
from remuda.store import Head
from remuda.store.codec import SHAPE, decode_event, decode_state, encode_event, encode_state
from remuda.store.file import explain, open_log

INSERT = "insert into events (seq, at, cause, kind, agent, data) values (?, ?, ?, ?, ?, ?)"
_READ = "select seq, at, cause, kind, data from events where seq > ? order by seq limit ?"
_SNAPSHOTS = "select data from snapshots where shape = ? and seq <= (select max(seq) from events) order by seq desc"
_SAVE = "insert or replace into snapshots (seq, shape, data) values (?, ?, ?)"
_FORGET = "delete from snapshots where seq not in (select seq from snapshots order by seq desc limit 2)"


class _Job(NamedTuple):
    """What the writer is asked for: events, or a snapshot, which goes by the same way so that it can never become
    durable before the events that are in it."""

    records: Sequence[Recorded]
    snapshot: tuple[int, str, bytes] | None
    done: asyncio.Future[None]


class SqliteStore:
    def __init__(self, path: Path) -> None:
        """Open or make the log. Raises StoreFailed or one of its kinds, each with what to do."""
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._db = open_log(path)
        try:
            self._reading = open_log(path, readonly=True)
            self._head = Head(_last_seq(self._reading))
        except apsw.Error as error:
            raise explain(path, error) from error
        self._seq = self._head.seq
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="remuda-read")
        self._writer = threading.Thread(target=self._write_all, name="remuda-write", daemon=True)
        self._writer.start()

    def append(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        return self._ask(records, None)

    async def read(self, after: int, limit: int) -> list[Recorded]:
        return await self._loop.run_in_executor(self._reader, self._read, after, limit)

    async def past(self, seq: int) -> None:
        await self._head.past(seq)

    async def restore(self) -> State:
        return await self._loop.run_in_executor(self._reader, restore, self._reading, self._path)

    async def save_snapshot(self, state: State) -> None:
        await self._ask((), (state.seq, SHAPE, encode_state(state)))

    def _ask(self, records: Sequence[Recorded], snapshot: tuple[int, str, bytes] | None) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put(_Job(records, snapshot, done))
        return done

    async def close(self) -> None:
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._writer.join)
        self._reader.shutdown(wait=True)
        self._reading.close()
        self._db.close()

    # --- in the reader's thread ---

    def _read(self, after: int, limit: int) -> list[Recorded]:
        try:
            return list(read_records(self._reading, after, limit))
        except apsw.Error as error:
            raise explain(self._path, error) from error

    # --- in the writer's thread ---

    def _write_all(self) -> None:
        while (first := self._jobs.get()) is not None:
            group, closing = [first], False
            while not self._jobs.empty():
                more = self._jobs.get()
                if more is None:
                    closing = True
                    break
                group.append(more)
            failure = self._commit(group)
            self._loop.call_soon_threadsafe(self._settle, group, self._seq, failure)
            if closing:
                return

    def _commit(self, group: list[_Job]) -> RemudaError | None:
        try:
            rows = list(self._rows(group))
            last = rows[-1][0] if rows else self._seq
            with transaction(self._db):
                self._db.executemany(INSERT, rows)
                for job in group:
                    if job.snapshot:
                        self._save(job.snapshot, last)
        except RemudaError as error:
            return error
        except apsw.ConstraintError:
            return Conflict(f"somebody else has written to {self._path}; is another runtime up?")
        except apsw.Error as error:
            return explain(self._path, error)
        except Exception as error:
            # The thread must live to say so: a writer that dies in silence would leave every caller waiting.
            return StoreFailed(f"the events could not be written: {error!r}")
        self._seq = last
        return None

    def _save(self, snapshot: tuple[int, str, bytes], last: int) -> None:
        if snapshot[0] > last:
            # The loop runs ahead of the disk: after a failed append its state holds what never happened.
            raise Conflict(f"a snapshot of event {snapshot[0]} cannot be kept, as the log ends at {last}")
        self._db.execute(_SAVE, snapshot)
        self._db.execute(_FORGET)

    def _rows(self, group: list[_Job]) -> Iterator[tuple[int, float, str, str, str, bytes]]:
        seq = self._seq
        for job in group:
            for record in job.records:
                seq += 1
                if record.seq != seq:
                    raise Conflict(f"event {record.seq} is not the next one ({seq}); is another runtime writing?")
                event = record.event
                agent: str = getattr(event, "agent", "")
                yield seq, record.at, record.cause, type(event).__name__, agent, encode_event(event)

    # --- back in the loop's thread ---

    def _settle(self, group: list[_Job], seq: int, failure: RemudaError | None) -> None:
        self._head.advance(seq)
        for job in group:
            if job.done.done():
                continue
            if failure is None:
                job.done.set_result(None)
            else:
                job.done.set_exception(failure)


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All of it or nothing. A full disk makes SQLite roll back by itself; rolling back once more, as a connection used
    as a context does, would fail and hide the reason."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def restore(db: apsw.Connection, path: Path) -> State:
    """The newest snapshot this program can read, and the events after it."""
    try:
        state = _snapshot(db)
        for record in read_records(db, state.seq):
            if record.seq != state.seq + 1:
                raise StoreCorrupt(
                    f"{path} lacks event {state.seq + 1}; `remuda doctor --repair` saves those before it"
                )
            evolve(state, record)
    except apsw.Error as error:
        raise explain(path, error) from error
    except (AssertionError, LookupError, ValueError) as error:
        raise StoreCorrupt(
            f"{path}: event {state.seq} does not follow from those before it; `remuda doctor --repair` saves those"
        ) from error
    return state


def _snapshot(db: apsw.Connection) -> State:
    for (data,) in db.execute(_SNAPSHOTS, (SHAPE,)):
        try:
            return decode_state(data)
        except ValueError:
            continue  # a damaged snapshot costs time, nothing else: the events are the truth
    return State()


def read_records(db: apsw.Connection, after: int, limit: int = -1) -> Iterator[Recorded]:
    for seq, at, cause, kind, data in db.execute(_READ, (after, limit)):
        yield Recorded(seq, at, cause, decode_event(seq, kind, data))


def _last_seq(db: apsw.Connection) -> int:
    return int(db.execute("select coalesce(max(seq), 0) from events").get)
