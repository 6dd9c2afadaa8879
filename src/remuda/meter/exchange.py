"""One request to a model's service, and its answer on the way to the program: passed on first, then read."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from remuda.meter.caller import Caller
from remuda.meter.tally import Tally
from remuda.meter.upstream import Address, Line
from remuda.meter.wire import Headers, Order, Response


@dataclass(slots=True)
class Answer:
    """What became of it."""

    status: int = 0  # 0: there was none
    complete: bool = False
    began: bool = False  # bytes of it have been passed on
    keeps: bool = False  # the service means to use the connection again
    tally: Tally | None = field(default=None)


class Exchange:
    def __init__(self, line: Line, caller: Caller, tally: Callable[[str, str], Tally] | None) -> None:
        self.answer = Answer()
        self.again = line.used  # if there is no answer it may be tried again: the service has not read the request
        self.line = line
        self._caller = caller
        self._make_tally = tally
        self._held: bytes | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, order: Order, address: Address, *, hold: int = 0) -> None:
        """Send the request, but for the last few bytes."""
        self._response = Response(order.method, self._begin, self._count)
        self.line.taker = self
        sent = len(order.body) - hold
        self._held = order.body[sent:]
        self.line.transport.writelines((order.head(address.authority, address.prefix), memoryview(order.body)[:sent]))

    async def finish(self) -> Answer:
        """Send the end of it, and pass the answer on, to the end of either."""
        held, self._held = self._held, None
        self._caller.flow = self
        if held and not self._over.done():
            self.line.transport.write(held)
        try:
            await self._over
        finally:
            self._caller.flow = None
            if self.answer.complete and self.answer.keeps:
                self.line.taker = None
            else:
                self.drop()
        return self.answer

    def drop(self) -> None:
        self.line.taker = None
        self.line.close()

    # --- what the service says ---

    def take(self, data: bytes) -> None:
        """Passed on first: what is written is with the kernel before it is read here."""
        if self._held:
            self.lost()  # it has not seen all of the request; what it says to that is not what it says to the whole
            return
        if self._over.done():
            self.answer.keeps = False  # more than was asked for
            return
        self._caller.write(data)
        self.answer.began = True
        self._response.feed(data)
        self._look()

    def lost(self) -> None:
        if self._held:
            self.again = True
        else:
            self._response.end()
            self._look()
        self._end()

    def _look(self) -> None:
        """Whether it is all, or all that can be read."""
        response, answer = self._response, self.answer
        if response.complete and not answer.complete:
            if answer.tally is not None:
                answer.tally.end()
            answer.complete = True
        answer.keeps = response.complete and response.keeps and not response.broken
        if response.complete or response.broken:
            self._end()

    def _begin(self, status: int, headers: Headers) -> None:
        self.answer.status = status
        if self._make_tally is not None and status < 400:
            found = {key: value.decode("latin-1").lower() for key, value in headers}
            self.answer.tally = self._make_tally(found.get(b"content-type", ""), found.get(b"content-encoding", ""))

    def _count(self, part: bytes) -> None:
        if self.answer.tally is not None:
            self.answer.tally.feed(part)

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    # --- what the program's connection says ---

    def pause(self) -> None:
        if self.line.open:
            self.line.transport.pause_reading()

    def resume(self) -> None:
        if self.line.open:
            self.line.transport.resume_reading()

    def abandon(self) -> None:
        """Nobody is there any more to take the answer."""
        self._end()
