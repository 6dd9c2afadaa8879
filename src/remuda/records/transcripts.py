"""Tokens and model of a turn, from the transcript that the agent's program keeps: what was written since it began."""

import json
import time

from remuda.records.files import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST = 64 << 20  # bytes of one turn's transcript
PATIENCE = 1.0  # seconds for the last word to be written
LOOK_EVERY = 0.02
TAIL = 40  # characters by which it is known


def used(path: str, offset: int, last_word: str = "") -> "dict[str, Any]":
    """`tokens` and `model`, as far as they can be told. Whatever is odd in the file is passed over. A program may write
    its last word, and with it what that cost, a moment after it has told it: it is waited for."""
    until = time.monotonic() + PATIENCE
    try:
        lines = _since(path, offset)
        while lines and last_word and not _says(lines, last_word[-TAIL:]) and time.monotonic() < until:
            time.sleep(LOOK_EVERY)
            lines = _since(path, offset)
    except OSError:
        return {}
    calls: dict[str, dict[str, int]] = {}
    model = ""
    for number, line in enumerate(lines):
        model = _claude(line, calls) or _codex(line, calls, number) or model
    names = ("input", "output", "cache_read", "cache_creation")
    tokens = {name: sum(call[name] for call in calls.values()) for name in names} if calls else None
    return {"tokens": tokens, "model": model}


def _since(path: str, offset: int) -> "list[dict[str, Any]]":
    return list(_objects((read(path) or b"")[offset : offset + MOST]))


def _says(lines: "list[dict[str, Any]]", word: str) -> bool:
    return any(line.get("type") == "assistant" and word in _text(line.get("message")) for line in lines)


def _text(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


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
