"""What these tests share: a meter with a purse instead of a ledger, and services that answer what a test says."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop

import waiting
from remuda.domain.state import Usage
from remuda.meter import Estimate, Grant, Refusal, Seat
from remuda.meter.apis import APIS
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.store.sqlite import SqliteStore
from scripted_model.kit import KEY

WITHIN = 30.0
ADA = Seat("ada", 1)
REAL = "the-real-key"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
VARIABLE = "REMUDA_TEST_KEY"


def total(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_creation_tokens


@dataclass(slots=True)
class Purse:
    """So many tokens for everyone; None: as many as anyone likes."""

    tokens: int | None = None
    spent: int = 0
    asked: list[Estimate] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    settled: list[Usage | None] = field(default_factory=list)
    calls: int = 0

    def limited(self, seat: Seat) -> bool:  # noqa: ARG002  (of everyone alike)
        return self.tokens is not None

    async def reserve(self, seat: Seat, estimate: Estimate) -> Grant | Refusal:
        self.asked.append(estimate)
        self.calls += 1
        if self.tokens is None:
            return Grant(seat, self.calls, estimate.model)
        room = self.tokens - self.spent - sum(self.open.values()) - estimate.input_tokens
        if room < estimate.floor:
            return Refusal(f"the budget is spent: {room} left")
        output = min(room, estimate.output_tokens)
        self.open[self.calls] = estimate.input_tokens + output
        return Grant(seat, self.calls, estimate.model, output)

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        reserved = self.open.pop(grant.call, 0)
        self.settled.append(usage)
        self.spent += reserved if usage is None else total(usage)


@asynccontextmanager
async def meter_of(url: str, purse: Purse, *, seats: dict[str, Seat] | None = None) -> AsyncIterator[Meter]:
    os.environ[VARIABLE] = REAL
    known = {KEY: ADA} if seats is None else seats
    meter = Meter({api.name: Upstream(url, VARIABLE) for api in APIS}, purse, known.get)
    await meter.open()
    try:
        yield meter
    finally:
        await meter.close()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WITHIN):
            await story()

    uvloop.run(bounded())  # as the runtime does


# --- a service that answers in bytes ---


@dataclass(slots=True)
class Provider:
    url: str = ""
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the meter has closed a connection


@asynccontextmanager
async def service_of(*answers: Sequence[bytes], close: bool = False, hold: bool = False) -> AsyncIterator[Provider]:
    """One answer after the other, each piece in a packet of its own. `close`: the connection ends with the answer.
    `hold`: after the last piece it says nothing more and waits."""
    waiting = list(answers)
    seen = Provider()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        try:
            while waiting:
                await _request(reader, seen)
                for piece in waiting.pop(0):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if hold:
                    await reader.read()
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            seen.left.set()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader, seen: Provider) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    seen.heads.append(head)
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
    seen.bodies.append(await reader.readexactly(length))


async def until(true: Callable[[], object]) -> None:
    await waiting.until(true, WITHIN)


# --- a disk that waits ---


class Disk:
    """The runtime's own, which can be told to wait."""

    def __init__(self, store: object, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(store, SqliteStore)
        self._commit, self._go = store._commit, threading.Event()
        self._go.set()
        monkeypatch.setattr(store, "_commit", self._when_it_may)

    def _when_it_may(self, group: list[object]) -> object:
        self._go.wait()
        return self._commit(group)  # type: ignore[arg-type]

    def hold(self) -> None:
        self._go.clear()

    def go(self) -> None:
        self._go.set()


# --- a runtime to be killed ---

TESTS = Path(__file__).parent.parent


@asynccontextmanager
async def child_of(folder: Path, service: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A process with a runtime and its meter, and where that is. It is killed in the end, if not before."""
    command = (sys.executable, str(TESTS / "meter" / "serve_one.py"), str(folder), service)
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=env)
    assert child.stdout is not None
    try:
        yield child, (await child.stdout.readline()).decode().strip()
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


# --- a program that speaks in bytes ---


async def post(url: str, path: str, body: bytes, *, token: str = KEY, more: bytes = b"") -> bytes:
    """Every byte of the answer, to the end of the connection."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    )
    writer.write(head.encode() + more + b"\r\n" + body)
    try:
        return await reader.read()
    finally:
        writer.close()
