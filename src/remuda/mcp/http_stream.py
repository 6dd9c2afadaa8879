"""Messages on their way to one HTTP response: as plain JSON when the answer is all there is, else as a stream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from remuda.mcp import eras
from remuda.mcp.http_checks import accepts
from remuda.mcp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Id,
    RpcError,
    failure,
)

MOST_TOLD, MOST_BYTES = 1024, 8 << 20  # of messages that may wait for a client which does not read its stream
PING = 15.0  # seconds without a word, after which a stream shows that it is alive

# The newer era says in the status what went wrong; the older one only in the body.
_STATUS = dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, eras.UNSUPPORTED_VERSION), 400)
_STATUS[METHOD_NOT_FOUND] = 404


class Said(NamedTuple):
    message: bytes
    last: bool = False
    status: int = 200


class Stream:
    """A queue that never makes the sender wait: to a client that does not read, the oldest is lost."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Said | None] = asyncio.Queue(MOST_TOLD)
        self._bytes = 0

    def put(self, said: Said | None) -> None:
        """None is the end, for one that ends without an answer."""
        size = len(said.message) if said else 0
        while self._waiting.full() or (self._bytes and self._bytes + size > MOST_BYTES):
            self._taken(self._waiting.get_nowait())
        self._bytes += size
        self._waiting.put_nowait(said)

    async def get(self) -> Said | None:
        return self._taken(await self._waiting.get())

    def _taken(self, said: Said | None) -> Said | None:
        self._bytes -= len(said.message) if said else 0
        return said

    # --- as the outlet of a conversation that is one request ---

    def tell(self, message: bytes, about: Id | None) -> None:  # noqa: ARG002 - there is only one
        self.put(Said(message))

    def answer(self, to: Id, message: bytes) -> None:  # noqa: ARG002
        self.put(Said(message, last=True))

    def refuse(self, to: Id | None, error: RpcError) -> None:
        self.put(Said(failure(to, error.body), last=True, status=_STATUS.get(error.code, 200)))

    def behind(self) -> bool:
        return False  # what is too much is lost here

    def drop(self, to: Id) -> None:  # noqa: ARG002
        self.put(Said(b"", last=True, status=202))


async def respond(request: Request, stream: Stream, done: Callable[[], Awaitable[None]]) -> Response:
    """The response that fits what is said. `done` is called once, when all is said or nobody listens any more."""
    as_events = accepts(request.headers, "text/event-stream")
    gone = asyncio.ensure_future(request.receive())  # the body is read, so it can only tell of the client's leaving
    try:
        while True:
            coming = asyncio.ensure_future(stream.get())
            await asyncio.wait({coming, gone}, timeout=PING if as_events else None, return_when="FIRST_COMPLETED")
            if gone.done() and not coming.done():
                coming.cancel()
                await done()
                return Response(status_code=400)  # to nobody
            if not coming.done():
                coming.cancel()
                return as_event_stream(stream, done, Said(b""))
            said = coming.result()
            if said is None or said.last:
                await done()
                return _plain(said)
            if as_events:
                return as_event_stream(stream, done, said)
    finally:
        gone.cancel()


def as_event_stream(stream: Stream, done: Callable[[], Awaitable[None]], first: Said) -> Response:
    headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(stream, done, first), media_type="text/event-stream", headers=headers)


async def _events(stream: Stream, done: Callable[[], Awaitable[None]], first: Said) -> AsyncIterator[bytes]:
    said: Said | None = first
    try:
        while said is not None:
            yield b"event: message\r\ndata: %b\r\n\r\n" % said.message if said.message else b": still here\r\n\r\n"
            if said.last:
                return
            try:
                said = await asyncio.wait_for(stream.get(), PING)
            except TimeoutError:
                said = Said(b"")
    finally:
        await done()


def _plain(said: Said | None) -> Response:
    if said is None:
        return Response(status_code=404)  # the session ended in the middle of it
    return Response(said.message, said.status, media_type="application/json")
