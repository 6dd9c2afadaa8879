"""`remuda gateway serve` as a real process, and the official SDK as its client."""

import json
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from gateway.kit import CHILD

START = (sys.executable, "-P", "-m", "remuda.cli.entry", "gateway", "serve")


def write_settings(folder: Path, servers: Mapping[str, dict[str, Any]], **gateway: Any) -> Path:
    """A gateway.toml in which each server is the child that behaves as said."""
    lines = ["[gateway]", *(f"{key} = {json.dumps(value)}" for key, value in gateway.items())]
    for name, behaves in servers.items():
        lines += [f"[gateway.servers.{name}]", f"command = {json.dumps([sys.executable, '-I', '-S', str(CHILD)])}"]
        lines += ["[gateway.servers." + name + ".env]", f"CHILD = {json.dumps(json.dumps(behaves))}"]
    path = folder / "gateway.toml"
    beside = folder / "gateway.toml.new"
    beside.write_text("\n".join(lines) + "\n")
    tomllib.loads(beside.read_text())
    beside.replace(path)
    return path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}


@asynccontextmanager
async def over_stdio(folder: Path, era: str = "legacy", *options: str, **client: Any) -> AsyncIterator[Client]:
    command, *arguments = START
    start = StdioServerParameters(
        command=command, args=[*arguments, *options], cwd=str(folder), env=environment(folder)
    )
    async with Client(start, mode=era, **client) as connected:
        yield connected


async def say(client: Client, name: str, /, **arguments: Any) -> str:
    (block,) = (await client.call_tool(name, arguments)).content
    assert isinstance(block, TextContent)
    return block.text
