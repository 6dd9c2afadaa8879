"""A program's connection to the meter: requests come in whole, answers go out as they come."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, cast

import h11

from remuda.meter.demand import LARGEST_REQUEST

log = logging.getLogger("remuda.meter")

LONGEST_HEAD = 64 << 10

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Headers
    body: bytes
    keeps: bool  # the program means to use the connection again

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")


class Flow(Protocol):
    """An answer on its way: who sends it can be told to wait, and that nobody is there any more."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abandon(self) -> None: ...


class Caller(asyncio.Protocol):
    def __init__(self, serve: Callable[["Caller", Request], Awaitable[bool]], all_callers: set["Caller"]) -> None:
        self.flow: Flow | None = None  # the answer that is under way
        self.gone = False
        self._serve = serve
        self._all = all_callers
        self._transport: asyncio.Transport | None = None
        self._serving: asyncio.Task[None] | None = None
        self._early = b""
        self._begin()

    def _begin(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LONGEST_HEAD)
        self._head: h11.Request | None = None
        self._body = bytearray()

    @property
    def serving(self) -> asyncio.Task[None] | None:
        return self._serving

    # --- what asyncio says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it
        self._all.add(self)

    def data_received(self, data: bytes) -> None:
        if self._serving is not None:
            self._early += data
            if len(self._early) > LONGEST_HEAD:  # who does not wait for an answer must wait for room
                self._pause_reading()
            return
        self._read(data)

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
        try:
            self._http.receive_data(data)
            while self._next():
                pass
        except h11.RemoteProtocolError as error:
            self.answer(
                error.error_status_hint, b'{"error":{"message":"this is no HTTP request that the meter reads"}}'
            )
            self.close()

    def _next(self) -> bool:
        event = self._http.next_event()
        match event:
            case h11.Request():
                self._head = event
                if self._http.they_are_waiting_for_100_continue:
                    self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            case h11.Data():
                self._body += event.data
                if len(self._body) > LARGEST_REQUEST:
                    raise h11.RemoteProtocolError("too large", error_status_hint=413)
            case h11.EndOfMessage():
                self._serving = asyncio.ensure_future(self._answer_it())
                return False
            case _:
                return False
        return True

    async def _answer_it(self) -> None:
        head, trailing = self._head, bytes(self._http.trailing_data[0])
        assert head is not None
        headers = list(head.headers)
        closing = any(key == b"connection" and b"close" in value.lower() for key, value in headers)
        keeps = head.http_version == b"1.1" and not closing
        request = Request(head.method.decode(), head.target.decode("latin-1"), headers, bytes(self._body), keeps)
        self._begin()
        keep = False
        try:
            keep = await self._serve(self, request)
        except Exception:
            log.exception("a call could not be passed on")
        finally:
            self._serving = None
            if not keep or not keeps:
                self.close()
        self._resume_reading()
        early, self._early = trailing + self._early, b""
        if early and not self.gone:
            self._read(early)

    # --- answers ---

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.gone:
            self._transport.write(data)

    def answer(self, status: int, body: bytes) -> None:
        """A whole answer of our own."""
        reason = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 404: "Not Found"}.get(
            status, "Error"
        )
        head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
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
