"""The tools of one server, as it told them and as clients see them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from remuda.gateway.cleaning import clean
from remuda.gateway.names import name_all, shown_name
from remuda.gateway.tokens import count_tokens

LONGEST = 256 << 10  # bytes of a definition; no model could be given more
MOST_NAMED = 20  # tools in one sentence
MOST_LISTED = 1000  # tools of one server in a client's list; the others can still be called by name


class Tool(NamedTuple):
    name: str  # as the server calls it
    shown: str  # as clients do
    definition: Mapping[str, Any]  # as clients see it
    tokens: int


class ToolList(NamedTuple):
    tools: Mapping[str, Tool]  # by the name that clients see, in order of it
    barred: Mapping[str, str]  # tools that cannot be called, by the name that clients would see -> why
    told: tuple[Mapping[str, Any], ...]  # as the server told them, for whoever compares them with earlier ones

    @property
    def tokens(self) -> int:
        return sum(tool.tokens for tool in self.tools.values())


def read_tools(server: str, items: Sequence[Raw]) -> ToolList:
    """What is no definition of a tool is left out. The order is ours, so that a list is the same whenever it is asked
    for: what changes in a prompt before its end is paid for again."""
    told = [found for item in items if len(item) <= LONGEST and (found := _definition(item)) is not None]
    by_name: dict[str, Mapping[str, Any]] = {}
    for each in told:
        by_name.setdefault(each["name"], each)
    named = name_all(server, [each["name"] for each in told])
    tools = {shown: _tool(name, shown, by_name[name]) for shown, name in sorted(named.shown.items())}
    return ToolList(tools, {**_too_long(server, items), **named.collisions}, tuple(told))


def _too_long(server: str, items: Sequence[Raw]) -> dict[str, str]:
    long = [found["name"] for item in items if len(item) > LONGEST and (found := _definition(item)) is not None]
    why = f"its definition is longer than the {LONGEST >> 10} KiB that a model could be given"
    return {shown_name(server, name): why for name in long}


def in_words(barred: Mapping[str, str]) -> list[str]:
    """Each reason once, with the tools that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for name, why in barred.items():
        by_reason.setdefault(why, []).append(name)
    return [f"{', '.join(names[:MOST_NAMED])}{_more(names)}: {why}" for why, names in by_reason.items()]


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""


def recall(server: str, definitions: Sequence[Mapping[str, Any]]) -> ToolList:
    """The same list from definitions that were kept."""
    return read_tools(server, [Raw(msgspec.json.encode(each)) for each in definitions])


def _definition(item: Raw) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(item)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("name"), str) and found["name"] else None


def _tool(name: str, shown: str, told: Mapping[str, Any]) -> Tool:
    definition = {**clean(told), "name": shown}
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":  # clients drop the whole list for one of these
        definition["inputSchema"] = {"type": "object", **(schema if isinstance(schema, dict) else {})}
    # Models are given these three and nothing else of it.
    seen = {key: definition.get(key) for key in ("name", "description", "inputSchema")}
    return Tool(name, shown, definition, count_tokens(msgspec.json.encode(seen).decode()))
