"""The two eras of MCP: sessions that begin with a handshake, and requests that each say who is asking. Pure.

Up to 2025-11-25 a client says hello once (`initialize`), and either side may speak at any time after that. From
2026-07-28 there is neither hello nor session: every request carries its envelope in `_meta`, the server never asks,
and what changed is only told to those who listen (`subscriptions/listen`).
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from remuda.mcp.jsonrpc import EMPTY, INVALID_PARAMS, Id, RpcError, raw

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
UNSUPPORTED_VERSION = -32022

OURS = "io.modelcontextprotocol/"  # begins the keys of the envelope
VERSION, INFO, CAPABILITIES = f"{OURS}protocolVersion", f"{OURS}clientInfo", f"{OURS}clientCapabilities"
SUBSCRIPTION = f"{OURS}subscriptionId"

# Results that a client of the newer era may keep, and must be told for how long.
CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)

TOOLS_CHANGED = "notifications/tools/list_changed"

# What a client of the newer era hears only when it listens, and how it asks for it.
LISTENED = {
    TOOLS_CHANGED: "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
RESOURCE_UPDATED = "notifications/resources/updated"


@dataclass(frozen=True, slots=True)
class Who:
    """Who is at the other end, as far as they said."""

    name: str = ""
    version: str = ""
    protocol: str = ""  # empty before the handshake
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        return self.protocol in MODERN


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server says of itself."""

    name: str
    version: str
    capabilities: Mapping[str, Any]
    instructions: str = ""


class _Info(Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Hello(Struct, rename="camel"):
    protocol_version: str = HANDSHAKE[0]
    capabilities: dict[str, Any] = {}
    client_info: _Info = _Info()


class _Meta(Struct):
    version: str | UnsetType = msgspec.field(name=VERSION, default=UNSET)
    info: _Info = msgspec.field(name=INFO, default=_Info())
    capabilities: dict[str, Any] = msgspec.field(name=CAPABILITIES, default={})


class _Params(Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


_read_params = msgspec.json.Decoder(_Params).decode
_read_hello = msgspec.json.Decoder(_Hello).decode
_MARK = VERSION.encode()


def stands_alone(params: Raw) -> bool:
    """Whether a request may say itself who asks; `envelope` knows."""
    return _MARK in bytes(params)


def envelope(params: Raw) -> Who | None:
    """Who asks, when the request says so itself; None for one that belongs to a session."""
    if not stands_alone(params):
        return None  # by far the most: no need to parse them
    try:
        meta = _read_params(params).meta
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"the request's _meta cannot be read: {error}") from error
    if meta is None or meta.version is UNSET:
        return None
    if meta.version not in MODERN:
        data = raw({"supported": [*MODERN, *HANDSHAKE], "requested": meta.version})
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return Who(meta.info.name, meta.info.version, meta.version, meta.capabilities)


def hello(params: Raw) -> Who:
    """Who begins a session, with the version that both sides will speak in it."""
    try:
        said = _read_hello(params)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"initialize cannot be read: {error}") from error
    version = said.protocol_version if said.protocol_version in HANDSHAKE else HANDSHAKE[-1]
    return Who(said.client_info.name, said.client_info.version, version, said.capabilities)


def welcome(offer: Offer, who: Who) -> Raw:
    """The answer to `initialize`."""
    told: dict[str, Any] = {
        "protocolVersion": who.protocol,
        "capabilities": offer.capabilities,
        "serverInfo": {"name": offer.name, "version": offer.version},
    }
    return raw(told | ({"instructions": offer.instructions} if offer.instructions else {}))


def discovered(offer: Offer) -> Raw:
    """The answer to `server/discover`."""
    told: dict[str, Any] = {
        "supportedVersions": [*MODERN, *HANDSHAKE],
        "capabilities": offer.capabilities,
        "_meta": {f"{OURS}serverInfo": {"name": offer.name, "version": offer.version}},
    }
    return raw(told | ({"instructions": offer.instructions} if offer.instructions else {}))


class _Stamps(Struct):
    resultType: str | UnsetType = UNSET  # noqa: N815  (their names)
    ttlMs: int | UnsetType = UNSET  # noqa: N815


_read_stamps = msgspec.json.Decoder(_Stamps).decode


def stamped(method: str, result: Raw) -> Raw:
    """A result with what the newer era wants in each, ahead of all that it holds already."""
    try:
        has = _read_stamps(result)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return result
    stamps = b'"resultType":"complete"' if has.resultType is UNSET else b""
    if method in CACHEABLE and has.ttlMs is UNSET:
        stamps += b"," * bool(stamps) + b'"ttlMs":0,"cacheScope":"private"'
    rest = bytes(result).lstrip()[1:].lstrip()
    if not stamps:
        return result
    return Raw(b"{" + stamps + (rest if rest.startswith(b"}") else b"," + rest))


class Wanted(Struct, frozen=True):
    """What a client listens for, as far as we can tell it."""

    toolsListChanged: bool | None = None  # noqa: N815  (their names)
    promptsListChanged: bool | None = None  # noqa: N815
    resourcesListChanged: bool | None = None  # noqa: N815
    resourceSubscriptions: tuple[str, ...] | None = None  # noqa: N815

    def hears(self, method: str, params: Raw) -> bool:
        if method == RESOURCE_UPDATED:
            return _read_uri(params).uri in (self.resourceSubscriptions or ())
        return bool(getattr(self, LISTENED.get(method, ""), False))

    def only(self, known: Set[str]) -> "Wanted":
        """The same without the resources that nobody can tell of."""
        uris = tuple(uri for uri in self.resourceSubscriptions or () if uri in known)
        return msgspec.structs.replace(self, resourceSubscriptions=uris or None)


class _Uri(Struct):
    uri: str = ""


class _Listen(Struct):
    notifications: Wanted = Wanted()


_read_uri = msgspec.json.Decoder(_Uri).decode
_read_listen = msgspec.json.Decoder(_Listen).decode


def wanted(params: Raw) -> Wanted:
    try:
        return _read_listen(params).notifications
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RpcError(INVALID_PARAMS, f"subscriptions/listen cannot be read: {error}") from error


def acknowledged(subscription: Id, honoured: Wanted) -> Raw:
    said = {name: value for name, value in msgspec.structs.asdict(honoured).items() if value}
    return raw({"_meta": {SUBSCRIPTION: subscription}, "notifications": said})


def to_listener(subscription: Id, params: Raw) -> Raw:
    """The parameters of a notification, marked with the subscription that they answer."""
    parts = msgspec.json.decode(params or EMPTY, type=dict[str, Raw])
    return raw({**parts, "_meta": {SUBSCRIPTION: subscription}})
