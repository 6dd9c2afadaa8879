"""A client at our own standard input and output, one message a line, until it closes its end."""

import asyncio
import os
import stat
import threading
from contextlib import suppress
from typing import Any, NamedTuple, cast

from remuda.mcp import Desk
from remuda.mcp.conversation import Conversation
from remuda.mcp.jsonrpc import INVALID_REQUEST, Id, RpcError, decode, failure
from remuda.mcp.outbox import Outbox

LONGEST_LINE = 16 << 20
CHUNK = 1 << 16
LAST_WORDS = 2.0  # seconds to write what was said last
LONGEST_BACKLOG = 256 << 20  # bytes that may wait for a client which does not read them
BEHIND = 4 << 20  # bytes that wait for it, from which on it is only answered


class _Input(asyncio.Protocol):
    """Cuts what comes into lines. A line that is too long is dropped, and its sender told; the next is fine again."""

    def __init__(self, conversation: Conversation, output: "_Output") -> None:
        self._conversation, self._output = conversation, output
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parts: list[bytes] = []
        self._pending = 0
        self._dropping = False

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._parts.append(line)
            self._take(b"".join(self._parts))
            self._parts.clear()
            self._pending = 0
        self._pending += len(rest)
        if self._pending > LONGEST_LINE:
            self._parts.clear()
            self._dropping = True
        if rest and not self._dropping:
            self._parts.append(rest)

    def _take(self, line: bytes) -> None:
        if self._dropping:
            self._dropping = False
            why = f"a message of more than {LONGEST_LINE >> 20} MiB was dropped"
            self._output.refuse(None, RpcError(INVALID_REQUEST, why))
        elif line.strip():
            self._conversation.receive(decode(line))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        if not self.closed.done():
            self.closed.set_result(None)


class _Output(asyncio.BaseProtocol):
    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.outbox = Outbox(self._write)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        if not self.closed.done():
            self.closed.set_result(None)

    def tell(self, message: bytes, about: Id | None) -> None:  # noqa: ARG002 - one pipe for all
        self.outbox.put(message)

    def answer(self, to: Id, message: bytes) -> None:  # noqa: ARG002
        self.outbox.put(message)

    def refuse(self, to: Id | None, error: RpcError) -> None:
        self.outbox.put(failure(to, error.body))

    def behind(self) -> bool:
        written = self.transport.get_write_buffer_size() if self.transport else 0
        return written + self.outbox.gathered > BEHIND

    def drop(self, to: Id) -> None:
        """Nothing is owed."""

    def _write(self, lines: bytes) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > LONGEST_BACKLOG:
            transport.abort()  # it will never read them
        else:
            transport.write(lines)


async def serve(desk: Desk, *, stop: asyncio.Event | None = None) -> None:
    """Answer on stdin and stdout until one of them ends, or until told to stop."""
    loop = asyncio.get_running_loop()
    outgoing = _Output()
    # The descriptors are taken for ourselves: a stray `print` goes to stderr and does not break the protocol.
    read_end, write_end = _own(0, os.open(os.devnull, os.O_RDONLY)), _own(1, os.dup(2))
    pumped_in, pumped_out = _pump_in(read_end), _pump_out(write_end)
    transport, _ = await loop.connect_write_pipe(lambda: outgoing, os.fdopen(pumped_out.end, "wb", buffering=0))
    conversation = Conversation(desk, outgoing)
    reading, incoming = await loop.connect_read_pipe(
        lambda: _Input(conversation, outgoing), os.fdopen(pumped_in.end, "rb", buffering=0)
    )
    stopping = asyncio.ensure_future((stop or asyncio.Event()).wait())
    either: set[asyncio.Future[Any]] = {incoming.closed, outgoing.closed, stopping}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        reading.close()
        await conversation.close()
        outgoing.outbox.flush()
        transport.close()
        await pumped_out.drained()


def _own(number: int, instead: int) -> int:
    """Our own copy of a standard descriptor, with something else in its place."""
    own = os.dup(number)
    os.dup2(instead, number)
    os.close(instead)
    return own


class _Pump(NamedTuple):
    """The end of a pipe, and the thread that carries what passes through it, where one is needed."""

    end: int
    thread: threading.Thread | None = None

    async def drained(self) -> None:
        if self.thread is not None:
            await asyncio.to_thread(self.thread.join, LAST_WORDS)


def _pump_in(own: int) -> _Pump:
    if _is_pipe(own):
        return _Pump(own)
    taken, given = os.pipe()
    return _Pump(taken, _carry(own, given))


def _pump_out(own: int) -> _Pump:
    if _is_pipe(own):
        return _Pump(own)
    taken, given = os.pipe()
    return _Pump(given, _carry(taken, own))


def _is_pipe(number: int) -> bool:
    """An event loop can wait for these. A file or /dev/null is always ready, which libuv takes for a bug of ours."""
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _carry(source: int, target: int) -> threading.Thread:
    def carry() -> None:
        reading, writing = os.fdopen(source, "rb", buffering=0), os.fdopen(target, "wb")
        with suppress(OSError), reading, writing:
            while data := reading.read(CHUNK):
                writing.write(data)
                writing.flush()

    thread = threading.Thread(target=carry, name="remuda-stdio", daemon=True)
    thread.start()
    return thread
