"""The gateway's own tools: find a server by what one wants to do, start one by name, call a tool by name. Pure.

The third is for clients that never look at the list again: whatever was found can be called through it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from remuda.gateway.choice import Choice, Offered, Tier
from remuda.gateway.tokens import count_tokens
from remuda.gateway.toollist import ToolList, in_words

RESOLVE, ACTIVATE, CALL = "resolve_intent", "activate", "call_tool"
LONGEST_INTENT = 2000  # characters that are looked at
MOST_LISTED = 100  # servers that are named when nothing fits

DEFINITIONS: tuple[Mapping[str, Any], ...] = (
    {
        "name": RESOLVE,
        "description": "Finds the tool server for what you want to do and starts it when there is a clear one. Say the "
        "task in a few words, for example: query the orders table in postgres.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What you want to do"}},
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": ACTIVATE,
        "description": "Starts a tool server by its name and tells its tools.",
        "inputSchema": {
            "type": "object",
            "properties": {"server": {"type": "string", "description": "As resolve_intent names it"}},
            "required": ["server"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": CALL,
        "description": "Calls a tool of a tool server by its full name, server__tool, also when it is not in your list "
        "of tools.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "As resolve_intent or activate told it"},
                "arguments": {"type": "object", "description": "As the tool's schema says"},
            },
            "required": ["name"],
        },
    },
)
NAMES = frozenset(each["name"] for each in DEFINITIONS)
TOKENS = count_tokens(msgspec.json.encode(DEFINITIONS).decode())


class Active(NamedTuple):
    """A server that has just been started, or ran already, as it is told to the model."""

    server: str
    tools: ToolList
    steering: str  # what its owner wants the model to know; told once
    listed: bool  # its tools stand in the client's list by now


def told_active(active: Active) -> str:
    said = [f"The tool server {active.server!r} is running."]
    if active.steering:
        said.append(active.steering)
    if not active.tools.tools:
        said.append("It has no tools that you can call.")
    elif active.listed:
        said.append("Its tools are in your list now: " + ", ".join(active.tools.tools) + ".")
    else:
        said.append(f"Call its tools with {CALL}, by the names given here:")
        said += [_schema(tool.definition) for tool in active.tools.tools.values()]
    said += [f"Not usable: {why}." for why in in_words(active.tools.barred)]
    return "\n\n".join(said)


def told_choice(choice: Choice, names: Sequence[str]) -> str:
    """For everything but a clear winner."""
    match choice.tier:
        case Tier.CLOSE:
            several = f"Several tool servers could do this. Start the one you mean with {ACTIVATE}:"
            one = f"This tool server could do it. If it is what you mean, start it with {ACTIVATE}:"
            head = several if len(choice.offered) > 1 else one
            return "\n".join([head, *map(_line, choice.offered)])
        case Tier.WEAK:
            head = f"No tool server fits well. {ACTIVATE} starts what is nearest, or say it in other words:"
            return "\n".join([head, *map(_line, choice.offered)])
        case _:
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            known = ", ".join(names[:MOST_LISTED]) or "none"
            return f"No tool server fits. There are: {known}{more}. {ACTIVATE} starts one by its name."


def _line(offered: Offered) -> str:
    return f"- {offered.server}: {offered.why}"


def _schema(definition: Mapping[str, Any]) -> str:
    description = str(definition.get("description") or "").strip()
    schema = msgspec.json.encode(definition["inputSchema"]).decode()
    return f"{definition['name']}: {description}\narguments: {schema}"
