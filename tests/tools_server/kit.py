"""What the tests of the tools share: a project that is up with its tools, and agents that call them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from remuda.domain.commands import SpawnAgent
from remuda.domain.events import Recorded, TurnEnded
from remuda.runtime.compose import open_runtime
from remuda.runtime.ids import new_id
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.store import follow
from remuda.tools_server.serve import serve_tools
from waiting import until_shown

WITHIN = 30.0


class House(NamedTuple):
    runtime: Runtime
    address: str

    async def spawn(self, role: str, **wishes: Any) -> str:
        return await self.runtime.spawn(SpawnAgent(role, "scripted", **wishes))

    async def call(self, agent: str, tool: str, **arguments: Any) -> str:
        """Let an agent call a tool in a turn of its own; what it was answered."""
        step = {"call": {"name": tool, "arguments": arguments}}
        order = new_id()  # and the message's id: the agent may have other mail
        await self.runtime.send(agent, f"playbook: {json.dumps([step])}", order=order)
        async for record in follow(self.runtime.store, 0):
            if isinstance(record.event, TurnEnded) and record.event.message_id == order:
                break
        lines = self.runtime.lines(agent, 100)
        start = max(at for at, line in enumerate(lines) if f"{tool}: " in line)
        return "\n".join(lines[start:]).split(f"{tool}: ", 1)[1]

    async def until(self, check: Callable[[], bool]) -> None:
        await until_shown(self.runtime, check)

    async def events(self) -> list[Recorded]:
        return list(await self.runtime.store.read(0, 100_000))


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    make_place(folder)
    address = ""

    @asynccontextmanager
    async def tools(runtime: Runtime) -> AsyncIterator[None]:
        nonlocal address
        async with serve_tools(runtime) as address:
            yield

    async with open_runtime(folder, [tools]) as runtime:
        yield House(runtime, address)
