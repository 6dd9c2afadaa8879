"""Serve the tools on loopback, and lend them to every session that starts meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from remuda.agents import McpServer
from remuda.domain.effects import StartSession
from remuda.effects.live import Live
from remuda.effects.world import Loan
from remuda.mcp.http import HttpFront
from remuda.runtime.runtime import Runtime
from remuda.runtime.serving import on_loopback, serving
from remuda.tools_server.desk import ToolsDesk
from remuda.tools_server.primer import primer

NAME = "remuda"


@asynccontextmanager
async def serve_tools(runtime: Runtime) -> AsyncIterator[str]:
    """The address, until the block is left."""
    desks: dict[Live, ToolsDesk] = {}

    def door(token: str) -> ToolsDesk | None:
        for live in [each for each in desks if runtime.world.live.get(each.agent) is not each]:
            del desks[live]  # its session is over, and its token with it
        known = runtime.session(token)
        if known is None:
            return None
        return desks.get(known) or desks.setdefault(known, ToolsDesk(runtime, known))

    front = HttpFront(door)
    listening = on_loopback()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"

    def lend(effect: StartSession, token: str) -> Loan:
        bearer = (("Authorization", f"Bearer {token}"),)
        return Loan((McpServer(NAME, url=address, headers=bearer, optional=True),), instructions=primer(effect.role))

    async with serving(Starlette(routes=list(front.routes())), listening):
        runtime.world.lenders.append(lend)
        try:
            yield address
        finally:
            runtime.world.lenders.remove(lend)
            await front.close()
