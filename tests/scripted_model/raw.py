"""HTTP by hand, for what no SDK would send, and to see every byte of what comes back."""

import asyncio
import http.client
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from scripted_model.kit import COMMAND


@dataclass(frozen=True, slots=True)
class Raw:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[tuple[str, Any]]:
        """Name and data of each event of a stream."""
        found = []
        for block in self.body.decode().removesuffix("\n\n").split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            data = lines["data"]
            found.append((lines.get("event", ""), data if data == "[DONE]" else json.loads(data)))
        return found


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


async def send(
    url: str, path: str, body: bytes | Iterable[bytes] | None = None, headers: Mapping[str, str] | None = None
) -> Raw:
    """A POST if there is a body, else a GET. A body in pieces goes out chunked."""
    return await asyncio.to_thread(_send, urlsplit(url).netloc, path, body, dict(headers or {}))


def _send(address: str, path: str, body: bytes | Iterable[bytes] | None, headers: dict[str, str]) -> Raw:
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        return Raw(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def request(api: str, prompt: str, *, stream: bool, tools: bool = True) -> tuple[str, dict[str, Any]]:
    """Where to send a prompt, and what."""
    said = [{"role": "user", "content": prompt}]
    match api:
        case "anthropic":
            offered: list[Any] = [{"name": "Bash", "input_schema": COMMAND}]
            return "/v1/messages", {"model": "m", "stream": stream, "messages": said, "tools": offered if tools else []}
        case "responses":
            offered = [{"type": "function", "name": "shell_command", "parameters": COMMAND}]
            return "/v1/responses", {"model": "m", "stream": stream, "input": said, "tools": offered if tools else []}
        case "chat":
            offered = [{"type": "function", "function": {"name": "bash", "parameters": COMMAND}}]
            body = {"model": "m", "stream": stream, "messages": said, "tools": offered if tools else []}
            return "/v1/chat/completions", body
        case _:
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            declared = [{"name": "run_shell_command", "parametersJsonSchema": COMMAND}]
            contents = [{"role": "user", "parts": [{"text": prompt}]}]
            offered = [{"functionDeclarations": declared}]
            return f"/v1beta/models/m:{verb}", {"contents": contents, "tools": offered if tools else []}
