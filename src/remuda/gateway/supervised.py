"""The gateway of a runtime: every session of an agent gets one of its own.

Its turns are the agent's real ones, read from the log. Its servers are its own as well: a browser or a database session
is nothing that two agents can share, and what nobody uses leaves anyhow.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from remuda.agents import McpServer
from remuda.domain.effects import StartSession
from remuda.domain.errors import RemudaError
from remuda.domain.events import SessionEnded, TurnEnded
from remuda.effects.world import Loan
from remuda.gateway.assembly import open_gateway
from remuda.gateway.config import Configured, load_config
from remuda.gateway.gateway import Gateway
from remuda.mcp import Desk
from remuda.mcp.http import HttpFront
from remuda.runtime.runtime import Runtime
from remuda.runtime.serving import on_loopback, serving
from remuda.store import follow

log = logging.getLogger("remuda.gateway")

NAME = "remuda-gateway"  # as agents see it


class Seat:
    """One session's place at the gateway, from its start to its end."""

    def __init__(self, configured: Configured, mark: str, effect: StartSession) -> None:
        self.gateway: Gateway | None = None
        self._over = asyncio.Event()
        self._sitting = asyncio.create_task(self._sit(configured, mark, effect))

    async def _sit(self, configured: Configured, mark: str, effect: StartSession) -> None:
        name = f"{effect.agent}-{effect.epoch}"
        async with open_gateway(configured, mark=mark, role=effect.role, counting="told", name=name) as gateway:
            self.gateway = gateway
            await self._over.wait()

    async def leave(self) -> None:
        self._over.set()
        (how,) = await asyncio.gather(self._sitting, return_exceptions=True)
        if isinstance(how, Exception):
            log.error("a session's gateway did not close well: %r", how)


class Seats:
    """Those of all sessions that are alive, by agent and epoch."""

    def __init__(self, runtime: Runtime, port: int) -> None:
        self._runtime, self._url = runtime, f"http://127.0.0.1:{port}/mcp"
        self._seats: dict[tuple[str, int], Seat] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self.front = HttpFront(self._door)

    def lend(self, effect: StartSession, token: str) -> Loan:
        """The address and a token that is good for as long as the session lives. Nothing where there are no servers."""
        try:
            configured = load_config(self._runtime.place.settings)
        except RemudaError as error:  # an agent without these tools is of more use than none
            log.warning("%s gets no gateway: %s", effect.agent, error)
            return Loan()
        if not configured.servers:
            return Loan()
        self.leave(effect.agent)  # what was lent to an earlier session of it, or to a try that failed
        mark = f"{self._runtime.place.mark}/{effect.agent}/{effect.epoch}/gateway"
        self._seats[effect.agent, effect.epoch] = Seat(configured, mark, effect)
        bearer = (("Authorization", f"Bearer {token}"),)
        return Loan(mcp_servers=(McpServer(NAME, url=self._url, headers=bearer, optional=True),))

    def turn_ended(self, agent: str, epoch: int) -> None:
        seat = self._seats.get((agent, epoch))
        if seat is not None and seat.gateway is not None:
            seat.gateway.turn_ended()

    def leave(self, agent: str, epoch: int | None = None) -> None:
        for key in [key for key in self._seats if key[0] == agent and epoch in (None, key[1])]:
            task = asyncio.create_task(self._clear(self._seats.pop(key)))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        for agent, epoch in list(self._seats):
            self.leave(agent, epoch)
        await asyncio.gather(*self._leaving)

    def _door(self, token: str) -> Desk | None:
        live = self._runtime.session(token)
        seat = self._seats.get((live.agent, live.epoch)) if live is not None else None
        return seat.gateway if seat is not None else None

    async def _clear(self, seat: Seat) -> None:
        if seat.gateway is not None:
            await self.front.close(seat.gateway)
        await seat.leave()


@asynccontextmanager
async def serve_gateway(runtime: Runtime) -> AsyncIterator[Seats]:
    """Lend a gateway to every session that starts in this block."""
    listening = on_loopback()
    seats = Seats(runtime, listening.getsockname()[1])
    async with serving(Starlette(routes=list(seats.front.routes())), listening):
        runtime.world.lenders.append(seats.lend)
        following = asyncio.create_task(_follow(runtime, seats))
        try:
            yield seats
        finally:
            runtime.world.lenders.remove(seats.lend)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await seats.close()
            await seats.front.close()


async def _follow(runtime: Runtime, seats: Seats) -> None:
    async for record in follow(runtime.store, runtime.loop.shown.seq):
        match record.event:
            case TurnEnded():
                seats.turn_ended(record.event.agent, record.event.epoch)
            case SessionEnded():
                seats.leave(record.event.agent, record.event.epoch)
