"""The log in memory: for tests, simulation and measuring the loop without a disk."""

import asyncio
from collections.abc import Sequence

from remuda.domain.errors import Conflict
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import State
from remuda.store import Head
from remuda.store.codec import decode_state, encode_state


class MemoryStore:
    def __init__(self) -> None:
        self._records: list[Recorded] = []
        self._head = Head()
        self._snapshot: bytes | None = None

    def append(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if records and records[0].seq != len(self._records) + 1:
            done.set_exception(Conflict(f"event {records[0].seq} is not the next one; is another runtime writing?"))
            return done
        self._records += records
        # Durability takes a moment here too, so that nothing learns to rely on it being instant.
        loop.call_soon(self._durable, len(self._records), done)
        return done

    def _durable(self, seq: int, done: asyncio.Future[None]) -> None:
        self._head.advance(seq)
        if not done.done():
            done.set_result(None)

    async def read(self, after: int, limit: int) -> list[Recorded]:
        return self._records[after : min(after + limit, self._head.seq)]

    async def past(self, seq: int) -> None:
        await self._head.past(seq)

    async def restore(self) -> State:
        state = decode_state(self._snapshot) if self._snapshot else State()
        for record in self._records[state.seq : self._head.seq]:
            evolve(state, record)
        return state

    async def save_snapshot(self, state: State) -> None:
        seq, data = state.seq, encode_state(state)
        if seq > len(self._records):
            raise Conflict(f"a snapshot of event {seq} cannot be kept, as the log ends at {len(self._records)}")
        await self._head.past(seq - 1)
        self._snapshot = data

    async def close(self) -> None:
        return None
