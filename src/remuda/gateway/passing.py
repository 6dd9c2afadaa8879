"""Requests and results on their way through: only what must be changed is, everything else keeps its bytes."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Raw

from remuda.mcp.eras import OURS
from remuda.mcp.jsonrpc import EMPTY, INVALID_PARAMS, RpcError, members, raw, together

EXCERPT = 2000  # characters of a result that is too long
TURN_KEYS = ("x-codex-turn-metadata",)  # in which clients tell of their own turns


class Call(NamedTuple):
    """A request that names a tool or a prompt, taken apart."""

    name: str
    parts: dict[str, Raw]
    meta: dict[str, Raw]

    @property
    def progress(self) -> Raw | None:
        return self.meta.get("progressToken")

    def onward(self, name: str, progress: int | None) -> Raw:
        """The same for the server, under its own name. A token of ours stands for the client's, so that those of two
        clients never meet; what the client said of itself is between it and us."""
        meta = {key: value for key, value in self.meta.items() if not key.startswith(OURS)}
        if progress is not None:
            meta["progressToken"] = raw(progress)
        parts = {**self.parts, "name": raw(name)}
        if meta:
            parts["_meta"] = together(meta)
        else:
            parts.pop("_meta", None)
        return together(parts)


_read_name = msgspec.json.Decoder(str).decode


def take_apart(params: Raw) -> Call:
    parts = members(params)
    try:
        name = _read_name(parts.get("name", EMPTY))
    except msgspec.MsgspecError as error:
        raise RpcError(INVALID_PARAMS, "the name is missing or is no text") from error
    return Call(name, parts, members(parts["_meta"]) if "_meta" in parts else {})


def plain(params: Raw) -> Raw:
    """Parameters without the client's envelope."""
    parts = members(params)
    if "_meta" not in parts:
        return params
    meta = {key: value for key, value in members(parts["_meta"]).items() if not key.startswith(OURS)}
    del parts["_meta"]
    return together({**parts, **({"_meta": together(meta)} if meta else {})})


def turn_of(call: Call) -> str:
    """The client's own id of its turn, where it tells one."""
    for key in TURN_KEYS:
        if key in call.meta:
            try:
                said = msgspec.json.decode(call.meta[key])
                said = json.loads(said) if isinstance(said, str) else said
                return str(said.get("turn_id") or "")
            except (ValueError, AttributeError):
                return ""
    return ""


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Content(msgspec.Struct, rename="camel"):
    content: list[_Block] = []
    is_error: bool = False


_read_content = msgspec.json.Decoder(_Content).decode


def failed(result: Raw) -> bool:
    """Whether a result says of itself that it is an error."""
    if b'"isError"' not in bytes(result):
        return False
    try:
        return _read_content(result).is_error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def spill(result: Raw, path: Path, what: str) -> Raw:
    """The result goes to a file, and in its place stands how it begins and where it is. Blocks: call it in a thread."""
    try:
        content = _read_content(result)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        content = _Content()
    only_text = bool(content.content) and all(block.type == "text" for block in content.content)
    text = "\n".join(block.text for block in content.content)
    data = text.encode(errors="replace") if only_text else bytes(result)
    path = path.with_suffix(".txt" if only_text else ".json")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    said = f"The result of {what} has {len(result):,} bytes, too many for here. All of it is in {path}."
    begins = f"{said} It begins:\n\n{text[:EXCERPT]}" if text else said
    return text_result(begins, error=content.is_error)


def text_result(text: str, *, error: bool = False) -> Raw:
    return raw({"content": [{"type": "text", "text": text}], "isError": error})
