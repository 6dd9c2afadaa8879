"""Messages on their way into a pipe: one alone is written at once, and many cost one write."""

import asyncio
from collections.abc import Callable


class Outbox:
    """The first message of a go of the loop does not wait for others. Those that follow in the same go are gathered,
    because a write costs more than all that leads to it."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write  # one or more whole lines
        self._more: list[bytes] | None = None  # gathered since the first one of this go
        self.gathered = 0  # bytes of them

    def put(self, message: bytes) -> None:
        if self._more is not None:
            self._more.append(message)
            self.gathered += len(message)
            return
        self._more = []
        asyncio.get_running_loop().call_soon(self.flush)
        self._write(message + b"\n")

    def flush(self) -> None:
        more, self._more, self.gathered = self._more, None, 0
        if more:
            self._write(b"\n".join((*more, b"")))
