"""Tokens and model of a turn, from the transcript that the agent's program keeps: what was written since it began."""

import json

from remuda.records.files import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST = 64 << 20  # bytes of one turn's transcript


def used(path: str, offset: int) -> "dict[str, Any]":
    """`tokens` and `model`, as far as they can be told. Whatever is odd in the file is passed over."""
    try:
        data = (read(path) or b"")[offset : offset + MOST]
    except OSError:
        return {}
    calls: dict[str, dict[str, int]] = {}
    model = ""
    for number, line in enumerate(_objects(data)):
        model = _claude(line, calls) or _codex(line, calls, number) or model
    names = ("input", "output", "cache_read", "cache_creation")
    tokens = {name: sum(call[name] for call in calls.values()) for name in names} if calls else None
    return {"tokens": tokens, "model": model}


def _objects(data: bytes) -> "Iterator[dict[str, Any]]":
    for line in data.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _claude(line: "dict[str, Any]", calls: dict[str, dict[str, int]]) -> str:
    """A call to the model is told in several lines with one id; the last has the sum."""
    message = line.get("message")
    if line.get("type") != "assistant" or not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
        return ""
    usage = message["usage"]
    calls[str(message.get("id"))] = {
        "input": _count(usage.get("input_tokens")),
        "output": _count(usage.get("output_tokens")),
        "cache_read": _count(usage.get("cache_read_input_tokens")),
        "cache_creation": _count(usage.get("cache_creation_input_tokens")),
    }
    return str(message.get("model") or "")


def _codex(line: "dict[str, Any]", calls: dict[str, dict[str, int]], number: int) -> str:
    payload = line.get("payload")
    if not isinstance(payload, dict):
        return ""
    if line.get("type") == "turn_context":
        return str(payload.get("model") or "")
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) and payload.get("type") == "token_count" else None
    if isinstance(last, dict):
        cached = _count(last.get("cached_input_tokens"))
        calls[f"codex {number}"] = {
            "input": max(0, _count(last.get("input_tokens")) - cached),
            "output": _count(last.get("output_tokens")),
            "cache_read": cached,
            "cache_creation": 0,
        }
    return ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
