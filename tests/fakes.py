"""Stand-ins that the tests share, and how they wait: for a condition, with a bound, never for a length of time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BOUND = 30.0  # seconds; far more than anything here takes, so that only a hang meets it


def run(story: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await within(story)

    return asyncio.run(bounded())


async def within(waited_for: Awaitable[T]) -> T:
    async with asyncio.timeout(BOUND):
        return await waited_for


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110 - of anything, also of what another thread or process does
            await asyncio.sleep(0)


async def breathe(times: int = 50) -> None:
    """Let everything that is ready run, to see that something does not happen."""
    for _ in range(times):
        await asyncio.sleep(0)
