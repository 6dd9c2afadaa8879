"""What the tests of MCP share: a front on a loopback port in this very loop, and a client of bare bytes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import uvicorn
from starlette.applications import Starlette

import waiting
from remuda.mcp import Desk
from remuda.mcp.http import HttpFront

WITHIN = 20.0
TOKEN = "open-sesame"


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 60)

    asyncio.run(bounded())


async def until(check: Callable[[], bool]) -> None:
    await waiting.until(check, WITHIN)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site(NamedTuple):
    port: int
    front: HttpFront

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def post(self, body: object, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.ask("POST", data, **headers)

    async def ask(self, method: str, data: bytes = b"", **headers: str) -> Answer:
        """One request; a header of the value "" is left out."""
        usual = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(data)),
        }
        sent = usual | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} /mcp HTTP/1.0", *(f"{name}: {value}" for name, value in sent.items() if value)]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + data)
            head, _, body = (await asyncio.wait_for(reader.read(), WITHIN)).partition(b"\r\n\r\n")
        finally:
            writer.close()
        first, *rest = head.decode().split("\r\n")
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        return Answer(int(first.split()[1]), found, body)


@asynccontextmanager
async def site(desk: Desk) -> AsyncIterator[Site]:
    front = HttpFront(lambda token: desk if token == TOKEN else None)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        Starlette(routes=front.routes()), log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await until(lambda: server.started)
        yield Site(listening.getsockname()[1], front)
    finally:
        await front.close()
        server.should_exit = True
        await asyncio.wait_for(serving, WITHIN)
        listening.close()
