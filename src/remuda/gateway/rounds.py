"""Calls of clients that cannot be asked in the middle of one, because each of their requests stands alone.

When the server asks something, such a call is answered for the time being: with the question, and a word by which to
come back. The client answers by calling again with that word; the call at the server has been waiting all the while.
"""

import asyncio
import itertools
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from remuda.mcp import Client
from remuda.mcp.jsonrpc import INTERNAL_ERROR, Id, Request, RpcError, members, raw

_REPLY = "inputResponses"


@dataclass(slots=True)
class Flight:
    """A call that is under way, and whose it is."""

    server: str
    client: Client
    request: Id
    progress: Raw | None  # the client's own token
    round: "Round | None" = None  # for a client that cannot be asked otherwise


class Round:
    """One call at a server, over as many requests of its client as it takes."""

    def __init__(self, flight: Flight, work: Coroutine[Any, Any, Raw]) -> None:
        self.flight = flight
        flight.round = self
        self._work = asyncio.create_task(work)
        self._work.add_done_callback(_taken_note_of)
        self._open: dict[str, tuple[Request, asyncio.Future[Raw]]] = {}
        self._asked = asyncio.Event()
        self._numbers = itertools.count(1)

    async def ask(self, request: Request) -> Raw:
        """A question of the server; answered when the client comes back."""
        number = str(next(self._numbers))
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._open[number] = (request, answer)
        self._asked.set()
        try:
            return await answer
        finally:
            self._open.pop(number, None)

    def answer(self, responses: Raw) -> None:
        for number, response in members(responses).items():
            if number in self._open and not self._open[number][1].done():
                self._open[number][1].set_result(response)

    async def next(self) -> Raw | None:
        """The result; or nothing, when the client is asked first. Who gives up the request gives up the call."""
        asked = asyncio.create_task(self._asked.wait())
        any_of: set[asyncio.Task[Any]] = {self._work, asked}
        try:
            await asyncio.wait(any_of, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            raise
        finally:
            asked.cancel()
        if self._work.done():
            return self._work.result()
        self._asked.clear()
        return None

    def questions(self, word: str) -> Raw:
        asked = {
            number: {"method": request.method, "params": request.params} for number, (request, _) in self._open.items()
        }
        return raw({"resultType": "input_required", "inputRequests": asked, "requestState": word})

    def over(self) -> bool:
        return self._work.done()

    def forget(self) -> None:
        self._work.cancel()


class Rounds:
    """Those that wait for their client to come back."""

    def __init__(self, most: int = 256) -> None:
        self._parked: dict[str, Round] = {}
        self._most = most

    def resume(self, parts: dict[str, Raw]) -> Round | None:
        """The call that a request comes back to, if it does."""
        word = bytes(parts.get("requestState", Raw(b""))).strip(b' "').decode(errors="replace")
        parked = self._parked.pop(word, None)
        if parked is not None and _REPLY in parts:
            parked.answer(parts[_REPLY])
        return parked

    async def next(self, going: Round) -> Raw:
        answer = await going.next()
        if answer is not None:
            return answer
        self._parked = {word: each for word, each in self._parked.items() if not each.over()}
        if len(self._parked) >= self._most:
            going.forget()
            raise RpcError(INTERNAL_ERROR, "too many calls wait for answers of their clients")
        word = secrets.token_urlsafe(16)
        self._parked[word] = going
        return going.questions(word)


def _taken_note_of(work: "asyncio.Task[Raw]") -> None:
    if not work.cancelled():
        work.exception()  # its client may never come back for it
