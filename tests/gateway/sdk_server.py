"""A tool server made with the official SDK: `sdk_server.py stdio`; or on a port that it tells: `http`, `sse`, or
`modern`, which is HTTP for the newer era alone."""

import asyncio
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("judge")
Fast = Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Fast"})]


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
def go(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], fast: Fast) -> str:
    """Goes somewhere. Whoever routes the request reads where from its headers."""
    return f"{region} {fast}"


@server.tool()
def broken() -> str:
    """Does not work."""
    raise ValueError("the tool is broken")


@server.tool()
async def touch(ctx: Context) -> str:
    """Says that the motto is another."""
    await ctx.notify_resource_updated("judge://motto")
    return "touched"


@server.tool()
async def learn(ctx: Context) -> str:
    """Has one more tool from now on."""
    server.add_tool(lambda: "new", name="learnt", description="Is new.")
    await ctx.notify_tools_changed()
    return "learnt"


@server.tool()
async def dawdle() -> str:
    """Takes until nobody waits any longer, and says so on stderr."""
    try:
        await asyncio.Event().wait()
    finally:
        sys.stderr.write("given up\n")
        sys.stderr.flush()
    return "late"


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


def modern(app: ASGIApp) -> ASGIApp:
    """As if there had never been a handshake."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version") if scope["type"] == "http" else b"2026-07-28"
        if version != b"2026-07-28":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"which version is that?"})
            return
        await app(scope, receive, send)

    return serve


def main(how: str, token: str = "") -> None:
    if how == "stdio":
        server.run("stdio")
        return
    app: ASGIApp = server.sse_app() if how == "sse" else server.streamable_http_app()
    app = modern(app) if how == "modern" else app
    if token:
        app = guarded(app, {f"Bearer {token}".encode()})
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening]))


if __name__ == "__main__":
    main(*sys.argv[1:])
