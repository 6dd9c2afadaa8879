"""The Agent Client Protocol as values: how a session is opened, and how permission is asked and given.

Pure: no pipe, no clock, no await. What a session tells is read in acp_reading.py, counted in acp_tally.py; the
connection that uses them all is in acp.py.

Agents differ in what they fill in, so everything optional is taken leniently: what we cannot read is left out, for the
transcript has it anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.agents import Asked, Launch, McpServer
from remuda.agents.quirks import PLAIN, Quirks
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure

PROTOCOL_VERSION = 1
NOTHING = Raw(b"null")

T = TypeVar("T")


def lenient(raw: Raw, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        return None


def as_text(value: object) -> str:
    """Compact JSON, a bare string as it is, nothing for nothing."""
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# Opening a session


class _SessionCapabilities(Struct):
    resume: Any = None
    fork: Any = None


class _McpCapabilities(Struct):
    http: bool | None = False


class _Capabilities(Struct, rename="camel"):
    load_session: bool | None = False
    session_capabilities: _SessionCapabilities | None = None
    mcp_capabilities: _McpCapabilities | None = None


class _Welcome(Struct, rename="camel"):
    protocol_version: int = 0
    agent_capabilities: _Capabilities | None = None


@dataclass(frozen=True, slots=True)
class Welcome:
    """What an agent says that it can do."""

    resume: bool
    load: bool
    fork: bool
    http_tools: bool


def welcome(raw: Raw) -> Welcome:
    said = lenient(raw, _Welcome)
    if said is None or said.protocol_version != PROTOCOL_VERSION:
        spoken = said.protocol_version if said else "something unreadable"
        raise AgentFault(
            f"the agent speaks ACP version {spoken} and Remuda speaks {PROTOCOL_VERSION}; update one of them",
            Failure.MALFORMED,
        )
    can = said.agent_capabilities or _Capabilities()
    sessions = can.session_capabilities or _SessionCapabilities()
    tools = can.mcp_capabilities or _McpCapabilities()
    return Welcome(
        resume=sessions.resume is not None,
        load=bool(can.load_session),
        fork=sessions.fork is not None,
        http_tools=bool(tools.http),
    )


def openings(can: Welcome, launch: Launch, quirks: Quirks = PLAIN) -> tuple[str, ...]:
    """Which methods to try to open the session, best first.

    The last begins a new conversation, except for a fork: a copy that is none would be worse than an error.
    """
    if launch.fork and launch.resume:
        if not (can.fork or quirks.forks_unasked):
            raise AgentFault(
                f"{launch.backend} cannot fork a conversation; resume it, or begin a new one", Failure.REFUSED
            )
        return ("session/fork",)
    ways = (
        ("session/resume", launch.resume and can.resume),
        ("session/load", launch.resume and can.load),
        ("session/new", True),
    )
    return tuple(method for method, possible in ways if possible)


def tool_servers(servers: Sequence[McpServer], can: Welcome) -> list[Mapping[str, Any]]:
    within_reach = [each for each in servers if can.http_tools or not each.url]
    for each in servers:
        if each not in within_reach and not each.optional:
            raise AgentFault(
                f"the agent cannot call the tool server {each.name!r} over HTTP; give it as a command", Failure.REFUSED
            )
    return [_tool_server(each) for each in within_reach]


def _tool_server(server: McpServer) -> Mapping[str, Any]:
    if server.url:
        return {"type": "http", "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
    program, *arguments = server.command
    return {"name": server.name, "command": program, "args": arguments, "env": _pairs(server.env)}


def without_secrets(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, for the transcript: the values of variables and headers are often keys."""
    return {**params, "mcpServers": [_masked(each) for each in params["mcpServers"]]}


def _masked(server: Mapping[str, Any]) -> Mapping[str, Any]:
    hidden = {key: [{**pair, "value": "…"} for pair in server[key]] for key in ("env", "headers") if key in server}
    return {**server, **hidden}


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[Mapping[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


# What an opened session is set to


class _Modes(Struct, rename="camel"):
    current_mode_id: str | None = None


class _Models(Struct, rename="camel"):
    current_model_id: str | None = None


class _Setting(Struct, rename="camel"):
    id: str = ""
    category: str | None = None
    current_value: Any = None


class Opened(Struct, rename="camel"):
    session_id: str = ""
    modes: _Modes | None = None
    models: _Models | None = None
    config_options: list[_Setting] | None = None

    @property
    def mode(self) -> str:
        return (self.modes and self.modes.current_mode_id) or self.setting("mode")

    @property
    def model(self) -> str:
        return (self.models and self.models.current_model_id) or self.setting("model")

    def setting(self, kind: str) -> str:
        for each in self.config_options or ():
            if kind in (each.category, each.id) and isinstance(each.current_value, str):
                return each.current_value
        return ""

    def choice_of_model(self, session: str, model: str) -> tuple[str, Mapping[str, str]] | None:
        """The request that sets the model, in the way this agent has; None if it has none."""
        for each in self.config_options or ():
            if "model" in (each.category, each.id):
                return "session/set_config_option", {"sessionId": session, "configId": each.id, "value": model}
        if self.models is not None:
            return "session/set_model", {"sessionId": session, "modelId": model}
        return None


def opened(raw: Raw) -> Opened:
    return lenient(raw, Opened) or Opened()


# Permissions


class _Option(Struct, rename="camel"):
    option_id: str
    kind: str = ""


class _Location(Struct):
    path: str = ""


class _PermissionTool(Struct, rename="camel"):
    tool_call_id: str = ""
    name: str | None = None
    title: str | None = None
    kind: str | None = None
    raw_input: Any = None
    locations: list[_Location] | None = None


class _Permission(Struct, rename="camel"):
    options: list[_Option] = []
    tool_call: _PermissionTool | None = None


def permission_asked(sender: object, params: Raw) -> Asked:
    """What the agent wants to do, as far as it says."""
    said = lenient(params, _Permission) or _Permission()
    tool = said.tool_call or _PermissionTool()
    return Asked(
        id=tool.tool_call_id or str(sender),
        tool=tool.name or tool.kind or tool.title or "a tool",
        arguments=as_text(tool.raw_input),
        paths=tuple(each.path for each in tool.locations or () if each.path),
        title=tool.title or "",
    )


def permission(params: Raw, allow: bool) -> Mapping[str, Any]:
    """The answer in the agent's own terms: this once if that is offered, else however it may be said."""
    asked = lenient(params, _Permission)
    word = "allow" if allow else "reject"
    for wanted in (f"{word}_once", word):
        for option in asked.options if asked else []:
            if option.kind.startswith(wanted):
                return {"outcome": {"outcome": "selected", "optionId": option.option_id}}
    return {"outcome": {"outcome": "cancelled"}}
