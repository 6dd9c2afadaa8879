"""JSON-RPC 2.0, one message a line, as values. Pure: the pipes are elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure

METHOD_NOT_FOUND = -32601
_EVIDENCE = 300  # characters of a bad line that the error quotes

NOTHING = Raw(b"null")

Id = int | str | None


@dataclass(frozen=True, slots=True)
class Request:
    id: Id
    method: str
    params: Raw


@dataclass(frozen=True, slots=True)
class Notice:
    method: str
    params: Raw


@dataclass(frozen=True, slots=True)
class RpcResult:
    id: Id
    result: Raw


@dataclass(frozen=True, slots=True)
class RpcError:
    id: Id
    code: int
    message: str
    data: Raw = field(default_factory=lambda: NOTHING)


Message = Request | Notice | RpcResult | RpcError


class _Error(Struct):
    code: int = 0
    message: str = "no message"
    data: Raw = NOTHING


class _Envelope(Struct):
    id: Id | UnsetType = UNSET
    method: str = ""
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: _Error | None = None


def decode(line: str) -> Message:
    try:
        envelope = msgspec.json.decode(line, type=_Envelope)
    except (msgspec.DecodeError, UnicodeError) as error:
        evidence = f"the agent wrote a line that is no JSON-RPC message ({error}): {line[:_EVIDENCE]}"
        raise AgentFault(evidence, Failure.MALFORMED) from error
    sender = None if envelope.id is UNSET else envelope.id
    if envelope.method and envelope.id is UNSET:
        return Notice(envelope.method, envelope.params)
    if envelope.method:
        return Request(sender, envelope.method, envelope.params)
    if envelope.error is not None:
        return RpcError(sender, envelope.error.code, envelope.error.message, envelope.error.data)
    if envelope.result is UNSET:
        evidence = f"the agent wrote a message with neither method, result nor error: {line[:_EVIDENCE]}"
        raise AgentFault(evidence, Failure.MALFORMED)
    return RpcResult(sender, envelope.result)


def request(number: int, method: str, params: Mapping[str, Any]) -> str:
    return _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notice(method: str, params: Mapping[str, Any]) -> str:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def answer(to: Id, result: Mapping[str, Any]) -> str:
    return _encode({"jsonrpc": "2.0", "id": to, "result": result})


def failure(to: Id, code: int, message: str) -> str:
    return _encode({"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}})


def _encode(message: Mapping[str, Any]) -> str:
    return msgspec.json.encode(message).decode()
