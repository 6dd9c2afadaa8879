"""MCP on the wire: messages, handshakes of both eras, and fronts by which a client comes in, over stdio or HTTP.

A front speaks the protocol and knows nothing of tools; a `Desk` behind it answers and knows nothing of transports. The
official SDK is not here, for it takes a second to import and rewrites what it passes on. It judges us in the tests.
"""

from collections.abc import Awaitable, Callable, Set
from typing import Protocol

from msgspec import Raw

from remuda.mcp.eras import Offer, Who
from remuda.mcp.jsonrpc import Id, Notification, Request


class Client(Protocol):
    """Whoever is at the other end, for as long as the connection, the session or the single request lasts."""

    @property
    def who(self) -> Who:
        """As it introduced itself."""

    def notify(self, method: str, params: Raw, *, about: Id | None = None) -> None:
        """Tell it something, about the request of that id if there is one. Nobody waits for it to be read."""

    def ask(self, method: str, params: Raw, *, about: Id | None = None) -> Awaitable[Raw]:
        """Ask it something and wait. RpcError when it answers with an error, or cannot be asked."""


Settle = Callable[[Raw | Exception], None]  # gets what a request comes to, once
GiveUp = Callable[[], None]


class Desk(Protocol):
    """What stands behind a front and answers."""

    def offer(self, who: Who) -> Offer:
        """What it says of itself to this client."""

    async def answer(self, client: Client, request: Request) -> Raw:
        """The result; RpcError for what cannot be answered. Cancelled when the client no longer wants to know."""

    def pass_on(self, client: Client, request: Request, settle: Settle) -> GiveUp | None:
        """A shorter way for what somebody else answers: it is sent on at once, without a task of its own, and what is
        returned gives it up. None for what takes more; then `answer` is asked."""

    async def watch(self, client: Client, uris: Set[str]) -> Set[str]:
        """The resources of whose changes a client listens for from now on; those of them that can be told."""

    def hear(self, client: Client, notification: Notification) -> None:
        """What the client tells without asking. Cancellations are the front's affair and do not come here."""

    def joined(self, client: Client) -> None:
        """It is there and can be told things, until it has `left`."""

    def left(self, client: Client) -> None:
        """It is gone, or never comes back."""
