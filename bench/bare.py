"""The least that speaks to an agent's program over its pipes: no supervision, no record, nothing understood but the
answers, and every question answered with yes. It is what a turn through Remuda is held against."""

import asyncio
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


async def start_pipe(
    argv: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    pipe = subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *argv, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, limit=2**24
    )


class Pipe:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._asked = 0

    def write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = await self.process.stdout.readline()
        if not line:
            raise EOFError("the agent ended in the middle")
        message: dict[str, Any] = json.loads(line)
        return message


class RpcPipe(Pipe):
    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        self._asked += 1
        self.write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        while True:
            message = await self.read()
            if message.get("id") == self._asked and "method" not in message:
                return message["result"]
            self.agree(message)

    def agree(self, message: Mapping[str, Any]) -> None:
        if "method" in message and "id" in message:
            self.write({"jsonrpc": "2.0", "id": message["id"], "result": self.yes(message)})

    def yes(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError


class AcpPipe(RpcPipe):
    _session = ""

    async def open(self, folder: Path, mode: str = "") -> None:
        await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = await self.call("session/new", {"cwd": str(folder), "mcpServers": []})
        self._session = opened["sessionId"]
        if mode:
            await self.call("session/set_mode", {"sessionId": self._session, "modeId": mode})

    async def turn(self, text: str) -> None:
        await self.call("session/prompt", {"sessionId": self._session, "prompt": [{"type": "text", "text": text}]})

    def yes(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        options = asked["params"]["options"]
        chosen = next(each["optionId"] for each in options if each["kind"].startswith("allow"))
        return {"outcome": {"outcome": "selected", "optionId": chosen}}


class CodexPipe(RpcPipe):
    _thread = ""

    async def open(self, params: Mapping[str, Any]) -> None:
        client = {"name": "bare", "title": "bare", "version": "1"}
        await self.call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self.write({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        self._thread = (await self.call("thread/start", params))["thread"]["id"]

    async def turn(self, text: str) -> None:
        await self.call("turn/start", {"threadId": self._thread, "input": [{"type": "text", "text": text}]})
        while (message := await self.read()).get("method") != "turn/completed":
            self.agree(message)

    def yes(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"decision": "accept"}


class ClaudePipe(Pipe):
    async def turn(self, text: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self.write({"type": "user", "message": message, "parent_tool_use_id": None})
        while (said := await self.read())["type"] != "result":
            if said["type"] == "control_request":
                decision = {"behavior": "allow", "updatedInput": said["request"]["input"]}
                reply = {"subtype": "success", "request_id": said["request_id"], "response": decision}
                self.write({"type": "control_response", "response": reply})
