"""The API on a Unix socket in the project's private folder, for as long as the runtime is up."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn

from remuda.domain.errors import StoreFailed
from remuda.runtime.place import Place
from remuda.runtime.runtime import Runtime
from remuda.web.app import make_app
from remuda.web.door import Door

BACKLOG = 256
LAST_ANSWERS = 2.0  # seconds that answers under way are given when the server stops


class Server(uvicorn.Server):
    """uvicorn inside a process that is somebody else's: no signals, no ticking; it serves until told to stop."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self._stop.wait()


async def serve(runtime: Runtime, *, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
    """Answer until told to stop, or until the loop has ended, whatever for. The caller holds the project."""
    door = Door(runtime, stop)
    listening = bind(runtime.place)
    config = uvicorn.Config(
        make_app(door),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_ANSWERS,  # type: ignore[arg-type]  # seconds; fractions work
    )
    server = asyncio.ensure_future(Server(config, stop).serve(sockets=[listening]))
    try:
        ready()
        await asyncio.wait({server, runtime.running}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await server
    finally:
        server.cancel()
        listening.close()
        runtime.place.socket.unlink(missing_ok=True)


def bind(place: Place) -> socket.socket:
    """The socket, for its owner alone. One that an earlier runtime left is nobody's: we hold the project.

    It is bound by its name from inside the folder, because a path of a socket may have no more than 107 bytes.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        place.socket.unlink(missing_ok=True)
        with contextlib.chdir(place.state):
            listening.bind(place.socket.name)
        place.socket.chmod(0o600)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise StoreFailed(f"the socket {place.socket} cannot be made: {error.strerror}") from error
    return listening
