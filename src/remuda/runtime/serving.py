"""HTTP inside a process that is somebody else's, for as long as a block lasts."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

BACKLOG = 256
LAST_ANSWERS = 2.0  # seconds that answers under way are given when the server stops
LOOK_EVERY = 0.01


class Server(uvicorn.Server):
    """No signals, no ticking; it serves until told to stop."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let answers under way end. Not as uvicorn does it, which first waits a tenth of a second for nobody: a
        runtime has three of us, and whoever types `remuda down` waits for them all."""
        for each in (*self.servers, *(sockets or ())):
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not await self._ended():
            for connection in list(self.server_state.connections):  # somebody does not read, and would be waited for
                connection.transport.abort()
            await self._ended()
        for task in self.server_state.tasks:
            task.cancel()

    async def _ended(self) -> bool:
        """Whether all answers under way have ended, in the time that they are given."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn tells nobody
                    await asyncio.sleep(LOOK_EVERY)
                return True
        return False


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """The server's task, which ends before the block only if the server fails."""
    stop = asyncio.Event()
    config = uvicorn.Config(
        app,
        http="h11",  # and not the faster one that it would find: h11 alone bounds the head of a request
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        date_header=False,
        server_header=False,
    )
    server = asyncio.ensure_future(Server(config, stop).serve(sockets=[listening]))
    try:
        yield server
        stop.set()
        await server
    finally:
        server.cancel()
        listening.close()


def on_loopback(port: int = 0) -> socket.socket:
    """A socket that only this machine reaches; with port 0 on a port that nobody has."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening
