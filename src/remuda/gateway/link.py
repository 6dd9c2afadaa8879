"""A way to a tool server: a pipe to a program of ours, or HTTP to one that runs elsewhere."""

from collections.abc import Callable
from typing import Protocol

from remuda.gateway.faults import ServerFault
from remuda.mcp.jsonrpc import notification, raw
from remuda.mcp.routing import Marks

Hear = Callable[[bytes], None]  # gets each message of the server
Lost = Callable[[ServerFault], None]  # told once, when nothing more can come


class Link(Protocol):
    def send(self, message: bytes, number: int | None) -> None:
        """One message on its way; `number` is the id of a request. Nobody waits for it."""

    def cancel(self, number: int) -> None:
        """Nobody waits for the answer to this request any longer, and the server may know."""

    def speak(self, version: str) -> None:
        """Both sides have settled on this version of the protocol."""

    def know(self, marks: Marks) -> None:
        """Which arguments of its tools a server of the newer era wants in headers as well."""

    async def flush(self) -> None:
        """What was sent has arrived, as far as can be known."""

    def evidence(self) -> str:
        """What else is known about the server, for an error."""

    async def end(self) -> None:
        """Close it, and end what it started."""


def cancelled(number: int) -> bytes:
    return notification("notifications/cancelled", raw({"requestId": number, "reason": "no longer wanted"}))
