"""The tool servers that the scripted agent was given, called over HTTP as MCP asks for it."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Json = Any

PROTOCOL = "2025-06-18"
WITHIN = 60  # seconds


class ToolServer:
    """One of them; it is greeted before the first call."""

    def __init__(self, told: Mapping[str, Json]) -> None:
        self.name: str = told["name"]
        self._url: str = told.get("url", "")
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{each["name"]: each["value"] for each in told.get("headers", [])},
        }
        self._asked = 0

    def call(self, tool: str, arguments: Json) -> tuple[str, bool]:
        """What it answers, and whether that is an error."""
        if not self._asked:
            client = {"name": "remuda-scripted", "version": "1"}
            self._ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return str(answer["error"].get("message")), True
        result = answer["result"]
        text = "\n".join(part["text"] for part in result["content"] if part.get("type") == "text")
        return text, bool(result.get("isError"))

    def _ask(self, method: str, params: Json) -> Json:
        self._asked += 1
        for answer in self._post({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}):
            if answer.get("id") == self._asked:
                return answer
        raise OSError(f"{self.name} did not answer {method}")

    def _post(self, message: Json) -> list[Json]:
        from urllib.request import ProxyHandler, Request, build_opener

        request = Request(self._url, json.dumps(message).encode(), self._headers)  # noqa: S310 - the client's own address
        with build_opener(ProxyHandler({})).open(request, timeout=WITHIN) as response:
            session = response.headers.get("mcp-session-id")
            if session:
                self._headers["Mcp-Session-Id"] = session
            body = response.read()
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                lines = (line.removeprefix(b"data:").strip() for line in body.splitlines() if line.startswith(b"data:"))
                return [json.loads(line) for line in lines if line]
            return [json.loads(body)] if body.strip() else []
