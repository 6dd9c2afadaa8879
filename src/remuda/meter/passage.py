"""One request through the meter: sent on a connection that may have to be replaced, and its answer passed on."""

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


@dataclass(frozen=True, slots=True)
class Passage:
    lines: Lines
    caller: Caller
    tally: Callable[[str, str], Tally] | None
    say: Callable[[int, str], object]  # to the program, in the words of its API

    async def pass_on(self, order: Order) -> Answer:
        answer = Answer()
        for fresh in (False, True):
            try:
                line = await self.lines.take(fresh=fresh)
            except EffectFailed as error:
                self.say(502, str(error))
                return Answer(status=502, complete=True, keeps=True)
            except asyncio.CancelledError:
                return Answer(status=NOBODY, complete=True)  # the program has left, and nothing was sent yet
            stale = line.used
            answer = await Exchange(line, self.caller, self.tally).make(order, self.lines.address)
            if answer.complete and answer.keeps:
                self.lines.give_back(line)
            if answer.began or self.caller.gone or not stale:
                break
            # A connection that was kept open is closed without a word: the service had tired of it, not read it.
        if not answer.began and not self.caller.gone:
            self.say(502, f"the model's service at {self.lines.address.authority} gave no answer")
        elif not answer.complete:
            self.caller.close()  # it broke off; so must the connection, else what was sent would pass for the whole
        return answer
