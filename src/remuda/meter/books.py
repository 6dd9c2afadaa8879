"""The runtime's ledger, as the meter sees it: a reservation is decided by the loop, and on the disk before the call."""

import asyncio
import contextlib
import logging
from functools import lru_cache
from itertools import count

from remuda.agents.prices import Table, cost_nanousd
from remuda.domain.accounts import scopes
from remuda.domain.budget import speaks
from remuda.domain.budget_commands import ReserveBudget, SettleBudget
from remuda.domain.errors import Conflict, RemudaError
from remuda.domain.events import BudgetReserved, TriggerFired
from remuda.domain.state import Usage
from remuda.meter import Estimate, Grant, Refusal, Seat
from remuda.runtime.batch import Reply
from remuda.runtime.runtime import Runtime

log = logging.getLogger("remuda.meter")

LOOK_AGAIN = 1.0  # seconds; a grant may have made room, of which nobody tells the meter
MANY = 1_000_000  # tokens, to find the price of one


class Books:
    def __init__(self, runtime: Runtime, prices: "asyncio.Future[Table | None]") -> None:
        self._runtime = runtime
        self._prices = prices
        self._calls = count(1)
        self._settled = asyncio.Event()

    def limited(self, seat: Seat) -> bool:
        state = self._runtime.loop.state
        agent = state.agents.get(seat.agent)
        return agent is not None and bool(scopes(state, agent))

    async def reserve(self, seat: Seat, estimate: Estimate) -> Grant | Refusal:
        call = next(self._calls)
        if not self.limited(seat):
            agent = self._runtime.loop.state.agents.get(seat.agent)
            if agent is None or not speaks(agent, seat.epoch):
                return Refusal(f"Remuda: session {seat.epoch} of {seat.agent} is over, and makes no calls any more")
            self._runtime.loop.submit(ReserveBudget(seat.agent, seat.epoch, call, 0, 0)).add_done_callback(_note)
            return Grant(seat, call, estimate.model)
        into = estimate.input_tokens
        dear = price_of(await asyncio.shield(self._prices), estimate.model, into) or (None, 0)
        command = ReserveBudget(seat.agent, seat.epoch, call, into, estimate.output_tokens, estimate.floor, *dear)
        while True:
            self._settled.clear()
            try:
                accepted = await self._runtime.loop.submit(command)
            except asyncio.CancelledError:
                self.settle(Grant(seat, call, estimate.model), Usage())  # who leaves meanwhile has made no call
                raise
            except Conflict:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._settled.wait(), LOOK_AGAIN)
                continue
            except RemudaError as refused:
                return Refusal(f"Remuda: {refused}")
            for event in accepted.events:
                if isinstance(event, BudgetReserved):
                    return Grant(seat, call, estimate.model, event.output_tokens if event.scopes else None)
            why = next((event.evidence for event in accepted.events if isinstance(event, TriggerFired)), "no budget")
            return Refusal(f"Remuda: {why}. `remuda budget grant` gives it more.")

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        if usage is not None:
            cost = self._cost(usage, grant.model)
            usage = Usage(
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_creation_tokens,
                cost_nanousd=cost,
            )
        reply = self._runtime.loop.submit(SettleBudget(grant.seat.agent, grant.seat.epoch, grant.call, usage))
        reply.add_done_callback(self._tell)

    def _cost(self, usage: Usage, model: str) -> int | None:
        if usage == Usage():
            return 0  # of nothing, whatever the price
        return cost_nanousd(self._prices.result(), usage, model) if self._prices.done() else None

    def _tell(self, reply: Reply) -> None:
        self._settled.set()
        _note(reply)


def price_of(table: Table | None, model: str, tokens: int) -> tuple[int, int] | None:
    """What so much input costs at most, and each token of output with it. None: nobody knows."""
    rates = None if table is None else _rates(table, model, 1 << max(10, tokens.bit_length()))
    return None if rates is None else (tokens * rates[0], rates[1])


@lru_cache(256)  # to ask the table takes longer than to pass a call on
def _rates(table: Table, model: str, tokens: int) -> tuple[int, int] | None:
    """For each token of input and of output, rounded up. Some services take more for calls that are long, so it is
    asked for one that is longer; and the dearest way for input to come in is into the cache."""
    plain = cost_nanousd(table, Usage(tokens), model)
    kept = cost_nanousd(table, Usage(cache_creation_tokens=tokens), model)
    both = cost_nanousd(table, Usage(tokens, MANY), model)
    if plain is None or both is None:
        return None
    return -(-max(plain, kept or 0) // tokens), -(-(both - plain) // MANY)


def _note(reply: Reply) -> None:
    if not reply.cancelled() and reply.exception() is not None:
        log.info("a call was not booked: %s", reply.exception())
