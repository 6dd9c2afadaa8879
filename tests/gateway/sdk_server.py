"""A tool server made with the official SDK: `sdk_server.py stdio`, or `http` or `sse` on a port that it tells."""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("judge")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def steps(ctx: Context) -> str:
    """Tells how far it is."""
    for number in (1, 2):
        await ctx.report_progress(number, 2)
    return "done"


@server.tool()
def broken() -> str:
    """Does not work."""
    raise ValueError("the tool is broken")


@server.resource("judge://motto")
def motto() -> str:
    return "fiat justitia"


def guarded(app: ASGIApp, seen: set[bytes]) -> ASGIApp:
    """Only for those who have the token."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") not in seen:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
            return
        await app(scope, receive, send)

    return guard


def main(how: str, token: str = "") -> None:
    if how == "stdio":
        server.run("stdio")
        return
    app: ASGIApp = server.streamable_http_app() if how == "http" else server.sse_app()
    if token:
        app = guarded(app, {f"Bearer {token}".encode()})
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening]))


if __name__ == "__main__":
    main(*sys.argv[1:])
