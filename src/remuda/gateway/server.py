"""One tool server: started when it is first needed, by one start however many need it; started again when it died."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from msgspec import Raw

from remuda.domain.errors import RemudaError
from remuda.gateway.breaker import Breaker
from remuda.gateway.connection import Connection, Ears, Open
from remuda.gateway.faults import ServerFault
from remuda.gateway.toollist import ToolList, read_tools, recall
from remuda.mcp.jsonrpc import Notification, Request, RpcError
from remuda.mcp.routing import marked
from remuda.runtime.tool_servers import ServerSettings

log = logging.getLogger("remuda.gateway")


class Surroundings(NamedTuple):
    """What a server needs of the gateway that it belongs to."""

    reach: Callable[[str], Awaitable[Open]]  # how it is reached, with its secrets; asked anew for every start
    capabilities: Callable[[], Mapping[str, Any]]  # of the client for whom it is started
    check: Callable[[str, ToolList], ToolList]  # without the tools that nobody has approved
    notified: Callable[[str, Notification], None]
    asked: Callable[[str, Request], Awaitable[Raw]]
    started: Callable[["ToolServer", float], None]  # how long it took, in seconds
    died: Callable[[str, ServerFault], None]


class ToolServer:
    def __init__(self, name: str, settings: ServerSettings, around: Surroundings) -> None:
        self.name, self.settings = name, settings
        self.tools: ToolList | None = None  # the last that are known
        self.breaker = Breaker()
        self.edition = 0  # how often its tools have become others
        self._around = around
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._since = 0.0
        self._under_way = 0  # starts and calls that somebody waits for
        self._quiet = asyncio.Event()

    @property
    def running(self) -> bool:
        return self._connection is not None and self._connection.alive

    @property
    def connection(self) -> Connection | None:
        return self._connection if self.running else None

    async def ready(self) -> Connection:
        """The connection; whoever comes while the server starts waits for the same start."""
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        starting = self._starting
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if not starting.cancelled() or _given_up():
                raise
            raise ServerFault(f"the tool server {self.name!r} was stopped while it started") from None

    async def call(self, method: str, params: Raw) -> Raw:
        connection = self._connection
        if connection is None or not connection.alive:
            connection = await self.ready()
        return await connection.ask(method, params, self.settings.call_seconds)

    async def relist(self) -> None:
        """Ask for its tools again."""
        self._know(await self._list(await self.ready()))

    def review(self) -> None:
        """Something was approved: compare what it last told once more."""
        if self.tools is not None:
            self._know(self._around.check(self.name, recall(self.name, self.tools.told)))

    def _know(self, tools: ToolList) -> None:
        self.edition += self.tools is None or self.tools.tools != tools.tools
        self.tools = tools

    def began(self) -> None:
        self._under_way += 1

    def ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    async def finish(self) -> None:
        """End it when nobody waits for it any longer."""
        while self._under_way:
            self._quiet.clear()
            await self._quiet.wait()
        await self.leave()

    async def leave(self) -> None:
        """End it. It comes back with the next call."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.end()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    # --- starting ---

    def _started(self, task: "asyncio.Task[Connection]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever waited has it; if nobody does any more, the next try tells it again

    async def _start(self) -> Connection:
        began = monotonic()
        if wait := self.breaker.wait(began):
            said = (
                f"the tool server {self.name!r} failed {self.breaker.failures} times; it is tried again in {wait:.0f} s"
            )
            raise ServerFault(said)
        connection = Connection(self.name, self._ears())
        try:
            async with asyncio.timeout(self.settings.start_seconds):
                await connection.open(await self._around.reach(self.name), self._around.capabilities())
                self._know(await self._list(connection))
        except BaseException as error:
            fault = self._why(error, connection)
            await connection.end()
            if not isinstance(fault, RemudaError):
                raise
            self.breaker = self.breaker.failed(monotonic())
            raise fault from error
        self._connection, self._since = connection, monotonic()
        self._around.started(self, monotonic() - began)
        return connection

    def _why(self, error: BaseException, connection: Connection) -> BaseException:
        if isinstance(error, TimeoutError):
            evidence = connection.link.evidence() if connection.alive else ""
            seconds = self.settings.start_seconds
            return ServerFault(f"the tool server {self.name!r} was not ready within {seconds:g} s{evidence}")
        if isinstance(error, RpcError):
            return ServerFault(f"the tool server {self.name!r} could not list its tools: {error.message}")
        return error

    async def _list(self, connection: Connection) -> ToolList:
        items = await connection.list_all("tools/list", "tools") if "tools" in connection.capabilities else []
        tools = read_tools(self.name, items)
        connection.link.know({tool["name"]: marks for tool in tools.told if (marks := marked(tool.get("inputSchema")))})
        return self._around.check(self.name, tools)

    def _ears(self) -> Ears:
        return Ears(
            notified=lambda told: self._around.notified(self.name, told),
            asked=lambda asked: self._around.asked(self.name, asked),
            lost=self._lost,
        )

    def _lost(self, why: ServerFault) -> None:
        connection, self._connection = self._connection, None
        if connection is None:  # it was not ready yet: whoever starts it is told
            return
        self.breaker = self.breaker.failed(monotonic(), ran=monotonic() - self._since)
        task = asyncio.ensure_future(connection.end())  # what it started may have outlived it
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        self._around.died(self.name, why)


def _given_up() -> bool:
    """Whether it is us whom somebody has cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
