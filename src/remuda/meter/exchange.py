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
        self._line = line
        self._caller = caller
        self._make_tally = tally
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def make(self, order: Order, address: Address) -> Answer:
        """Send the request and pass its answer on, to the end of either."""
        self._response = Response(order.method, self._begin, self._count)
        self._line.taker, self._caller.flow = self, self
        self._line.transport.writelines((order.head(address.authority, address.prefix), order.body))
        try:
            await self._over
        finally:
            self._line.taker, self._caller.flow = None, None
            if not (self.answer.complete and self.answer.keeps):
                self._line.close()
        return self.answer

    # --- what the service says ---

    def take(self, data: bytes) -> None:
        """Passed on first: what is written is with the kernel before it is read here."""
        if self._over.done():
            self.answer.keeps = False  # more than was asked for
            return
        self._caller.write(data)
        self.answer.began = True
        self._response.feed(data)
        self._look()

    def lost(self) -> None:
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
        if self._line.open:
            self._line.transport.pause_reading()

    def resume(self) -> None:
        if self._line.open:
            self._line.transport.resume_reading()

    def abandon(self) -> None:
        """Nobody is there any more to take the answer."""
        self._end()
