"""The meter beside a runtime: lends each session an address and a token, and looks at the clock for it."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

from remuda.agents import prices
from remuda.agents.catalog import Row, metered
from remuda.domain.accounts import TIME, scopes
from remuda.domain.budget_commands import CheckBudget
from remuda.domain.effects import StartSession
from remuda.domain.errors import RemudaError
from remuda.domain.state import Agent, State
from remuda.effects.world import Loan
from remuda.meter import Seat
from remuda.meter.books import Books
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.runtime.compose import rows
from remuda.runtime.runtime import Runtime

log = logging.getLogger("remuda.meter")

LOOK_EVERY = 1.0  # seconds


@asynccontextmanager
async def serve_meter(runtime: Runtime) -> AsyncIterator[Meter | None]:
    """From before the first session until after the last."""
    looking = asyncio.ensure_future(_look_at_the_clock(runtime))
    settings = runtime.settings.meter
    upstreams = {api: Upstream(each.url, each.key) for api, each in settings.services(os.environ).items()}
    desk = Desk(rows(runtime.settings), upstreams, settings.skip)
    meter = Meter(upstreams, Books(runtime, desk.prices), partial(_seat_of, runtime))
    try:
        if settings.on:
            await meter.open()
            desk.url = meter.url
            runtime.world.lenders.append(desk.lend)
        yield meter if settings.on else None
    finally:
        if desk.lend in runtime.world.lenders:
            runtime.world.lenders.remove(desk.lend)
        looking.cancel()
        await meter.close()
        desk.prices.cancel()


def _seat_of(runtime: Runtime, token: str) -> Seat | None:
    """Only of sessions that were lent the way to the meter: what others spend is none of its business, nor is the key
    that it has any of theirs."""
    live = runtime.session(token)
    return Seat(live.agent, live.epoch) if live is not None and live.metered else None


class Desk:
    """Gives each session that starts the way to the meter."""

    def __init__(self, programs: Mapping[str, Row], upstreams: Mapping[str, Upstream], skip: tuple[str, ...]) -> None:
        self.url = ""
        self.prices: asyncio.Future[prices.Table | None] = asyncio.get_running_loop().create_future()
        self._loading: asyncio.Task[None] | None = None
        self._programs = programs
        self._upstreams = upstreams
        self._skip = skip

    def lend(self, effect: StartSession, token: str) -> Loan:
        """Nothing for a program that cannot be told where its model is, that was told where by whoever spawned it, or
        whose models nobody has a key for: it has logged in by itself, and only tells of its calls."""
        row = self._programs.get(effect.backend)
        if row is None or row.endpoint is None or effect.backend in self._skip or "base_url" in dict(effect.options):
            return Loan()
        if not any(self._has_key(api) for api in row.endpoint.apis):
            return Loan()
        self._loading = self._loading or asyncio.ensure_future(self._load())
        env, options = metered(row, self.url, token)
        return Loan(env=env, options=options, metered=True)

    def _has_key(self, api: str) -> bool:
        upstream = self._upstreams.get(api)
        return upstream is not None and (not upstream.key or bool(os.environ.get(upstream.key)))

    async def _load(self) -> None:
        table = await prices.load()
        if not self.prices.done():
            self.prices.set_result(table)


async def _look_at_the_clock(runtime: Runtime) -> None:
    """Time passes without an event: somebody has to look whether a turn has used up what it had."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        state = runtime.loop.state
        if not state.ledger.accounts:
            continue
        for agent in [each for each in state.agents.values() if each.turn and _is_timed(state, each)]:
            with suppress(RemudaError):
                await runtime.submit(CheckBudget(agent.name))


def _is_timed(state: State, agent: Agent) -> bool:
    return agent.trigger is not None or any(
        state.ledger.accounts[scope].limits[TIME] is not None for scope in scopes(state, agent)
    )
