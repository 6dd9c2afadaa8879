"""Questions in both directions over one pipe: those that we wait for, and those that wait for us."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from remuda.agents import Answered, Ask, Asked
from remuda.domain.errors import Invalid, RemudaError

T = TypeVar("T")


async def allow_all(_: Asked) -> Answered:
    return Answered(allow=True)


def whom_to_ask(options: Iterable[tuple[str, str]], ask: Ask) -> Ask:
    """Who answers the agent's questions: whoever starts it, or nobody because all is allowed.

    That is decided here and not by a flag of the program's: Claude Code refuses its own to root.
    """
    match dict(options).get("permissions", "ask"):
        case "ask":
            return ask
        case "bypass":
            return allow_all
        case other:
            raise Invalid(f"permissions cannot be {other!r}", possible=("ask", "bypass"))


class Awaited(Generic[T]):
    """Replies that someone waits for, by the number under which each was asked."""

    def __init__(self) -> None:
        self.fault: RemudaError | None = None
        self._waiting: dict[int, asyncio.Future[T]] = {}
        self._asked = 0

    async def ask(self, send: Callable[[int], None]) -> T:
        """Send under a fresh number and wait for its reply, or for the fault that makes one impossible."""
        return await self.send(send)

    def send(self, send: Callable[[int], None]) -> "asyncio.Future[T]":
        """It is sent when this returns: what is sent afterwards, such as a cancel, comes after it."""
        if self.fault:
            raise self.fault
        self._asked += 1
        number = self._asked
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda _: self._waiting.pop(number))
        self._waiting[number] = reply
        send(number)
        return reply

    def resolve(self, number: int, reply: T) -> None:
        waiting = self._waiting.get(number)
        if waiting and not waiting.done():
            waiting.set_result(reply)

    def fail(self, fault: RemudaError) -> None:
        """Nothing more can be understood. Whoever waits, now or later, learns why; the first reason stays."""
        self.fault = self.fault or fault
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.fault)


Key = int | str | None


class Questions:
    """What the agent asks before it uses a tool. Each is answered once, unless the agent takes it back."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._open: dict[Key, asyncio.Task[None]] = {}

    def put(self, key: Key, asked: Asked, reply: Callable[[Answered], None]) -> None:
        self.withdraw(key)
        self._open[key] = task = asyncio.create_task(self._answer(asked, reply))
        task.add_done_callback(lambda done: self._forget(key, done))

    def withdraw(self, key: Key) -> None:
        """The agent no longer waits for this one: whoever is asked may stop thinking about it."""
        if task := self._open.pop(key, None):
            task.cancel()

    def withdraw_all(self) -> tuple[Key, ...]:
        """Those that were still open."""
        keys = tuple(self._open)
        for key in keys:
            self.withdraw(key)
        return keys

    async def _answer(self, asked: Asked, reply: Callable[[Answered], None]) -> None:
        try:
            answered = await self._ask(asked)
        except Exception as error:  # an agent that waits for ever for a broken answer is worse than a plain no
            answered = Answered(allow=False, why=f"Remuda could not put the question: {error}")
        reply(answered)

    def _forget(self, key: Key, done: asyncio.Task[None]) -> None:
        if self._open.get(key) is done:
            del self._open[key]
