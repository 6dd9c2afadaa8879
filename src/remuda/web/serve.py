"""The API on a Unix socket in the project's private folder, for as long as the runtime is up."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from remuda.domain.errors import StoreFailed
from remuda.runtime.place import Place
from remuda.runtime.runtime import Runtime
from remuda.runtime.serving import BACKLOG, serving
from remuda.web.app import make_app
from remuda.web.door import Door


async def serve(runtime: Runtime, *, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
    """Answer until told to stop, or until the loop has ended, whatever for. The caller holds the project."""
    door = Door(runtime, stop)
    listening = bind(runtime.place)
    try:
        async with serving(make_app(door), listening) as server:
            ready()
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait({server, stopped, runtime.running}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            stop.set()
    finally:
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
