"""One session's desk: what its agent asks for through MCP, put to the runtime under the agent's own name."""

import asyncio
from collections.abc import Sequence, Set
from functools import cache
from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from remuda.domain.commands import SpawnAgent
from remuda.domain.errors import Invalid, Refused, RemudaError, UnknownAgent, UnknownTask
from remuda.domain.events import Event
from remuda.domain.tools import Tool
from remuda.effects.live import Live
from remuda.mcp import Client, Settle
from remuda.mcp.eras import Offer, Who
from remuda.mcp.jsonrpc import EMPTY, INVALID_PARAMS, METHOD_NOT_FOUND, Notification, Request, RpcError, raw
from remuda.records.repository import NoRepository, find_repository
from remuda.records.say import give_decision
from remuda.runtime.ids import new_id
from remuda.runtime.runtime import Runtime
from remuda.tools_server import arguments
from remuda.tools_server.primer import primer
from remuda.tools_server.schema import schema
from remuda.tools_server.tools import ROWS, Book, Do, Note, Speaker, tools_of
from remuda.version import __version__

# Where a model finds the names that it got wrong.
WHERE = {UnknownAgent: Tool.LIST_WORKERS, UnknownTask: Tool.LIST_TASKS}


class _Call(Struct):
    name: str
    arguments: Raw = EMPTY


_read_call = msgspec.json.Decoder(_Call).decode


class ToolsDesk:
    def __init__(self, runtime: Runtime, live: Live) -> None:
        self._runtime = runtime
        self._live = live
        self._role = runtime.agent(live.agent).role
        self._tools = tools_of(self._role)

    def offer(self, who: Who) -> Offer:  # noqa: ARG002 - the same for every client
        return Offer("remuda", __version__, {"tools": {}}, primer(self._role))

    async def answer(self, client: Client, request: Request) -> Raw:  # noqa: ARG002 - the token says who it is
        match request.method:
            case "tools/list":
                return raw({"tools": [_described(tool) for tool in self._tools]})
            case "tools/call":
                return await self._call(request.params)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"there is no {request.method} here, only tools")

    def pass_on(self, client: Client, request: Request, settle: Settle) -> None:
        """All is answered here."""

    async def watch(self, client: Client, uris: Set[str]) -> Set[str]:  # noqa: ARG002
        return frozenset()  # there are no resources

    def hear(self, client: Client, notification: Notification) -> None:
        pass

    def joined(self, client: Client) -> None:
        pass

    def left(self, client: Client) -> None:
        pass

    async def _call(self, params: Raw) -> Raw:
        try:
            call = _read_call(params)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RpcError(INVALID_PARAMS, f"a call needs a name, and arguments if any: {error}") from error
        if call.name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"you have no tool {call.name[:60]!r}; you have: {', '.join(self._tools)}")
        try:
            return _said(await self._use(Tool(call.name), bytes(call.arguments)))
        except RemudaError as error:
            where = next((f"; {tool} shows them" for kind, tool in WHERE.items() if isinstance(error, kind)), "")
            return _said(f"{error}{where}", failed=True)

    async def _use(self, tool: Tool, said: bytes) -> str:
        row = ROWS[tool]
        try:
            wanted = arguments.read(row.takes, said)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            takes = ", ".join(row.takes.__struct_fields__) or "nothing"
            raise Invalid(
                f"these arguments are wrong: {error}. {tool} takes {takes}; correct them and call it again"
            ) from error
        runtime, live = self._runtime, self._live
        shown = runtime.loop.shown
        speaker = Speaker(runtime.agent(live.agent), live.epoch, new_id())
        act = row.act(speaker, wanted, Book(shown.agents, shown.tasks, runtime.loop.state.staff))
        match act:
            case str():
                return act
            case Note():
                return await asyncio.to_thread(self._note, act)
            case Do():
                return act.say(await self._do(act))
            case _:
                assert_never(act)

    def _note(self, note: Note) -> str:
        folder = self._runtime.place.root / self._live.folder
        try:
            repository = find_repository(str(folder))
        except NoRepository as error:
            raise Refused(f"there is no record to put it on: {error}; leave it in a note on your task") from error
        number = give_decision(repository, note.decision, agent=self._live.agent)
        return f"It stands in the record of turn {number}."

    async def _do(self, act: Do) -> Sequence[Event]:
        events: list[Event] = []
        for command in act.commands:
            if isinstance(command, SpawnAgent):
                command = self._runtime.complete(command)
            events += (await self._runtime.submit(command)).events
        return events


@cache
def _described(tool: Tool) -> dict[str, object]:
    return {"name": tool, "description": ROWS[tool].says, "inputSchema": schema(ROWS[tool].takes)}


def _said(text: str, *, failed: bool = False) -> Raw:
    return raw({"content": [{"type": "text", "text": text}], "isError": failed})
