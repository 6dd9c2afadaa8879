"""Connections to a model's service: kept open between calls, because to open one takes longer than all the rest."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast
from urllib.parse import urlsplit

from remuda.domain.errors import EffectFailed, Invalid

CONNECT_WITHIN = 20.0  # seconds
IDLE_AT_MOST = 25.0  # seconds; services close what is idle for longer, and just when it is wanted
KEPT_OPEN = 32


@dataclass(frozen=True, slots=True)
class Upstream:
    url: str
    key: str  # the name of the variable that has the key; empty for a service that wants none


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool
    prefix: str  # of every path

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def address_of(url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Invalid(f"{url[:200]!r} is no address of a model's service: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise Invalid(f"{url[:200]!r} is no address of a model's service; it must read like https://api.example.com")
    tls = parts.scheme == "https"
    return Address(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))


class Taker(Protocol):
    def take(self, data: bytes) -> None: ...

    def lost(self) -> None: ...


class Line(asyncio.Protocol):
    """One connection. What comes goes to whoever has it."""

    def __init__(self) -> None:
        self.taker: Taker | None = None
        self.open = True
        self.used = False  # it has carried a whole call before
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None, "the connection was not made"
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass of it

    def data_received(self, data: bytes) -> None:
        if self.taker is None:
            self.close()  # it speaks without being asked
        else:
            self.taker.take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        self.open = False
        taker, self.taker = self.taker, None
        if taker is not None:
            taker.lost()

    def close(self) -> None:
        self.open = False
        self.transport.abort()


@cache
def _trust() -> ssl.SSLContext:
    """Made once, and not before somebody calls: to read all the authorities takes a tenth of a second."""
    return ssl.create_default_context()


class Lines:
    """The connections to one service."""

    def __init__(self, url: str) -> None:
        self.address = address_of(url)
        self._idle: list[Line] = []

    async def take(self, *, fresh: bool = False) -> Line:
        """A connection, one that is open already if there is one. EffectFailed when the service cannot be reached."""
        loop = asyncio.get_running_loop()
        while self._idle and not fresh:
            line = self._idle.pop()
            if line.open and loop.time() - line.idle_since < IDLE_AT_MOST:
                return line
            line.close()
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                _, line = await loop.create_connection(
                    Line, self.address.host, self.address.port, ssl=_trust() if self.address.tls else None
                )
        except (OSError, TimeoutError, ssl.SSLError) as error:
            why = str(error) or "it does not answer"
            raise EffectFailed(f"the model's service at {self.address.authority} cannot be reached: {why}") from error
        return line

    def give_back(self, line: Line) -> None:
        line.taker = None
        if not line.open or len(self._idle) >= KEPT_OPEN:
            line.close()
            return
        line.used, line.idle_since = True, asyncio.get_running_loop().time()
        self._idle.append(line)

    def close(self) -> None:
        for line in self._idle:
            line.close()
        self._idle.clear()


def lines_of(upstreams: Mapping[str, Upstream]) -> dict[str, Lines]:
    """By API. Two that are served at one address share its connections."""
    by_url = {upstream.url: Lines(upstream.url) for upstream in upstreams.values()}
    return {api: by_url[upstream.url] for api, upstream in upstreams.items()}
