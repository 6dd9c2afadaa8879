"""JSON-RPC 2.0 as MCP writes it, as values. Pure.

Whatever is not ours to read stays as the bytes that came (`Raw`): a result that passes through is written as it was
read, with all that its sender put there and we know nothing of.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

EMPTY = Raw(b"{}")
_EVIDENCE = 200  # characters of a bad message that the error quotes

Id = int | str


class Request(NamedTuple):
    id: Id
    method: str
    params: Raw = EMPTY


class Notification(NamedTuple):
    method: str
    params: Raw = EMPTY


class Result(NamedTuple):
    id: Id
    result: Raw


class Failure(NamedTuple):
    """An error in place of a result. `error` is the whole object, as it came or as we made it."""

    id: Id | None
    error: Raw


class Malformed(NamedTuple):
    """No message at all. Whoever wrote it is told, under its id where it has one."""

    id: Id | None
    code: int
    why: str


Message = Request | Notification | Result | Failure | Malformed


class RpcError(Exception):
    """What a request is answered with when it cannot be answered."""

    def __init__(self, code: int, message: str, data: Raw | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    @property
    def body(self) -> Raw:
        data = {} if self.data is None else {"data": self.data}
        return Raw(msgspec.json.encode({"code": self.code, "message": self.message, **data}))


class _Error(Struct):
    code: int = INTERNAL_ERROR
    message: str = "no message"
    data: Raw | UnsetType = UNSET


class _Envelope(Struct):
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = EMPTY
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Envelope).decode
_decode_error = msgspec.json.Decoder(_Error).decode
_encode = msgspec.json.encode


def decode(data: bytes) -> Message:
    try:
        envelope = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        whole = _without_halves(data)
        return _malformed(data, error) if whole == data else decode(whole)
    sender = envelope.id
    if envelope.method is not UNSET:
        if sender is UNSET:
            return Notification(envelope.method, envelope.params)
        if sender is None:
            return Malformed(None, INVALID_REQUEST, "the id of a request cannot be null")
        return Request(sender, envelope.method, envelope.params)
    sender = None if sender is UNSET else sender
    if envelope.error is not UNSET:
        return Failure(sender, envelope.error)
    if envelope.result is UNSET or sender is None:
        return Malformed(sender, INVALID_REQUEST, f"neither method, result nor error: {_quote(data)}")
    return Result(sender, envelope.result)


def fault(error: Raw) -> RpcError:
    """The error of a failure, to be raised. One that nobody can read is an error all the same."""
    try:
        read = _decode_error(error)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return RpcError(INTERNAL_ERROR, f"an error that cannot be read: {_quote(bytes(error))}")
    return RpcError(read.code, read.message, None if read.data is UNSET else read.data)


def request(number: Id, method: str, params: Raw) -> bytes:
    head = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":' % (_encode(number), _encode(method))
    return b"".join((head, one_line(params), b"}"))


def notification(method: str, params: Raw) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method), one_line(params), b"}"))


def result(to: Id, value: Raw) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":%b,"result":' % _encode(to), one_line(value), b"}"))


def failure(to: Id | None, error: Raw) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":%b,"error":' % _encode(to), one_line(error), b"}"))


def raw(value: Any) -> Raw:
    return Raw(_encode(value))


def one_line(value: Raw) -> bytes:
    """A line break in JSON can only stand between its parts, so a space does as well, and a message is one line."""
    data = bytes(value)
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in data or b"\r" in data else data


_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def members(value: Raw) -> dict[str, Raw]:
    """An object taken apart, each of its members as it came. RpcError for anything else."""
    try:
        return _decode_members(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"an object was expected: {error}") from error


def together(parts: Mapping[str, Raw]) -> Raw:
    return Raw(_encode(parts))


# A pair of halves, half of one, or any other escape: only the second is no character.
_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.", re.DOTALL)
_HALF = len(b"\\ud800")


def _without_halves(data: bytes) -> bytes:
    """Who cuts a text in the middle of an emoji sends half a character, and every program in JavaScript writes it down
    as such. No other one reads it, so it becomes the character that stands for none."""
    if b"\\u" not in data:
        return data
    return _ESCAPE.sub(lambda found: b"\\ufffd" if len(found[0]) == _HALF else found[0], data)


# Where senders write the id: ahead of everything that can be long, or after it.
_NUMBER = rb'"id"\s*:\s*(0|[1-9]\d{0,17}|"[ !#-\[\]-~]{0,100}")\s*'
_AHEAD = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _NUMBER + rb",")
_AFTER = re.compile(rb',\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _NUMBER + rb"\}\s*\Z")


def _id_in(data: bytes) -> Id | None:
    """Of what cannot be read as a whole: whoever waits for it should know."""
    found = _AHEAD.match(data) or _AFTER.search(data, max(0, len(data) - 300))
    return msgspec.json.decode(found[1], type=int | str) if found else None


def _malformed(data: bytes, error: Exception) -> Malformed:
    """Whether it is not JSON, or JSON but no message: their senders are told different things."""
    try:
        parsed = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Malformed(_id_in(data), PARSE_ERROR, f"this is not JSON ({error}): {_quote(data)}")
    found = parsed.get("id") if isinstance(parsed, dict) else None
    sender = found if isinstance(found, int | str) and not isinstance(found, bool) else None
    what = "batches are not supported; send one message at a time" if isinstance(parsed, list) else str(error)
    return Malformed(sender, INVALID_REQUEST, f"this is no JSON-RPC message ({what}): {_quote(data)}")


def _quote(data: bytes) -> str:
    return data[:_EVIDENCE].decode(errors="replace")
