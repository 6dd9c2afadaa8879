"""All tool servers of one gateway, on one turn clock: who runs, who has to leave, and what happened."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any

from msgspec import Raw

from remuda.domain.errors import RemudaError
from remuda.gateway import clock as turns
from remuda.gateway.clock import Clock, Counting, Happening, Idle
from remuda.gateway.config import Configured
from remuda.gateway.events import GatewayEvent, ServerCalled, ServerDied, ServerLeft, ServerRefused, ServerStarted, Why
from remuda.gateway.faults import ServerFault
from remuda.gateway.listing import Spent, evict
from remuda.gateway.passing import failed
from remuda.gateway.reach import Reach
from remuda.gateway.server import Surroundings, ToolServer
from remuda.gateway.toollist import ToolList
from remuda.mcp import GiveUp, Settle
from remuda.mcp.jsonrpc import Notification, Request

log = logging.getLogger("remuda.gateway")

Note = Callable[[GatewayEvent], None]


class Fleet:
    def __init__(self, configured: Configured, *, counting: Counting = "calls", mark: str = "", note: Note) -> None:
        self.configured = configured
        self.counting = counting
        self.clock = Clock()
        self.servers: dict[str, ToolServer] = {}
        self.check: Callable[[str, ToolList], ToolList] = lambda _name, tools: tools
        self.capabilities: Callable[[], Mapping[str, Any]] = dict
        self.notified: Callable[[str, Notification], None] = lambda _name, _told: None
        self.asked: Callable[[str, Request], Awaitable[Raw]] = _nobody_answers
        self.started: Callable[[str], None] = lambda _name: None
        self.changed: Callable[[], None] = lambda: None  # who runs is no longer who ran
        self._mark = mark or f"gateway-{secrets.token_hex(6)}"
        self._note = note
        self._leaving: set[asyncio.Task[None]] = set()
        self._finishing: set[ToolServer] = set()  # that leave when their calls are answered
        self._rules: dict[str, Idle] = {}
        self._kept: frozenset[str] = frozenset()
        self._reach = Reach(lambda: self.configured, self._mark)
        self._admit(configured)

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, server in self.servers.items() if server.running))

    def tokens_known(self) -> int:
        """What the tools of all servers cost, as far as any were ever seen."""
        return sum(server.tools.tokens for server in self.servers.values() if server.tools is not None)

    # --- use ---

    async def start(self, name: str, why: Happening = Happening.INTENT) -> ToolServer:
        """It runs, and counts as used now."""
        server = self.servers[name]
        self._begin(why, server)
        try:
            await server.ready()
        except RemudaError as error:
            self._note(ServerRefused(self.clock.turn, name, str(error)))
            raise
        finally:
            self._end(Happening.STARTED, server)
        return server

    def missed(self) -> None:
        """An intent that came to nothing is a turn all the same."""
        self._tick(Happening.INTENT, "")

    async def call(self, name: str, tool: str, method: str, params: Raw) -> Raw:
        """To a server, which is started when it does not run. It cannot leave while it is at it."""
        server = self.servers[name]
        began = monotonic()
        self._begin(Happening.CALL, server)
        answer: Raw | None = None
        try:
            answer = await server.call(method, params)
            return answer
        finally:
            self._called(server, tool, began, answer)

    def pass_on(self, name: str, tool: str, params: Raw, settle: Settle) -> GiveUp | None:
        """A call of a tool, without a task that waits for it. Only to a server that runs."""
        server = self.servers[name]
        connection = server.connection
        if connection is None or not connection.alive:
            return None
        began = monotonic()

        def settled(answer: Raw | Exception) -> None:
            # The books can wait until it is written, but not until the client has read it.
            came = answer if isinstance(answer, Raw) else None
            asyncio.get_running_loop().call_soon(self._called, server, tool, began, came)
            settle(answer)

        def give_up() -> None:
            if connection.give_up(number):
                self._called(server, tool, began, None)

        number = connection.begin("tools/call", params, server.settings.call_seconds, settled)
        self._begin(Happening.CALL, server)  # while the server is at it already
        return give_up

    def _called(self, server: ToolServer, tool: str, began: float, answer: Raw | None) -> None:
        ok, size = (not failed(answer), len(answer)) if answer is not None else (False, 0)
        self._note(ServerCalled(self.clock.turn, server.name, tool, ok, monotonic() - began, size))
        self._end(Happening.ANSWER, server)

    def _begin(self, happening: Happening, server: ToolServer) -> None:
        server.began()
        self._tick(happening, server.name)

    def _end(self, happening: Happening, server: ToolServer) -> None:
        server.ended()
        if self.servers.get(server.name) is server:  # and not one that new settings have put in its place
            self._tick(happening, server.name)

    def turn_ended(self) -> None:
        self._tick(Happening.TURN, "")

    # --- its members ---

    def replace(self, configured: Configured) -> None:
        """New settings: who is gone, or would be started in another way, leaves when its calls are answered. The others
        are not disturbed."""
        before, self.configured = self.configured, configured
        for name, server in list(self.servers.items()):
            settings = configured.servers.get(name)
            moved = configured.origins.get(name) != before.origins.get(name)
            if settings is None or not settings.enabled or moved or not server.settings.starts_like(settings):
                self._leave(self.servers.pop(name), "reload")
            else:
                server.settings = settings
        self._admit(configured)
        self.changed()

    def keep(self, names: frozenset[str]) -> None:
        """Of these somebody waits to hear, which is a use that no call shows."""
        if names != self._kept:
            self._kept = names
            self._rule()

    async def close(self) -> None:
        servers, self.servers = self.servers, {}
        for server in servers.values():
            self._leave(server, "stopped")
        await asyncio.gather(*(server.leave() for server in self._finishing), return_exceptions=True)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _admit(self, configured: Configured) -> None:
        around = Surroundings(
            reach=self._reach,
            capabilities=lambda: self.capabilities(),
            check=lambda name, tools: self.check(name, tools),
            notified=lambda name, told: self.notified(name, told),
            asked=lambda name, asked: self.asked(name, asked),
            started=self._started,
            died=self._died,
        )
        for name, settings in configured.servers.items():
            if settings.enabled and name not in self.servers:
                self.servers[name] = ToolServer(name, settings, around)
        self._rule()

    def _rule(self) -> None:
        usual = self.configured.gateway
        self._rules = {
            name: Idle(own.idle_turns or usual.idle_turns, usual.idle_seconds, own.pinned or name in self._kept)
            for name, own in ((name, server.settings) for name, server in self.servers.items())
        }

    def _started(self, server: ToolServer, seconds: float) -> None:
        tools = server.tools
        assert tools is not None  # it would not have started
        self._note(ServerStarted(self.clock.turn, server.name, seconds, len(tools.tools), tools.tokens))
        budget = self.configured.gateway.token_budget
        if budget:
            for name in evict(self._spent(), server.name, tools.tokens, budget):
                self._leave(self.servers[name], "budget")
        self.started(server.name)
        self.changed()

    def _spent(self) -> dict[str, Spent]:
        return {
            name: Spent(tools.tokens, use.turn, self._rules[name].pinned or bool(use.flying))
            for name, use in self.clock.uses.items()
            if name in self.running and (tools := self.servers[name].tools) is not None
        }

    def _died(self, name: str, why: ServerFault) -> None:
        self._note(ServerDied(self.clock.turn, name, why.message))
        self.changed()

    # --- the clock ---

    def _tick(self, happening: Happening, server: str) -> None:
        self.clock, leaving = turns.tick(self.clock, self.counting, happening, self._rules, server, monotonic())
        for name, idle in leaving.items():
            if name in self.servers:
                self._leave(self.servers[name], "idle", idle)
        if leaving:
            self.changed()

    def _leave(self, server: ToolServer, why: Why, idle: int = 0) -> None:
        if server.running:
            tokens = server.tools.tokens if server.tools else 0
            self._note(ServerLeft(self.clock.turn, server.name, why, idle, tokens))
        self.clock = turns.forget(self.clock, [server.name])
        task = asyncio.ensure_future(self._finish(server) if why == "reload" else server.leave())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _finish(self, server: ToolServer) -> None:
        self._finishing.add(server)
        await server.finish()
        self._finishing.discard(server)


async def _nobody_answers(_name: str, _asked: Request) -> Raw:
    raise RemudaError("nobody is here to answer")
