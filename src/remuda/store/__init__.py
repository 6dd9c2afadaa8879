"""KEEPS: the log of events, and where raw output goes.

A store is the one place that is asked to remember. It has two implementations, SQLite and memory, and one contract
suite (tests/contracts/test_store.py) that both pass.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from remuda.domain.events import Recorded
from remuda.domain.state import State


class Store(Protocol):
    def append(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        """Add events in one transaction. Done when they will survive a power cut; Conflict when the first one's number
        is not the next one, which means that somebody else writes here."""

    async def read(self, after: int, limit: int) -> list[Recorded]:
        """Events that are durable, in order, from the one after `after`."""

    async def past(self, seq: int) -> None:
        """Wait until an event after `seq` is durable."""

    async def restore(self) -> State:
        """The state after the last durable event."""

    async def save_snapshot(self, state: State) -> None:
        """Keep the state so that the next `restore` starts from here. It never becomes durable before its events."""

    async def close(self) -> None: ...


async def follow(store: Store, after: int, *, page: int = 500) -> AsyncIterator[Recorded]:
    """Every event after a cursor, for ever. A slow reader lags; it never loses one, because it reads from the log."""
    while True:
        records = await store.read(after, page)
        for record in records:
            yield record
            after = record.seq
        if not records:
            await store.past(after)


class Head:
    """The number of the last durable event, and those who wait for the next."""

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def advance(self, seq: int) -> None:
        self.seq = seq
        waiting, self._waiting = self._waiting, []
        for after, future in waiting:
            if after >= seq:
                self._waiting.append((after, future))
            elif not future.done():
                future.set_result(None)

    async def past(self, seq: int) -> None:
        while self.seq <= seq:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((seq, future))
            await future
