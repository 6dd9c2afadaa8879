"""One request through the meter: sent on a connection that may have to be replaced, and its answer passed on.

Most of it can leave before it is certain that the call may be made: no service answers a request whose end it has not
seen, or takes anything for it. So the disk and the service work at the same time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from remuda.domain.errors import EffectFailed
from remuda.meter.caller import Caller
from remuda.meter.exchange import Answer, Exchange
from remuda.meter.tally import Tally
from remuda.meter.upstream import Lines
from remuda.meter.wire import Order

NOBODY = 499  # for want of a better number: there is nobody to answer


@dataclass(slots=True)
class Passage:
    lines: Lines
    caller: Caller
    tally: Callable[[str, str], Tally] | None
    say: Callable[[int, str], object]  # to the program, in the words of its API
    order: Order | None = None
    _ahead: Exchange | None = None

    def send(self, order: Order, *, hold: int = 0) -> None:
        """Without waiting for anything: where a connection is open, all but the last `hold` bytes."""
        self.order = order
        line = self.lines.take_idle()
        if line is not None:
            self._ahead = Exchange(line, self.caller, self.tally)
            self._ahead.start(order, self.lines.address, hold=hold)

    def drop(self) -> None:
        if self._ahead is not None:
            self._ahead.drop()

    async def finish(self) -> Answer:
        assert self.order is not None, "nothing was sent"
        exchange, answer = self._ahead, Answer()
        for fresh in (False, True):
            if exchange is None:
                try:
                    exchange = Exchange(await self.lines.take(fresh=fresh), self.caller, self.tally)
                except EffectFailed as error:
                    self.say(502, str(error))
                    return Answer(status=502, complete=True, keeps=True)
                except asyncio.CancelledError:
                    return Answer(status=NOBODY, complete=True)  # the program has left, and nothing was sent yet
                exchange.start(self.order, self.lines.address)
            answer = await exchange.finish()
            if answer.complete and answer.keeps:
                self.lines.give_back(exchange.line)
            if answer.began or self.caller.gone or not exchange.again:
                break
            # A connection that was kept open is closed without a word: the service had tired of it, not read it.
            exchange = None
        if not answer.began and not self.caller.gone:
            self.say(502, f"the model's service at {self.lines.address.authority} gave no answer")
        elif not answer.complete:
            self.caller.close()  # it broke off; so must the connection, else what was sent would pass for the whole
        return answer
