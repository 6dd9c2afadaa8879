"""The smallest tool server at an address: MCP over streamable HTTP, for those who show the right token."""

import asyncio
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from live.ping_server import reply

TOKEN = "token-of-the-tools"


class _Guest(uvicorn.Server):
    """In a process that is somebody else's: signals are not its own."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class HttpTools:
    def __init__(self, url: str) -> None:
        self.url = url
        self.refused = 0
        self.called: list[str] = []  # methods, in order

    async def serve(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            self.refused += 1
            return Response(status_code=401)
        if request.method != "POST":
            return Response(status_code=405)  # it has nothing to say unasked
        asked = await request.json()
        self.called.append(asked.get("method", ""))
        said = reply(asked)
        return JSONResponse(said) if said else Response(status_code=202)


@asynccontextmanager
async def http_tools() -> AsyncIterator[HttpTools]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        tools = HttpTools(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        app = Starlette(routes=[Route("/mcp", tools.serve, methods=["GET", "POST", "DELETE"])])
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = _Guest(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield tools
        finally:
            server.should_exit = True
            await serving
