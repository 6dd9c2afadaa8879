"""What the newer era wants repeated in HTTP headers, for whoever stands between and does not read bodies. Pure."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from remuda.mcp.jsonrpc import Message, Notification, Request

# Methods that name what they are about, and where.
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_MARK = "x-mcp-header"  # in the schema of an argument: the name under which it is repeated
_LONGEST = 64  # bits of a number; longer ones no server can have meant
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

# For each tool, where its marked arguments stand, and the header of each.
Marks = Mapping[str, Mapping[tuple[str, ...], str]]


class _About(Struct):
    name: str = ""
    uri: str = ""
    arguments: dict[str, Any] | None = None


_read_about = msgspec.json.Decoder(_About).decode


def routing(message: Message, marks: Marks) -> dict[str, str]:
    """The headers of one message: its method, what it is about, and the arguments that its tool has marked."""
    if not isinstance(message, Request | Notification):
        return {}
    headers = {"Mcp-Method": message.method}
    key = _NAMED.get(message.method)
    if key is None:
        return headers
    try:
        about = _read_about(message.params)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return headers  # the server will say what is wrong with it
    headers["Mcp-Name"] = _safe(getattr(about, key))
    for path, name in marks.get(about.name, {}).items() if message.method == "tools/call" else ():
        value = _at(about.arguments, path)
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str) or (isinstance(value, int) and value.bit_length() <= _LONGEST):
            headers[f"Mcp-Param-{name}"] = _safe(str(value))
    return headers


def marked(schema: Any) -> dict[tuple[str, ...], str]:
    """The arguments of a schema that have to be repeated, by where they stand."""
    return dict(_marked(schema, ()))


def _marked(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        mark = inner.get(_MARK) if isinstance(inner, Mapping) else None
        if isinstance(mark, str) and _TOKEN.fullmatch(mark):
            yield (*path, name), mark
        yield from _marked(inner, (*path, name))


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _safe(value: str) -> str:
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
