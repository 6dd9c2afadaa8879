"""How tests wait: for a condition, with a bound, never for a length of time."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from remuda.runtime.runtime import Runtime

T = TypeVar("T")

BOUND = 60.0  # seconds; far more than anything takes that does not hang
LOOK_EVERY = 0.005


async def until(condition: Callable[[], object], within: float = BOUND) -> None:
    """Of anything, also of what another thread or process does."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - it has no event of its own
            await asyncio.sleep(LOOK_EVERY)


async def until_shown(runtime: Runtime, condition: Callable[[], object], within: float = BOUND) -> None:
    """Of what a runtime shows; looks after each event."""
    async with asyncio.timeout(within):
        while not condition():
            await runtime.store.past(runtime.loop.shown.seq)
            await asyncio.sleep(0)  # what is on the disk is shown a moment later


def until_true(condition: Callable[[], T | None], within: float = BOUND) -> T:
    """The same for a test that has no loop of its own. Gives what it waited for."""
    deadline, tick = time.monotonic() + within, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still {found!r} after {within:.0f} s"
        tick.wait(LOOK_EVERY)
    return found
