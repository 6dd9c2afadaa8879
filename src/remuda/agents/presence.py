"""Which agents are on this machine: where, and in which version.

To say its version a program must be started, and some take seconds for it. So what was said is kept in the user's
cache folder, for as long as the file is the same.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import Struct

from remuda.agents.catalog import Row
from remuda.agents.find import find

WITHIN = 15.0  # seconds that a program may take to say its version; some start slowly
AT_ONCE = 4  # programs that are asked; more of them only wait for each other
VERSION = re.compile(r"\d+\.\d+(?:[.+-]?\w+)*")
LONGEST = 100  # characters of a version
MOST_BYTES = 1024 * 1024  # of what was kept; more is none of ours


@dataclass(frozen=True, slots=True)
class Presence:
    name: str
    row: Row
    path: str = ""  # "" when it is not here
    version: str = ""  # "" when it would not say


class _Kept(Struct):
    changed: int  # the file's time, in nanoseconds ...
    size: int  # ... and its size, when it was asked
    version: str


def look(rows: Mapping[str, Row]) -> list[Presence]:
    """Where each program is. Starts none of them."""
    return [Presence(name, row, find(row.program, row.bundled, os.environ) or "") for name, row in rows.items()]


async def look_closely(rows: Mapping[str, Row], kept: Path) -> list[Presence]:
    """... and which version it is; those that are not `kept` in that file are asked, some at once."""
    known = _read(kept)
    room = asyncio.Semaphore(AT_ONCE)

    async def closely(seen: Presence) -> Presence:
        if not seen.path or not seen.row.version:
            return seen
        now = _stamp(seen.path)
        before = known.get(seen.path)
        if before and now == (before.changed, before.size):
            return replace(seen, version=before.version)
        async with room:
            version = await _version(seen.path, seen.row.version)
        if version and now:
            known[seen.path] = _Kept(*now, version)
        return replace(seen, version=version)

    asked_before = dict(known)
    found = list(await asyncio.gather(*map(closely, look(rows))))
    if known != asked_before:
        _write(kept, known)
    return found


def versions_kept() -> Path:
    """Where the user's versions are kept."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return cache / "remuda" / "versions.json"


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        told = os.stat(path)  # of what a link leads to: an update changes that
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size


def _read(kept: Path) -> dict[str, _Kept]:
    try:
        with kept.open("rb") as file:
            known = msgspec.json.decode(file.read(MOST_BYTES), type=dict[str, _Kept])
    except (OSError, msgspec.DecodeError, UnicodeError):
        return {}  # it is asked again
    return {path: each for path, each in known.items() if _is_version(each.version)}


def _write(kept: Path, known: Mapping[str, _Kept]) -> None:
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    with suppress(OSError):  # then it is asked again the next time
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.write_bytes(msgspec.json.encode(known))
        beside.replace(kept)


def _is_version(text: str) -> bool:
    return len(text) <= LONGEST and VERSION.fullmatch(text) is not None


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
    return found[0][:LONGEST] if found else ""
