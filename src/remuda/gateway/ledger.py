"""The books and the log of one gateway on the disk: written beside the calls, never in their way.

stats/<pid>.json   the books as they are, while the gateway runs; the last of all that ran is stats/last.json
events.jsonl       what happened, a line each; when it is long it begins anew, with the old one beside it
"""

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from remuda.gateway.books import Books, to_json
from remuda.gateway.events import GatewayEvent, ServerCalled, in_words

log = logging.getLogger("remuda.gateway")

WRITE_EVERY = 1.0  # seconds
LONGEST_LOG = 4 << 20
MOST_WAITING = 10_000  # events; beyond that a disk that is stuck costs some of them, and not us our memory


class Ledger:
    def __init__(self, state: Path, name: str = "") -> None:
        self.books = Books(servers={})
        self._state = state
        self._name = name or str(os.getpid())
        self._waiting: list[tuple[float, GatewayEvent]] = []
        self._unwritten: deque[tuple[float, GatewayEvent]] = deque(maxlen=MOST_WAITING)

    def note(self, event: GatewayEvent) -> None:
        """In the way of every call, so it does next to nothing; the rest is done when the books are looked at."""
        self._waiting.append((time.time(), event))
        if not isinstance(event, ServerCalled):
            log.info("%s", in_words(event))
        if len(self._waiting) > MOST_WAITING:
            self._settle()

    def listed(self, tokens: int, known: int) -> None:
        """What the clients see from now on; whatever happened before happened with the old list."""
        self._settle()
        self.books.list(tokens, known)

    def _settle(self) -> None:
        happened, self._waiting = self._waiting, []
        for at, event in happened:
            self.books.add(event)
            self._unwritten.append((at, event))

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        writing = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            self._settle()
            await self._flush("last")

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY)
            self._settle()
            if self._unwritten:
                await self._flush(self._name)

    async def _flush(self, name: str) -> None:
        happened = list(self._unwritten)
        self._unwritten.clear()
        await asyncio.to_thread(self._write, name, msgspec.json.encode(to_json(self.books)), happened)

    def _write(self, name: str, books: bytes, happened: list[tuple[float, GatewayEvent]]) -> None:
        """A disk that cannot be written costs the statistics, and not the calls."""
        stats = self._state / "stats"
        try:
            stats.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = stats / f"{self._name}.tmp"
            beside.write_bytes(books)
            beside.replace(stats / f"{name}.json")
            if name != self._name:
                (stats / f"{self._name}.json").unlink(missing_ok=True)
            self._append(b"".join(_line(at, event) for at, event in happened))
        except OSError as error:
            log.warning("the gateway's statistics cannot be written: %s", error)

    def _append(self, lines: bytes) -> None:
        path = self._state / "events.jsonl"
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > LONGEST_LOG:
                path.replace(path.with_suffix(".old.jsonl"))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            file.write(lines)


def _line(at: float, event: GatewayEvent) -> bytes:
    return (
        msgspec.json.encode({"at": round(at, 3), "event": type(event).__name__, **msgspec.structs.asdict(event)})
        + b"\n"
    )
