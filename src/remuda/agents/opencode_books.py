"""The books of opencode: it serves its sessions over HTTP on this machine, also while it speaks ACP.

Its ACP answer counts only the last model call of a turn, and names no cause when one fails. Its own message list has
every call, with tokens, price and the service's status. The port is open to everyone on the machine unless there is a
password, so there is one.
"""

import asyncio
import base64
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from time import time
from typing import TypeVar

import msgspec
from msgspec import Struct

from remuda.agents import Launch, Retry
from remuda.agents.books import Kept, Page
from remuda.agents.failures import Cause, cause
from remuda.domain.failure import Failure
from remuda.domain.state import Usage

WITHIN = 3.0  # seconds that a look into the books may take
FIRST_LOOK = 20  # messages; twice as many each time that none of them is known
MOST_BYTES = 64 * 1024 * 1024
NANOS = 1_000_000_000

T = TypeVar("T")


class _Cache(Struct):
    read: int = 0
    write: int = 0


class _Tokens(Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)


class _ErrorData(Struct, rename="camel"):
    message: str = ""
    status_code: int = 0
    response_headers: dict[str, str] = {}
    response_body: str = ""


class _Error(Struct):
    name: str = ""
    data: _ErrorData = msgspec.field(default_factory=_ErrorData)


class _Info(Struct):
    id: str
    role: str = ""
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)
    cost: Decimal = Decimal(0)
    model: str = msgspec.field(name="modelID", default="")
    error: _Error | None = None


class _Entry(Struct):
    info: _Info


class _State(Struct):
    type: str = ""
    attempt: int = 0
    message: str = ""
    next: float = 0.0  # milliseconds since 1970


class OpencodeBooks:
    def __init__(self, _launch: Launch) -> None:
        self._port = _free_port()
        self._password = secrets.token_urlsafe(24)

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("--hostname", "127.0.0.1", "--port", str(self._port))

    @property
    def env(self) -> Mapping[str, str]:
        return {"OPENCODE_SERVER_USERNAME": "remuda", "OPENCODE_SERVER_PASSWORD": self._password}

    async def page(self, ref: str, known: frozenset[str]) -> Page:
        limit = FIRST_LOOK
        while True:
            entries = await self._get(f"/session/{ref}/message?limit={limit}", list[_Entry]) or []
            ids = {each.info.id for each in entries}
            if len(entries) < limit or known & ids:
                return page(entries)
            limit *= 2

    async def retry(self, ref: str) -> Retry | None:
        states = await self._get("/session/status", dict[str, _State]) or {}
        state = states.get(ref)
        if state is None or state.type != "retry":
            return None
        failure = cause(state.message).failure
        return Retry(state.attempt, failure, state.message, max(0.0, state.next / 1000 - time()))

    async def _get(self, target: str, shape: type[T]) -> T | None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, msgspec.MsgspecError):
            async with asyncio.timeout(WITHIN):
                return msgspec.json.decode(await self._body(target), type=shape)
        return None

    async def _body(self, target: str) -> bytes:
        key = base64.b64encode(f"remuda:{self._password}".encode()).decode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=MOST_BYTES)
        try:
            # HTTP/1.0, so that the answer comes whole and ends where the connection does.
            writer.write(f"GET {target} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(b" ", 2)[1] != b"200":
                raise OSError(f"opencode answered {head[:60]!r}")
            return await reader.read(-1)
        finally:
            writer.close()


def page(entries: Sequence[_Entry]) -> Page:
    """Each answer of the model is a message; one that is still being made has no tokens yet and is left for later."""
    answers = [each.info for each in entries if each.info.role == "assistant"]
    calls = [Kept(each.id, _usage(each), each.model) for each in answers if _finished(each)]
    error = answers[-1].error if answers else None
    if error is None:
        return Page(calls)
    return Page(calls, error.data.message or error.name, _cause(error))


def _finished(info: _Info) -> bool:
    used = info.tokens
    return bool(used.input or used.output or used.cache.read)


def _usage(info: _Info) -> Usage:
    used = info.tokens
    return Usage(
        input_tokens=used.input,
        output_tokens=used.output + used.reasoning,
        cache_read_tokens=used.cache.read,
        cache_creation_tokens=used.cache.write,
        context_tokens=used.input + used.cache.read + used.cache.write,
        # A model whose price opencode does not know costs 0 there. Unknown is the truth.
        cost_nanousd=int((info.cost * NANOS).to_integral_value()) or None,
    )


def _cause(error: _Error) -> Cause:
    data = error.data
    words = f"{data.message} {data.response_body}"
    known = cause(words, code=data.status_code, name=error.name)
    after = next((value for name, value in data.response_headers.items() if name.lower() == "retry-after"), "")
    if known.failure is Failure.RATE_LIMITED and after.isdigit():
        return Cause(known.failure, float(after))
    return known


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
