"""A program's connection to the meter: requests come in whole, answers go out as they come."""

import asyncio
import logging
import resource
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol, cast

from remuda.meter.wire import LONGEST_HEAD, Request, Requests

log = logging.getLogger("remuda.meter")

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 404: "Not Found"}
_moments = count()  # finer than any clock
_UNREAD = b'{"error":{"message":"this is no HTTP request that the meter reads"}}'


class Flow(Protocol):
    """An answer on its way: who sends it can be told to wait, and that nobody is there any more."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abandon(self) -> None: ...


def room() -> int:
    """How many connections there may be: each has another to a service, and the rest of the runtime needs files too."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 3


class Caller(asyncio.Protocol):
    def __init__(self, serve: Callable[["Caller", Request], Awaitable[bool]], all_callers: set["Caller"]) -> None:
        self.flow: Flow | None = None  # the answer that is under way
        self.gone = False
        self.waits_since = next(_moments)  # for a whole request
        self._serve = serve
        self._all = all_callers
        self._transport: asyncio.Transport | None = None
        self._serving: asyncio.Task[None] | None = None
        self._requests = Requests(lambda: self.write(b"HTTP/1.1 100 Continue\r\n\r\n"))
        self._waiting: deque[Request] = deque()
        self._early = bytearray()  # what came while an answer was under way

    @property
    def serving(self) -> asyncio.Task[None] | None:
        return self._serving

    # --- what asyncio says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        self._all.add(self)
        if len(self._all) > room():
            waiting = (each for each in self._all if each.serving is None)
            min(waiting, key=lambda each: each.waits_since).cut()

    def data_received(self, data: bytes) -> None:
        if self._serving is None:
            self._read(data)
            return
        self._early += data
        if len(self._early) > LONGEST_HEAD:  # who does not wait for an answer must wait for room
            self._pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        self.gone = True
        self._all.discard(self)
        if self.flow is not None:
            self.flow.abandon()
        elif self._serving is not None:
            self._serving.cancel()

    def pause_writing(self) -> None:
        if self.flow is not None:
            self.flow.pause()

    def resume_writing(self) -> None:
        if self.flow is not None:
            self.flow.resume()

    # --- requests ---

    def _read(self, data: bytes) -> None:
        self._waiting.extend(self._requests.feed(data))
        if self._waiting:
            self._serving = asyncio.ensure_future(self._answer_all())
        else:
            self._is_broken()

    async def _answer_all(self) -> None:
        keep = True
        try:
            while self._waiting and keep:
                keep = False
                request = self._waiting.popleft()
                keep = await self._serve(self, request) and request.keeps
        except Exception:
            log.exception("a call could not be passed on")
        finally:
            self._serving = None
            self.waits_since = next(_moments)
            if not keep:
                self.close()
        if keep and not self._is_broken():
            self._resume_reading()
            early, self._early = bytes(self._early), bytearray()
            if early and not self.gone:
                self._read(early)

    def _is_broken(self) -> bool:
        """Nothing more can be read from it: then it is told so and hung up on."""
        status = self._requests.broken
        if status is not None:
            self.answer(status, _UNREAD)
            self.close()
        return status is not None

    # --- answers ---

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.gone:
            self._transport.write(data)

    def answer(self, status: int, body: bytes) -> None:
        """A whole answer of our own."""
        head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.write(head.encode() + body)

    def cut(self) -> None:
        """At once: what is not sent yet is dropped."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _pause_reading(self) -> None:
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and not self.gone and not self._transport.is_reading():
            self._transport.resume_reading()
