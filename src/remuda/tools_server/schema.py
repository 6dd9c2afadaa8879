"""The JSON Schema of a tool's arguments, with nothing by reference: some clients do not follow references."""

from typing import Any

import msgspec

from remuda.tools_server.arguments import Arguments


def schema(kind: type[Arguments]) -> dict[str, Any]:
    made = msgspec.json.schema(kind)
    parts: dict[str, Any] = made.pop("$defs", {})
    whole = _in_place(made, parts)
    assert isinstance(whole, dict)
    whole.pop("title", None)
    return whole


def _in_place(value: Any, parts: dict[str, Any]) -> Any:
    match value:
        case {"$ref": str(reference)}:
            rest = {key: each for key, each in value.items() if key != "$ref"}
            return _in_place({**parts[reference.rpartition("/")[2]], **rest}, parts)
        case dict():
            return {key: _in_place(each, parts) for key, each in value.items() if not _class_name(key, each)}
        case list():
            return [_in_place(each, parts) for each in value]
        case _:
            return value


def _class_name(key: str, value: object) -> bool:
    """A struct's title is the name of a class of ours; a property may be called title too, and is an object."""
    return key == "title" and isinstance(value, str)
