"""Folders that agents work in, one after the other or side by side: whose work is whose must be seen in time."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

PATIENCE = 30.0  # seconds to wait for those who were there before; then their body may show some of what comes next


class Places:
    def __init__(self) -> None:
        self._keeping: dict[str, set[asyncio.Event]] = {}
        self._one: dict[str, asyncio.Lock] = {}
        self._next: dict[str, asyncio.Task[str]] = {}  # looks that are asked for and have not begun

    @contextmanager
    def being_kept(self, folder: str) -> Iterator[None]:
        """What somebody has left there is being kept until the block is left."""
        over = asyncio.Event()
        self._keeping.setdefault(folder, set()).add(over)
        try:
            yield
        finally:
            over.set()
            self._keeping[folder].discard(over)

    async def free(self, folder: str, leaving: Iterable[asyncio.Event]) -> None:
        """Wait until those who leave are gone from a worktree, and what they left is kept. The project's own folder is
        everybody's at any time."""
        if not folder:
            return
        for others in (set(leaving), self._keeping.get(folder, set())):
            waits = [asyncio.ensure_future(each.wait()) for each in others]
            if waits:
                await asyncio.wait(waits, timeout=PATIENCE)
                for each in waits:
                    each.cancel()

    async def look(self, folder: str, look: Callable[[], str]) -> str:
        """What is in a folder, as of some time after this was asked. There is one look at a time: all who ask while
        one is under way share the next, so that a hundred agents that start together cost two."""
        shared = self._next.get(folder)
        if shared is None:
            shared = self._next[folder] = asyncio.ensure_future(self._look(folder, look))
        return await asyncio.shield(shared)

    async def _look(self, folder: str, look: Callable[[], str]) -> str:
        async with self._one.setdefault(folder, asyncio.Lock()):
            del self._next[folder]
            return await asyncio.to_thread(look)
