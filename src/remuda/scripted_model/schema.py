"""The smallest value that fits a JSON schema: for required arguments that a script left out, and for side calls."""

from collections.abc import Mapping
from typing import Any

from remuda.scripted_model.conversation import Schema

# Of several allowed values take one that lets the client go on: whose turn is it, may the tool run, how risky is it.
HARMLESS = ("user", "allow", "approve", "approved", "low", "none", "simple", "flash")
DEEP = 12


def sample(schema: Schema, depth: int = 0) -> Any:
    """A value that fits. Types may be written in capitals, as Gemini does."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return _harmless(schema["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key) and depth < DEEP:
            return sample(schema[key][0], depth + 1)
    return _of_kind(schema, depth)


def filled(schema: Schema, given: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """What was given, and a sample for each required property that was not."""
    properties = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or () if name not in given]
    return {**given, **{name: sample(properties.get(name) or {}, depth + 1) for name in missing}}


def _of_kind(schema: Schema, depth: int) -> Any:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    match str(kind).lower():
        case "object":
            return filled(schema, {}, depth) if depth < DEEP else {}
        case "array":
            fewest = schema.get("minItems") or 0
            return [sample(schema.get("items") or {}, depth + 1)] * fewest if depth < DEEP else []
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "null":
            return None
        case "none" if "properties" in schema and depth < DEEP:
            return filled(schema, {}, depth)
        case _:
            return "scripted"


def _harmless(allowed: list[Any]) -> Any:
    return next((each for each in HARMLESS if each in allowed), allowed[0])
