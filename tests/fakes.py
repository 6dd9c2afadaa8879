"""Stand-ins that the tests share."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, TypeVar

from remuda.domain.due import Debtors
from remuda.domain.events import Recorded
from remuda.domain.state import Agent
from remuda.store.memory import MemoryStore

T = TypeVar("T")

BOUND = 30.0  # seconds; far more than anything here takes, so that only a hang meets it


def run(story: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await within(story)

    return asyncio.run(bounded())


async def within(waited_for: Awaitable[T]) -> T:
    async with asyncio.timeout(BOUND):
        return await waited_for


async def breathe(times: int = 50) -> None:
    """Let everything that is ready run, to see that something does not happen."""
    for _ in range(times):
        await asyncio.sleep(0)


class HeldStore(MemoryStore):
    """A store whose disk the test holds in its hand: an append is durable when `release` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.held: deque[tuple[list[Recorded], asyncio.Future[None]]] = deque()

    def append(self, records: Sequence[Recorded]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.held.append((list(records), done))
        return done

    async def release(self) -> None:
        """Make the oldest append durable."""
        records, done = self.held.popleft()
        await super().append(records)
        if not done.done():
            done.set_result(None)
        await breathe()

    async def fail(self, error: Exception) -> None:
        _, done = self.held.popleft()
        done.set_exception(error)
        await breathe()


class Owed:
    """Stands where the hands do, and writes down what it is handed."""

    def __init__(self) -> None:
        self.durable: list[dict[str, Agent]] = []

    def __call__(self, durable: Debtors, _: Debtors) -> None:
        self.durable.append(dict(durable.agents))


class Clock:
    """Counts up by one each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now
