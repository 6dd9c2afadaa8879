"""A conversation with one tool server: the handshake, questions in both directions, and its end."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, assert_never

import msgspec
from msgspec import Raw, Struct

from remuda.gateway.faults import NoAnswer, ServerFault
from remuda.gateway.link import Hear, Link, Lost
from remuda.gateway.listening import ACKNOWLEDGED, Listening
from remuda.mcp import Settle, eras
from remuda.mcp.jsonrpc import (
    EMPTY,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    RpcError,
    decode,
    failure,
    fault,
    notification,
    raw,
    request,
    result,
)
from remuda.version import __version__

log = logging.getLogger("remuda.gateway")

MOST_PAGES, MOST_ITEMS, MOST_BYTES = 1000, 20_000, 16 << 20  # of one list
MOST_QUESTIONS = 64  # of a server that nobody has answered yet
LONGEST_WAIT = 300.0  # seconds for an answer, where nobody says otherwise
Open = Callable[[Hear, Lost], Awaitable[Link]]


class Ears(NamedTuple):
    """Who is told what a server says without being asked, and who answers when it asks."""

    notified: Callable[[Notification], None]
    asked: Callable[[Request], Awaitable[Raw]]
    lost: Callable[[ServerFault], None]


class _Waiting(NamedTuple):
    """Who waits for an answer, and how long."""

    settle: Settle
    method: str
    seconds: float
    until: float  # by the loop's clock


class _Welcome(Struct, rename="camel"):
    protocol_version: str = ""
    capabilities: dict[str, Any] = {}
    instructions: str = ""


_read_welcome = msgspec.json.Decoder(_Welcome).decode


class Connection:
    def __init__(self, name: str, ears: Ears) -> None:
        self.name = name
        self.capabilities: Mapping[str, Any] = {}
        self.instructions = ""
        self._ears = ears
        self._link: Link | None = None
        self._modern: Mapping[str, Any] | None = None  # the envelope of each request, where the server wants one
        self._number = 0
        self._waiting: dict[int, _Waiting] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._asking: set[asyncio.Task[None]] = set()
        self._fault: ServerFault | None = None
        self._ending = False
        self._listening: Listening | None = None  # to a server of the newer era

    @property
    def alive(self) -> bool:
        return self._link is not None and self._fault is None

    @property
    def link(self) -> Link:
        assert self._link is not None
        return self._link

    async def open(self, start: Open, capabilities: Mapping[str, Any]) -> None:
        """Connect and say hello. `capabilities` are those of the client for whom we speak."""
        self._link = await start(self._hear, self._lose)
        info = {"name": "remuda", "version": __version__}
        hello = {"protocolVersion": eras.HANDSHAKE[-1], "capabilities": capabilities, "clientInfo": info}
        try:
            welcome = _welcome(self.name, await self.ask("initialize", raw(hello)))
        except RpcError as refusal:
            welcome = await self._discover(info, refusal)
        else:
            self._link.speak(welcome.protocol_version)
            self.tell("notifications/initialized", EMPTY)
            await self._link.flush()
        self.capabilities, self.instructions = welcome.capabilities, welcome.instructions
        if self._modern is not None:
            self._listening = Listening(self.name, self.ask, welcome.capabilities)

    async def _discover(self, info: Mapping[str, str], refusal: RpcError) -> _Welcome:
        """A server of the newer era alone refuses the handshake, each in its own words; so it is asked in its own way.
        One that refuses that too has said at first what is wrong."""
        self._modern = {eras.VERSION: eras.MODERN[-1], eras.INFO: info, eras.CAPABILITIES: {}}
        self.link.speak(eras.MODERN[-1])
        try:
            return _welcome(self.name, await self.ask("server/discover", EMPTY))
        except RpcError:
            who = f"the tool server {self.name!r}"
            why = refusal.message.removeprefix(f"{who} ")  # as our own words begin
            raise ServerFault(f"{who} refused the handshake: {why}") from refusal

    async def watch(self, uri: str, *, on: bool) -> None:
        """Have it tell when a resource changes, or no longer."""
        if self._listening is not None:
            await self._listening.watch(uri, on=on)
        else:
            await self.ask("resources/subscribe" if on else "resources/unsubscribe", raw({"uri": uri}))

    async def ask(self, method: str, params: Raw, seconds: float = LONGEST_WAIT) -> Raw:
        """RpcError is the server's own answer; ServerFault means that there will be none."""
        answered: asyncio.Future[Raw | Exception] = asyncio.get_running_loop().create_future()

        def settle(answer: Raw | Exception) -> None:
            if not answered.done():
                answered.set_result(answer)

        number = self.begin(method, params, seconds, settle)
        try:
            answer = await answered
        except asyncio.CancelledError:
            self.give_up(number)
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    def begin(self, method: str, params: Raw, seconds: float, settle: Settle) -> int:
        """The same for who cannot wait: `settle` gets the answer or why there is none, once and at the latest when the
        seconds are over. Until then the number that is returned gives it up."""
        if self._fault is not None or self._link is None:
            raise self._fault or ServerFault(f"the tool server {self.name!r} is not connected")
        self._number += 1
        until = asyncio.get_running_loop().time() + seconds
        self._waiting[self._number] = _Waiting(settle, method, seconds, until)
        if until < self._alarm_at:
            self._set_alarm(until)
        self._link.send(request(self._number, method, self._dressed(params)), self._number)
        return self._number

    def give_up(self, number: int) -> bool:
        """Whether there was still something to give up: the server is told that nobody waits for it any longer."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None and self.alive and waiting.method not in ("initialize", "server/discover"):
            self.link.cancel(number)
        return waiting is not None

    def _set_alarm(self, until: float) -> None:
        """One for all that wait, at the first of their ends: nearly all are answered long before it rings."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = None, until
        if until < math.inf:
            self._alarm = asyncio.get_running_loop().call_at(until, self._ring)

    def _ring(self) -> None:
        now = asyncio.get_running_loop().time()
        for number, waiting in [each for each in self._waiting.items() if each[1].until <= now]:
            self.give_up(number)
            said = f"the tool server {self.name!r} did not answer {waiting.method} within {waiting.seconds:g} s"
            self._tell(waiting, NoAnswer(said + self.link.evidence()))
        self._set_alarm(min((waiting.until for waiting in self._waiting.values()), default=math.inf))

    def tell(self, method: str, params: Raw) -> None:
        if self.alive:
            self.link.send(notification(method, params), None)

    async def list_all(self, method: str, key: str) -> list[Raw]:
        """Every item of a list, however many pages it has."""
        found: list[Raw] = []
        size = 0
        cursor: Raw | None = None
        for _ in range(MOST_PAGES):
            page = _members(self.name, method, await self.ask(method, raw({"cursor": cursor}) if cursor else EMPTY))
            for item in _items(self.name, method, page.get(key, Raw(b"[]"))):
                size += len(item)
                if size > MOST_BYTES or len(found) == MOST_ITEMS:
                    log.warning("%s: the answers to %s have no end; the rest is left out", self.name, method)
                    return found
                found.append(item)
            cursor = page.get("nextCursor")
            if cursor is None or bytes(cursor) in (b"null", b'""'):
                break
        return found

    async def end(self) -> None:
        self._ending = True
        self._lose(ServerFault(f"the tool server {self.name!r} was stopped"))
        if self._link is not None:
            await self._link.end()
        await asyncio.gather(*self._asking, return_exceptions=True)

    # --- what comes ---

    def _hear(self, data: bytes) -> None:
        if not data.strip():
            return
        message: Message = decode(data)
        match message:
            case Result():
                self._settle(message)
            case Failure():
                self._settle(message)
            case Notification():
                if message.method == ACKNOWLEDGED and self._listening is not None:
                    self._listening.acknowledged()
                self._ears.notified(message)
            case Request():
                self._question(message)
            case Malformed():
                self._unreadable(data, message)
            case _:
                assert_never(message)

    def _question(self, asked: Request) -> None:
        if len(self._asking) >= MOST_QUESTIONS:
            why = f"{MOST_QUESTIONS} questions are open; wait for some of the answers"
            self.link.send(failure(asked.id, RpcError(INTERNAL_ERROR, why).body), None)
            return
        task = asyncio.create_task(self._reply(asked))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _unreadable(self, data: bytes, message: Malformed) -> None:
        """Many servers log to stdout. That is no reason to stop listening to them. But what was meant for somebody who
        waits is an answer, and no better one will come."""
        log.debug("%s: %s", self.name, message.why)
        if isinstance(message.id, int) and b'"jsonrpc"' in data and (waiting := self._waiting.pop(message.id, None)):
            said = f"the tool server {self.name!r} answered {waiting.method} in a way that cannot be read"
            self._tell(waiting, ServerFault(f"{said}: {message.why}"))

    def _settle(self, answer: Result | Failure) -> None:
        waiting = self._waiting.pop(answer.id, None) if isinstance(answer.id, int) else None
        if waiting is None:
            log.debug("%s answered %r, which nobody asks", self.name, answer.id)  # twice, or too late
        else:
            self._tell(waiting, answer.result if isinstance(answer, Result) else fault(answer.error))

    def _tell(self, waiting: _Waiting, answer: Raw | Exception) -> None:
        try:
            waiting.settle(answer)
        except Exception:  # a bug of ours with one answer must not cost the others theirs
            log.exception("%s: the answer to %s could not be taken", self.name, waiting.method)

    async def _reply(self, asked: Request) -> None:
        try:
            said = result(asked.id, EMPTY if asked.method == "ping" else await self._ears.asked(asked))
        except RpcError as error:
            said = failure(asked.id, error.body)
        except Exception as error:
            log.warning("%s asked %s and could not be answered: %s", self.name, asked.method, error)
            said = failure(asked.id, RpcError(METHOD_NOT_FOUND, "this client cannot answer that").body)
        if self.alive:
            self.link.send(said, None)

    def _lose(self, why: ServerFault) -> None:
        if self._fault is not None:
            return
        self._fault = why
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            self._tell(each, why)
        self._set_alarm(math.inf)
        for task in self._asking:
            task.cancel()
        if self._listening is not None:
            self._listening.stop()
        if not self._ending:
            self._ears.lost(why)

    def _dressed(self, params: Raw) -> Raw:
        if self._modern is None:
            return params
        parts = _members(self.name, "params", params)
        meta = _members(self.name, "_meta", parts.get("_meta", EMPTY))
        return raw({**parts, "_meta": {**meta, **self._modern}})


def _welcome(name: str, answer: Raw) -> _Welcome:
    try:
        return _read_welcome(answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ServerFault(f"the handshake of the tool server {name!r} cannot be read: {error}") from error


def _members(name: str, what: str, value: Raw) -> dict[str, Raw]:
    try:
        return msgspec.json.decode(value, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ServerFault(f"the answer of the tool server {name!r} to {what} cannot be read: {error}") from error


def _items(name: str, what: str, value: Raw) -> list[Raw]:
    try:
        return msgspec.json.decode(value, type=list[Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ServerFault(f"the answer of the tool server {name!r} to {what} cannot be read: {error}") from error
