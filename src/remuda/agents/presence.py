"""Which agents are on this machine: where, and in which version."""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from remuda.agents.catalog import Row
from remuda.agents.find import find

WITHIN = 15.0  # seconds that a program may take to say its version; some start slowly
VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Presence:
    name: str
    row: Row
    path: str = ""  # "" when it is not here
    version: str = ""  # "" when it would not say


def look(rows: Mapping[str, Row]) -> list[Presence]:
    """Where each program is. Starts none of them."""
    return [Presence(name, row, find(row.program, row.bundled, os.environ) or "") for name, row in rows.items()]


async def look_closely(rows: Mapping[str, Row]) -> list[Presence]:
    """... and which version it is; all are asked at once."""
    return list(await asyncio.gather(*map(_with_version, look(rows))))


async def _with_version(seen: Presence) -> Presence:
    if not seen.path or not seen.row.version:
        return seen
    return Presence(seen.name, seen.row, seen.path, await _version(seen.path, seen.row.version))


async def _version(path: str, arguments: tuple[str, ...]) -> str:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(path, *arguments, stdin=nothing, stdout=pipe, stderr=nothing)
    except OSError:
        return ""
    try:
        async with asyncio.timeout(WITHIN):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    found = VERSION.search(said.decode(errors="replace"))
    return found[0] if found else ""
