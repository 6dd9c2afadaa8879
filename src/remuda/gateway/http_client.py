"""As much of an HTTP client as MCP needs: one request on one connection, whose answer may be a stream without end.

Redirects are not followed: a token would go along to whoever they lead to.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

import h11

from remuda.gateway.faults import ServerFault, Unreachable

CONNECT_SECONDS = 15.0
LARGEST_BODY = 64 << 20
CHUNK = 64 << 10


class Exchange:
    """A response that is being read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def send(self, request: h11.Request, body: bytes) -> None:
        parts = (request, h11.Data(data=body), h11.EndOfMessage()) if body else (request, h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        await self._writer.drain()
        while not isinstance(event := await self._next(), h11.Response):
            pass
        self.status = event.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}

    async def chunks(self) -> AsyncIterator[bytes]:
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield bytes(event.data)

    async def body(self) -> bytes:
        data = bytearray()
        async for chunk in self.chunks():
            data += chunk
            if len(data) > LARGEST_BODY:
                raise ServerFault(f"the answer has more than {LARGEST_BODY >> 20} MiB")
        return bytes(data)

    @property
    def closed(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    @property
    def reusable(self) -> bool:
        """All of it is read, and the other side keeps the connection open."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self.closed

    def again(self) -> "Exchange":
        return Exchange(self._reader, self._writer)

    def close(self) -> None:
        self._writer.close()

    async def _next(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type) or event is h11.PAUSED
                return event
            data = await self._reader.read(CHUNK)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise ConnectionResetError("the connection was closed before there was an answer")
            self._http.receive_data(data)


class HttpClient:
    """Requests to one server. A connection that is free is used again."""

    def __init__(self, name: str, url: str) -> None:
        self.url = url
        self._name = name
        self._parts = urlsplit(url)
        self._free: list[Exchange] = []

    async def send(self, method: str, headers: Mapping[str, str], body: bytes = b"", target: str = "") -> Exchange:
        host = self._parts.netloc
        always = {"Host": host, "User-Agent": "remuda", "Content-Length": str(len(body))}
        request = h11.Request(
            method=method, target=target or self._target(), headers=list({**always, **headers}.items())
        )
        try:
            # One that turns out to be closed is not tried again: the call may have been done before it was.
            return await self._ask(self._take_free() or await self._connect(), request, body)
        except (OSError, h11.ProtocolError, TimeoutError, ssl.SSLError) as error:
            where = f"{self._parts.scheme}://{host}"
            raise Unreachable(f"the tool server {self._name!r} at {where} cannot be reached: {_why(error)}") from error

    def _take_free(self) -> Exchange | None:
        while self._free:
            exchange = self._free.pop()
            if not exchange.closed:
                return exchange
            exchange.close()
        return None

    async def _ask(self, exchange: Exchange, request: h11.Request, body: bytes) -> Exchange:
        try:
            await exchange.send(request, body)
        except BaseException:
            exchange.close()
            raise
        return exchange

    def give_back(self, exchange: Exchange) -> None:
        if exchange.reusable:
            self._free.append(exchange.again())
        else:
            exchange.close()

    def close(self) -> None:
        while self._free:
            self._free.pop().close()

    def _target(self) -> str:
        return (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")

    async def _connect(self) -> Exchange:
        secure = self._parts.scheme == "https"
        port = self._parts.port or (443 if secure else 80)
        context = await asyncio.to_thread(ssl.create_default_context) if secure else None
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(self._parts.hostname, port, ssl=context)
        return Exchange(reader, writer)


def _why(error: Exception) -> str:
    """In the system's own words, without where in our program it was."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number and number > 0 else str(error) or type(error).__name__
