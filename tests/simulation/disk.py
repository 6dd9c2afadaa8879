"""A log on a disk that is slow, sometimes full, and all that a crash leaves behind."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from remuda.domain.errors import Conflict, StoreFailed
from remuda.domain.events import Recorded
from remuda.domain.evolve import evolve
from remuda.domain.state import State
from remuda.store.codec import decode_state, encode_state
from remuda.store.memory import MemoryStore

TICK = 0.25  # seconds; all time here is made of these, so that things often happen at the same moment


class Disk:
    """What is durable. It outlives every runtime."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.log: list[Recorded] = []
        self.state = State()  # the fold of the log: the referee's own, made of nothing that a runtime says

    def write(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        self.log += records
        for record in records:
            evolve(self.state, record)
        return self.memory.append(records)


@dataclass(slots=True)
class Job:
    records: Sequence[Recorded]
    snapshot: State | None
    done: asyncio.Future[None]


class SlowStore:
    """The store of one runtime's life. Once an append has failed, every later one does."""

    def __init__(self, disk: Disk, dice: Random, failing: Callable[[], float]) -> None:
        self._disk = disk
        self._dice = dice
        self._failing = failing  # the probability that an append fails, now
        self._jobs: deque[Job] = deque()
        self._free_at = 0.0
        self._broken = False
        self._dead = False
        self.fatal = -1  # the runtime dies at this append from now: just before it is durable, or just after
        self.died = asyncio.Event()

    def append(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        return self._ask(records, None)

    async def save_snapshot(self, state: State) -> None:
        await self._ask((), decode_state(encode_state(state)))

    def _ask(self, records: Sequence[Recorded], snapshot: State | None) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        job = Job(records, snapshot, loop.create_future())
        self._jobs.append(job)
        # One after the other, as a writer's thread works; now and then the disk takes its time.
        delay = self._dice.choice((0.0, 0.0, 0.0, TICK, 2 * TICK))
        self._free_at = max(self._free_at, loop.time()) + delay
        loop.call_at(self._free_at, self._flush)
        return job.done

    def _flush(self) -> None:
        if self._dead:
            return
        self.fatal -= bool(self._jobs[0].records)
        if self.fatal == 0:
            self.crash()
            self.died.set()
            return
        job = self._jobs.popleft()
        if job.records and not self._broken and self._dice.random() < self._failing():
            self._broken = True
            _settle(job.done, StoreFailed("the disk is full"))
        elif job.snapshot is not None:
            saving = asyncio.ensure_future(self._disk.memory.save_snapshot(job.snapshot))
            saving.add_done_callback(lambda done: _settle(job.done, done.exception()))
        elif self._broken:
            _settle(job.done, Conflict("it is not the next one"))
        else:
            self._disk.write(job.records).add_done_callback(lambda done: _settle(job.done, done.exception()))

    def crash(self) -> None:
        """Some of what was on its way is on the disk, without anybody having been told; the rest never was."""
        if self._dead or self._broken:
            self._dead = True
            return
        self._dead = True
        for _ in range(self._dice.randrange(len(self._jobs) + 1)):
            job = self._jobs.popleft()
            if job.snapshot is None:
                self._disk.write(job.records)

    async def read(self, after: int, limit: int) -> list[Recorded]:
        return await self._disk.memory.read(after, limit)

    async def past(self, seq: int) -> None:
        await self._disk.memory.past(seq)

    async def restore(self) -> State:
        return await self._disk.memory.restore()

    async def close(self) -> None:
        self._dead = True


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
