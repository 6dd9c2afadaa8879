"""One client and one desk: requests under way, questions to the client, what it listens for. Knows no transport."""

import asyncio
import logging
from typing import Protocol, assert_never

import msgspec
from msgspec import Raw, Struct

from remuda.domain.errors import RemudaError
from remuda.mcp import Desk, GiveUp, eras
from remuda.mcp.eras import Wanted, Who
from remuda.mcp.jsonrpc import (
    EMPTY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Failure,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    RpcError,
    fault,
    notification,
    raw,
    request,
    result,
)

log = logging.getLogger("remuda.mcp")

CANCELLED = "notifications/cancelled"
MOST_AT_ONCE = 1024  # requests of one client that may be under way


class Outlet(Protocol):
    """How messages reach the client. None of these waits."""

    def tell(self, message: bytes, about: Id | None) -> None:
        """A notification or a question, about a request of the client's if there is one."""

    def answer(self, to: Id, message: bytes) -> None:
        """The result of that request: the last that is said about it."""

    def refuse(self, to: Id | None, error: RpcError) -> None:
        """Instead of a result. Without an id for what was no request at all."""

    def behind(self) -> bool:
        """Whether so much waits for a client which does not read it that it is told no more for now."""

    def drop(self, to: Id) -> None:
        """The client no longer wants to know: nothing more is said about it."""


class _Cancel(Struct, rename="camel"):
    request_id: Id | None = None
    reason: str = ""


_read_cancel = msgspec.json.Decoder(_Cancel).decode


class _Passing:
    """A request that the desk has passed on: no task waits for its answer."""

    def __init__(self, asked: Request, working: "dict[Id, asyncio.Task[None] | _Passing]", outlet: Outlet) -> None:
        self._asked, self._working, self._outlet = asked, working, outlet
        self.give_up: GiveUp = lambda: None

    def settle(self, answer: Raw | Exception) -> None:
        number = self._asked.id
        if self._working.get(number) is not self:
            return  # it was given up
        del self._working[number]
        if isinstance(answer, Raw):
            self._outlet.answer(number, result(number, answer))
        else:
            self._outlet.refuse(number, _refusal(self._asked, answer))

    def cancel(self) -> None:
        del self._working[self._asked.id]
        self.give_up()
        self._outlet.drop(self._asked.id)


class Conversation:
    """Both directions between one client and a desk. What comes in is given to `receive`."""

    def __init__(self, desk: Desk, outlet: Outlet) -> None:
        self.who = Who()
        self._desk, self._outlet = desk, outlet
        self._working: dict[Id, asyncio.Task[None] | _Passing] = {}
        self._asked: dict[Id, asyncio.Future[Raw]] = {}
        self._number = 0
        self._listening: dict[Id, Wanted] = {}
        self._over = asyncio.Event()
        desk.joined(self)

    def receive(self, message: Message) -> None:
        match message:
            case Request():
                self._begin(message)
            case Notification():
                self._hear(message)
            case Result():
                self._settle(message.id, message)
            case Failure():
                self._settle(message.id, message)
            case Malformed():
                self._outlet.refuse(message.id, RpcError(message.code, message.why))
            case _:
                assert_never(message)

    @property
    def busy(self) -> bool:
        return bool(self._working)

    def forget(self, number: Id) -> None:
        """Nobody waits for the answer to this request any longer."""
        if work := self._working.get(number):
            work.cancel()

    async def close(self) -> None:
        """The client is gone: stop all that was done for it. Who says so a second time says nothing new."""
        if self._over.is_set():
            return
        self._over.set()
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(RpcError(INTERNAL_ERROR, "the client went away before it answered"))
                waiting.exception()  # whoever waited may be gone as well
        work = list(self._working.values())
        for each in work:
            each.cancel()
        await asyncio.gather(*(each for each in work if isinstance(each, asyncio.Task)), return_exceptions=True)
        self._desk.left(self)

    # --- to the client ---

    def notify(self, method: str, params: Raw, *, about: Id | None = None) -> None:
        if method != eras.TOOLS_CHANGED and self._outlet.behind():
            return  # a server that tells without end would else keep the answers of all others from the client
        if self.who.modern and about is None:
            for subscription, wanted in self._listening.items():
                if wanted.hears(method, params):
                    told = eras.to_listener(subscription, params)
                    self._outlet.tell(notification(method, told), subscription)
        elif self.who.protocol:  # before the handshake nobody may be told anything
            self._outlet.tell(notification(method, params), about)

    async def ask(self, method: str, params: Raw, *, about: Id | None = None) -> Raw:
        if self.who.modern:
            raise RpcError(METHOD_NOT_FOUND, f"this client cannot be asked: in {self.who.protocol} servers never ask")
        if self._over.is_set():
            raise RpcError(INTERNAL_ERROR, "the client is gone")
        self._number += 1
        number = f"remuda-{self._number}"
        waiting: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        try:
            self._outlet.tell(request(number, method, params), about)
            return await waiting
        except asyncio.CancelledError:
            self._outlet.tell(notification(CANCELLED, raw({"requestId": number})), about)
            raise
        finally:
            del self._asked[number]

    # --- from the client ---

    def _begin(self, asked: Request) -> None:
        if asked.id in self._working:
            why = f"a request of the id {asked.id!r} is under way already"
            self._outlet.refuse(asked.id, RpcError(INVALID_REQUEST, why))
            return
        if len(self._working) >= MOST_AT_ONCE:
            why = f"{MOST_AT_ONCE} requests are under way; wait for some of them"
            self._outlet.refuse(asked.id, RpcError(INTERNAL_ERROR, why))
            return
        if self._passed_on(asked):
            return
        task = asyncio.create_task(self._reply(asked))
        self._working[asked.id] = task
        task.add_done_callback(lambda _: self._working.pop(asked.id, None))

    def _passed_on(self, asked: Request) -> bool:
        """Most of what comes is for somebody behind the desk, and a task for each would cost more than all the rest."""
        if not self.who.protocol or self.who.modern or eras.stands_alone(asked.params):
            return False
        passing = _Passing(asked, self._working, self._outlet)
        self._working[asked.id] = passing  # before it is passed on: it may be settled at once
        try:
            give_up = self._desk.pass_on(self, asked, passing.settle)
        except Exception as error:
            passing.settle(error)
            return True
        if give_up is None:
            del self._working[asked.id]
            return False
        passing.give_up = give_up
        return True

    async def _reply(self, asked: Request) -> None:
        try:
            who = eras.envelope(asked.params)
            if who is not None:
                self.who = who
            answer = await self._answer(asked)
            if who is not None:
                answer = eras.stamped(asked.method, answer)
        except asyncio.CancelledError:
            self._outlet.drop(asked.id)
            raise
        except Exception as error:
            self._outlet.refuse(asked.id, _refusal(asked, error))
        else:
            self._outlet.answer(asked.id, result(asked.id, answer))

    async def _answer(self, asked: Request) -> Raw:
        match asked.method:
            case "initialize":
                self.who = eras.hello(asked.params)
                return eras.welcome(self._desk.offer(self.who), self.who)
            case "server/discover":
                return eras.discovered(self._desk.offer(self.who))
            case "ping":
                return EMPTY
            case "subscriptions/listen":
                return await self._listen(asked)
            case _ if not self.who.protocol:
                raise RpcError(INVALID_REQUEST, f"{asked.method} came before initialize")
            case _:
                return await self._desk.answer(self, asked)

    async def _listen(self, asked: Request) -> Raw:
        """Until the client cancels it or leaves: the answer is only the end."""
        wanted = eras.wanted(asked.params)
        self._listening[asked.id] = wanted
        try:
            if wanted.resourceSubscriptions:
                wanted = self._listening[asked.id] = wanted.only(await self._desk.watch(self, self._watched()))
            told = eras.acknowledged(asked.id, wanted)
            self._outlet.tell(notification("notifications/subscriptions/acknowledged", told), asked.id)
            await self._over.wait()
        finally:
            del self._listening[asked.id]
            if wanted.resourceSubscriptions:
                await self._desk.watch(self, self._watched())
        return raw({"_meta": {eras.SUBSCRIPTION: asked.id}})

    def _watched(self) -> frozenset[str]:
        return frozenset(uri for wanted in self._listening.values() for uri in wanted.resourceSubscriptions or ())

    def _hear(self, told: Notification) -> None:
        if told.method != CANCELLED:
            self._desk.hear(self, told)
            return
        try:
            number = _read_cancel(told.params).request_id
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if number is not None:
            self.forget(number)

    def _settle(self, number: Id | None, answer: Result | Failure) -> None:
        waiting = self._asked.get(number) if number is not None else None
        if waiting is None or waiting.done():
            return  # answered twice, or too late
        if isinstance(answer, Result):
            waiting.set_result(answer.result)
        else:
            waiting.set_exception(fault(answer.error))


def _refusal(asked: Request, error: Exception) -> RpcError:
    if isinstance(error, RpcError):
        return error
    if isinstance(error, RemudaError):
        return RpcError(INTERNAL_ERROR, str(error))
    log.error("%s broke", asked.method, exc_info=error)
    return RpcError(INTERNAL_ERROR, "this broke inside Remuda; its log has more")
