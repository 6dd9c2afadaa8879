"""The tools of each server as they were first seen, or last approved by a person: kept, and compared at every start.

A server that is started again and again is given as many chances to come back with other tools than those that were
looked at. What it says first is taken at its word; whatever it says later must be the same, to the letter of each name,
description and schema, or that tool is barred until someone has said `remuda gateway approve`. A tool that is gone does
no harm: some servers tell their tools by what the client can do, and the next client may see it again.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from remuda.domain.errors import Refused
from remuda.gateway.toollist import ToolList

log = logging.getLogger("remuda.gateway")

DEFINES = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MOST_NAMED = 5  # tools in a message


class Kept(msgspec.Struct, frozen=True):
    tools: tuple[dict[str, Any], ...]
    digests: dict[str, str]  # by tool
    tokens: int = 0
    at: float = 0.0


class Difference(NamedTuple):
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def in_words(self) -> str:
        parts = {"changed": self.changed, "new": self.added, "gone": self.removed}
        return "; ".join(f"{what}: {_some(names)}" for what, names in parts.items() if names)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(name[:80] for name in names[:MOST_NAMED]) + more


def digest(tool: Mapping[str, Any]) -> str:
    defining = {key: tool[key] for key in DEFINES if key in tool}
    return hashlib.sha256(msgspec.json.encode(defining, order="sorted")).hexdigest()


def digests(tools: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """By name; two tools of one name are one that no digest can hide behind."""
    found: dict[str, str] = {}
    for tool in tools:
        name = str(tool.get("name"))
        found[name] = f"{found[name]} {digest(tool)}" if name in found else digest(tool)
    return found


def compare(before: Mapping[str, str], now: Mapping[str, str]) -> Difference:
    return Difference(
        changed=tuple(sorted(name for name in before.keys() & now.keys() if before[name] != now[name])),
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
    )


def shown_change(tool: Mapping[str, Any], was: Mapping[str, Any] | None) -> Iterator[str]:
    """For a person who decides: what is new of a tool, with every character that is not plain spelled out."""
    yield f"{json.dumps(tool.get('name'))} ({'new' if was is None else 'changed'})"
    for key in DEFINES[1:]:
        for sign, side in (("-", was or {}), ("+", tool)):
            if key in side and (was or {}).get(key) != tool.get(key):
                yield f"  {sign} {key}: {json.dumps(side[key])}"


def without(tools: ToolList, barred: Collection[str], server: str) -> ToolList:
    """As if they were not there; but whoever asks for one is told why."""
    said = f"not as it was approved; a person has to look at it and say `remuda gateway approve {server}`"
    why = {tool.shown: said for tool in tools.tools.values() if tool.name in barred}
    rest = {shown: tool for shown, tool in tools.tools.items() if shown not in why}
    return tools._replace(tools=rest, barred={**tools.barred, **why})


class Approvals:
    """One folder: NAME.json is what was approved, NAME.offered.json what the server would rather have."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "tools"
        self._compared: dict[str, tuple[int, int]] = {}  # with which file the tools of a server were last compared

    def kept(self, server: str) -> Kept | None:
        return self._read(f"{server}.json")

    def offered(self, server: str) -> Kept | None:
        return self._read(f"{server}.offered.json")

    def check(self, server: str, tools: ToolList, *, any_tools: bool = False) -> ToolList:
        """The tools, without those that are not as they were approved. The first that are ever seen are kept."""
        now = Kept(tuple(dict(each) for each in tools.told), digests(tools.told), tools.tokens, time.time())
        self._compared[server] = self._stamp(server)
        before = self.kept(server)
        if before is None or any_tools:
            self._write(f"{server}.json", now)
            self._compared[server] = self._stamp(server)
            return tools
        difference = compare(before.digests, now.digests)
        barred = frozenset(difference.changed + difference.added)
        if not barred:
            return tools
        self._write(f"{server}.offered.json", now)
        log.warning("%s: tools that nobody approved are kept back (%s)", server, difference.in_words())
        return without(tools, barred, server)

    def newer(self, server: str) -> bool:
        """Whether something was approved since its tools were last compared."""
        return self._compared.get(server) != self._stamp(server)

    def _stamp(self, server: str) -> tuple[int, int]:
        try:
            found = (self._folder / f"{server}.json").stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)

    def approve(self, server: str) -> Difference:
        offered = self.offered(server)
        if offered is None:
            raise Refused(f"{server!r} has no other tools than those that are approved; there is nothing to approve")
        before = self.kept(server) or Kept((), {})
        stay = tuple(tool for tool in before.tools if str(tool.get("name")) not in offered.digests)
        merged = {**before.digests, **offered.digests}
        self._write(f"{server}.json", Kept(stay + offered.tools, merged, offered.tokens, time.time()))
        (self._folder / f"{server}.offered.json").unlink(missing_ok=True)
        return compare(before.digests, merged)

    def _read(self, name: str) -> Kept | None:
        try:
            return msgspec.json.decode((self._folder / name).read_bytes(), type=Kept)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise Refused(
                f"{self._folder / name} cannot be read ({error}), so nobody can tell whether its tools are those that "
                "were approved; remove the file to take them as they come next"
            ) from error

    def _write(self, name: str, kept: Kept) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = self._folder / f".{name}.{os.getpid()}"
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(kept))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._folder / name)
        except OSError as error:
            log.warning("the tools of a server cannot be kept, so changes of them go unseen: %s", error)
