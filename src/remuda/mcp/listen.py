"""A front on a port of loopback, inside a process that is somebody else's: no signals, no log, no ticking."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Generator, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from remuda.domain.errors import EffectFailed

LAST_ANSWERS = 1.0  # seconds that answers under way are given when the server stops
BACKLOG = 128


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stop = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self.stop.wait()


@contextlib.asynccontextmanager
async def listening(routes: Sequence[Route], *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve the routes until the block is left; the port is told."""
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise EffectFailed(f"cannot listen on {host}, port {port}: {error.strerror}; is it in use?") from error
    bound.listen(BACKLOG)
    config = uvicorn.Config(
        Starlette(routes=list(routes)),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_ANSWERS,  # type: ignore[arg-type]  # seconds; fractions work
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[bound]))
    try:
        yield bound.getsockname()[1]
    finally:
        server.stop.set()
        await serving
        bound.close()
