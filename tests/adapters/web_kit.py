"""What the tests of the API share: a runtime that serves in this very loop, and a client of bare bytes."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from remuda.runtime.compose import open_runtime
from remuda.runtime.place import Place, make_place
from remuda.runtime.runtime import Runtime
from remuda.web.serve import serve
from waiting import until_shown

WITHIN = 20.0


class Answer(NamedTuple):
    status: int
    head: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site(NamedTuple):
    runtime: Runtime
    stop: asyncio.Event

    @property
    def place(self) -> Place:
        return self.runtime.place

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.ask("GET", target, None, **headers)

    async def post(self, target: str, body: object = None, **headers: str) -> Answer:
        return await self.ask("POST", target, body, **headers)

    async def ask(self, method: str, target: str, body: object, **headers: str) -> Answer:
        async with self.open(method, target, body, **headers) as (status, head, reader):
            return Answer(status, head, await asyncio.wait_for(reader.read(), WITHIN))

    @asynccontextmanager
    async def open(
        self, method: str, target: str, body: object = None, **headers: str
    ) -> AsyncIterator[tuple[int, str, asyncio.StreamReader]]:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.0", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connected = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(self.place.state):  # its path may be too long; no await in here
            connected.connect(self.place.socket.name)
        connected.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=connected)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + data)
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WITHIN)).decode()
            yield int(head.split()[1]), head, reader
        finally:
            writer.close()

    async def until(self, check: Callable[[], bool]) -> None:
        await until_shown(self.runtime, check)

    async def idle(self, name: str, turns: int) -> None:
        """Wait until an agent has ended so many turns."""
        await self.until(lambda: (agent := self.runtime.agent(name)).turns >= turns and agent.turn is None)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    make_place(folder)
    async with open_runtime(folder) as runtime:
        stop, ready = asyncio.Event(), asyncio.Event()
        serving = asyncio.ensure_future(serve(runtime, stop=stop, ready=ready.set))
        try:
            await asyncio.wait_for(ready.wait(), WITHIN)
            yield Site(runtime, stop)
        finally:
            stop.set()
            await asyncio.wait_for(serving, WITHIN)


def playbook(*steps: object) -> str:
    return f"follow this\nplaybook: {json.dumps(steps)}"
