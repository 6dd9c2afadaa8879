"""One request to a model's service, and its answer on the way to the program: passed on first, then read."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import h11

from remuda.meter.caller import Caller, Headers
from remuda.meter.tally import Tally
from remuda.meter.upstream import Line


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
        self._http = h11.Connection(h11.CLIENT)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def make(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """Send the request and pass its answer on, to the end of either."""
        http = self._http
        sent = http.send(h11.Request(method=method, target=target, headers=headers)) or b""
        if body:
            sent += http.send(h11.Data(data=body)) or b""
        sent += http.send(h11.EndOfMessage()) or b""
        self._line.taker, self._caller.flow = self, self
        self._line.transport.write(sent)
        try:
            await self._over
        finally:
            self._line.taker, self._caller.flow = None, None
            if not (self.answer.complete and self.answer.keeps):
                self._line.close()
        return self.answer

    # --- what the service says ---

    def take(self, data: bytes) -> None:
        self._caller.write(data)
        self.answer.began = True
        self._read(data)

    def lost(self) -> None:
        if not self._over.done():
            self._read(b"")  # an answer without a length ends with its connection
        self._end()

    def _read(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            while self._next():
                pass
        except h11.RemoteProtocolError:
            self._end()

    def _next(self) -> bool:
        event = self._http.next_event()
        match event:
            case h11.Response():
                self._begin(event)
            case h11.Data():
                if self.answer.tally is not None:
                    self.answer.tally.feed(bytes(event.data))
            case h11.EndOfMessage():
                if self.answer.tally is not None:
                    self.answer.tally.end()
                self.answer.complete = True
                self.answer.keeps = self._http.their_state is not h11.MUST_CLOSE
                self._end()
                return False
            case h11.InformationalResponse():
                pass
            case _:
                return False
        return True

    def _begin(self, response: h11.Response) -> None:
        self.answer.status = response.status_code
        if self._make_tally is not None and response.status_code < 400:
            found = {bytes(key): value.decode("latin-1").lower() for key, value in response.headers}
            self.answer.tally = self._make_tally(found.get(b"content-type", ""), found.get(b"content-encoding", ""))

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
