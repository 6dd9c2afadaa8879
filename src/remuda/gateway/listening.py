"""What a server of the newer era tells without being asked: only to those who listen, by a request that stays open."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Raw

from remuda.gateway.faults import ServerFault
from remuda.mcp.eras import LISTENED
from remuda.mcp.jsonrpc import INTERNAL_ERROR, RpcError, raw

log = logging.getLogger("remuda.gateway")

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
WITHIN = 5.0  # seconds in which a server says that it has begun to tell
AGAIN = 2.0  # seconds after a stream has ended until the next is asked for

Ask = Callable[[str, Raw, float], Awaitable[Raw]]


class Listening:
    """One stream of one server, asked for anew when it has ended or when something else is wanted."""

    def __init__(self, name: str, ask: Ask, capabilities: Mapping[str, Any]) -> None:
        self._name, self._ask = name, ask
        self._wanted: dict[str, Any] = {key: True for key in LISTENED.values() if _tells(capabilities, key)}
        self._uris: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # it tells, or has said why it does not
        self._refusal: RpcError | None = None
        self._begin()

    async def watch(self, uri: str, *, on: bool) -> None:
        """Done when the server has said that it will tell: a change that comes right afterwards is not missed."""
        (self._uris.add if on else self._uris.discard)(uri)
        self._begin()
        if not on:
            return
        try:
            async with asyncio.timeout(WITHIN):
                await self._settled.wait()
        except TimeoutError:
            log.info("%s does not say whether it tells of changes of %s", self._name, uri[:200])
        if self._refusal is not None:
            raise self._refusal

    def acknowledged(self) -> None:
        self._settled.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self.stop()
        self._settled.clear()
        wanted = {**self._wanted, **({"resourceSubscriptions": sorted(self._uris)} if self._uris else {})}
        self._task = asyncio.create_task(self._listen(raw({"notifications": wanted}))) if wanted else None

    async def _listen(self, wanted: Raw) -> None:
        while True:
            try:
                await self._ask("subscriptions/listen", wanted, math.inf)
            except ServerFault:
                return  # it is gone
            except RpcError as error:
                log.info("%s does not tell of changes: %s", self._name, error.message)
                if error.code != INTERNAL_ERROR:  # which a stream has that broke, and may not break again
                    self._refusal = error
                    self._settled.set()
                    return
            await asyncio.sleep(AGAIN)


def _tells(capabilities: Mapping[str, Any], key: str) -> bool:
    """`toolsListChanged` is what a server with {"tools": {"listChanged": true}} can tell."""
    said = capabilities.get(key.removesuffix("ListChanged"))
    return isinstance(said, Mapping) and bool(said.get("listChanged"))
