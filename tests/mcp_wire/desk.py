"""A desk with a few tools, for the tests of the fronts. As a program it serves them on stdin and stdout."""

import asyncio
from collections.abc import Set

import uvloop
from msgspec import Raw
from msgspec.json import decode

from remuda.mcp import Client, Settle
from remuda.mcp.eras import Offer, Who
from remuda.mcp.jsonrpc import METHOD_NOT_FOUND, Notification, Request, RpcError, raw
from remuda.mcp.stdio import serve

ANY = {"type": "object"}
TOOLS = [{"name": name, "description": f"does {name}", "inputSchema": ANY} for name in ("echo", "wait", "ask", "count")]


class ToolDesk:
    def __init__(self) -> None:
        self.clients: list[Client] = []
        self.heard: list[str] = []
        self.waiting = 0
        self.cancelled = 0
        self.gone = 0

    def offer(self, who: Who) -> Offer:
        return Offer("desk", "1", {"tools": {"listChanged": True}}, instructions=f"hello {who.name}")

    async def answer(self, client: Client, request: Request) -> Raw:
        if request.method == "tools/list":
            return raw({"tools": TOOLS})
        if request.method != "tools/call":
            raise RpcError(METHOD_NOT_FOUND, f"there is no {request.method}")
        params = decode(request.params)
        return await self.call(client, request, params["name"], params.get("arguments", {}), params.get("_meta", {}))

    def pass_on(self, client: Client, request: Request, settle: Settle) -> None:
        pass

    async def watch(self, client: Client, uris: Set[str]) -> Set[str]:  # noqa: ARG002
        return {uri for uri in uris if uri.startswith("mem://")}

    async def call(
        self, client: Client, request: Request, name: str, given: dict[str, str], meta: dict[str, str]
    ) -> Raw:
        match name:
            case "echo":
                return text(given.get("text", ""))
            case "wait":
                return await self.wait()
            case "ask":
                answer = await client.ask("roots/list", raw({}), about=request.id)
                return text(decode(answer)["roots"][0]["uri"])
            case "count":
                for number in (1, 2, 3):
                    told = {"progressToken": meta["progressToken"], "progress": number, "total": 3}
                    client.notify("notifications/progress", raw(told), about=request.id)
                return text("counted")
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"there is no tool {name}")

    async def wait(self) -> Raw:
        self.waiting += 1
        try:
            return await asyncio.Future()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1

    def hear(self, client: Client, notification: Notification) -> None:  # noqa: ARG002
        self.heard.append(notification.method)

    def joined(self, client: Client) -> None:
        self.clients.append(client)

    def left(self, client: Client) -> None:
        self.gone += 1
        self.clients.remove(client)

    def change(self) -> None:
        for client in self.clients:
            client.notify("notifications/tools/list_changed", raw({}))


def text(said: str) -> Raw:
    return raw({"content": [{"type": "text", "text": said}], "isError": False})


if __name__ == "__main__":
    uvloop.run(serve(ToolDesk()))
