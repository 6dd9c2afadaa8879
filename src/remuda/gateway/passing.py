"""Requests and results on their way through: only what must be changed is, everything else keeps its bytes."""

import json
from typing import NamedTuple

import msgspec
from msgspec import Raw

from remuda.mcp.eras import OURS
from remuda.mcp.jsonrpc import EMPTY, INVALID_PARAMS, RpcError, members, raw, together

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


class Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class Content(msgspec.Struct, rename="camel"):
    content: list[Block] = []
    is_error: bool = False


_read_content = msgspec.json.Decoder(Content).decode


def failed(result: Raw) -> bool:
    """Whether a result says of itself that it is an error."""
    if b'"isError"' not in bytes(result):
        return False
    return content_of(result).is_error


def content_of(result: Raw) -> Content:
    """What a result says, as far as it can be read."""
    try:
        return _read_content(result)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Content()


def text_result(text: str, *, error: bool = False) -> Raw:
    return raw({"content": [{"type": "text", "text": text}], "isError": error})
