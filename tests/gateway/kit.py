"""What the tests of the gateway share: real child servers behind it, and a client in this very loop in front."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import waiting
from remuda.gateway.choice import Candidate, Choice, Offered, Tier
from remuda.gateway.config import Configured
from remuda.gateway.events import GatewayEvent
from remuda.gateway.fleet import Fleet
from remuda.gateway.gateway import Gateway
from remuda.mcp.conversation import Conversation
from remuda.mcp.jsonrpc import Id, RpcError, decode, failure
from remuda.runtime.tool_servers import GatewaySettings, ServerSettings

WITHIN = 30.0
CHILD = Path(__file__).parent / "child_server.py"


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 100)

    asyncio.run(bounded())


async def until(check: Callable[[], bool]) -> None:
    await waiting.until(check, WITHIN)


def child(behaves: dict[str, Any] | None = None, **settings: Any) -> ServerSettings:
    """A server that behaves like that."""
    env = {"CHILD": json.dumps(behaves or {}), **settings.pop("env", {})}
    return ServerSettings(command=(sys.executable, "-I", "-S", str(CHILD)), env=env, **settings)


def by_name(query: str, candidates: Sequence[Candidate]) -> Choice:
    """A choice that needs no thinking: whoever is named is meant."""
    named = [Offered(each.name, 1.0, "it is named") for each in candidates if each.name in query.split()]
    tier = (Tier.NONE, Tier.CLEAR, Tier.CLOSE)[min(2, len(named))]
    return Choice(tier, tuple(named))


class Told(RuntimeError):
    """The gateway answered with a protocol error."""


class Player:
    """A client: asks, listens, and answers when it is asked."""

    def __init__(self, gateway: Gateway, *, refreshes: bool = True) -> None:
        self.heard: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.dropped: list[Id] = []
        self.answers: dict[str, Any] = {}
        self.lists = 0
        self.holds = False  # its answers back, until it lets them go
        self._held: list[dict[str, Any]] = []
        self._refreshes = refreshes
        self._waiting: dict[Id, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._conversation = Conversation(gateway, self)

    async def hello(self, name: str = "test", **capabilities: Any) -> dict[str, Any]:
        info = {"name": name, "version": "1"}
        return await self.ask(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
        )

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send({"id": number, "method": method, "params": params or {}})
        answer = await asyncio.wait_for(self._waiting[number], WITHIN)
        if "error" in answer:
            raise Told(answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    def send(self, message: dict[str, Any]) -> None:
        self._conversation.receive(decode(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def say(self, name: str, /, **arguments: Any) -> str:
        """The text that a call comes to, whether it went well or not."""
        return str((await self.call(name, **arguments))["content"][0]["text"])

    async def tools(self) -> list[str]:
        self.lists += 1
        return [tool["name"] for tool in (await self.ask("tools/list"))["tools"]]

    def methods(self) -> list[str]:
        return [each["method"] for each in self.heard]

    def let_go(self) -> None:
        held, self._held = self._held, []
        for answer in held:
            self.send(answer)

    async def close(self) -> None:
        await self._conversation.close()

    # --- an outlet ---

    def tell(self, message: bytes, about: Id | None) -> None:  # noqa: ARG002
        told = json.loads(message)
        self.heard.append(told)
        if "id" in told:
            self._held.append({"id": told["id"], "result": self.answers.get(told["method"], {})})
            if not self.holds:
                self.let_go()
        elif told["method"] == "notifications/tools/list_changed" and self._refreshes:
            task = asyncio.ensure_future(self.tools())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def answer(self, to: Id, message: bytes) -> None:
        self.raw.append(message)
        self._waiting.pop(to).set_result(json.loads(message))

    def behind(self) -> bool:
        return False

    def drop(self, to: Id) -> None:
        self.dropped.append(to)

    def refuse(self, to: Id | None, error: RpcError) -> None:
        assert to is not None
        self.answer(to, failure(to, error.body))


class Table:
    """A gateway with its servers, and what happened to them."""

    def __init__(self, folder: Path, servers: dict[str, ServerSettings], **settings: Any) -> None:
        self.events: list[GatewayEvent] = []
        gateway = GatewaySettings(servers=servers, **settings.pop("gateway", {}))
        configured = Configured(folder / "remuda.toml", gateway, servers)
        self.fleet = Fleet(configured, note=self.events.append)
        self.gateway = Gateway(self.fleet, by_name, **settings)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def table(
    folder: Path, servers: dict[str, ServerSettings], **settings: Any
) -> AsyncIterator[tuple[Table, Player]]:
    """A gateway and one client that has said hello."""
    made = Table(folder, servers, **settings)
    player = Player(made.gateway)
    try:
        await player.hello()
        yield made, player
    finally:
        await player.close()
        await made.gateway.close()
