"""The Agent Client Protocol as values: what an agent's messages mean, and what they add up to.

Pure: no pipe, no clock, no await. The connection that uses it is in acp.py.

Agents differ in what they fill in, so everything optional is taken leniently: an update that we cannot read
is left out, for the transcript has it anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.agents import ModelCall, Text, Thought, ToolCall, TurnResult, Update
from remuda.domain.errors import AgentFault
from remuda.domain.state import Outcome, Usage

PROTOCOL_VERSION = 1
NANOS = 1_000_000_000
_EVIDENCE = 300  # characters of a bad answer that the error quotes

Status = Literal["started", "completed", "failed"]
T = TypeVar("T")
_NOTHING = Raw(b"null")

OUTCOMES: Mapping[str, tuple[Outcome, str]] = {
    "end_turn": (Outcome.COMPLETED, ""),
    "max_tokens": (Outcome.COMPLETED, ""),
    "max_turn_requests": (Outcome.COMPLETED, ""),
    "refusal": (Outcome.FAILED, "the agent refused to go on"),
    "cancelled": (Outcome.FAILED, "the turn was cancelled"),
}


# Opening a session


class _SessionCapabilities(Struct):
    resume: Any = None


class _Capabilities(Struct, rename="camel"):
    load_session: bool | None = False
    session_capabilities: _SessionCapabilities | None = None


class _Welcome(Struct, rename="camel"):
    protocol_version: int = 0
    agent_capabilities: _Capabilities | None = None


class _Opened(Struct, rename="camel"):
    session_id: str = ""


def openings(welcome: Raw, resume: str) -> tuple[str, ...]:
    """Which methods to try to open the session, best first. The last always begins a new conversation."""
    said = _lenient(welcome, _Welcome)
    if said is None or said.protocol_version != PROTOCOL_VERSION:
        spoken = said.protocol_version if said else "something unreadable"
        raise AgentFault(
            f"the agent speaks ACP version {spoken} and Remuda speaks {PROTOCOL_VERSION}; update one of them"
        )
    can = said.agent_capabilities or _Capabilities()
    sessions = can.session_capabilities or _SessionCapabilities()
    ways = (
        ("session/resume", resume and sessions.resume is not None),
        ("session/load", resume and can.load_session),
        ("session/new", True),
    )
    return tuple(method for method, possible in ways if possible)


def session_id(opened: Raw) -> str:
    said = _lenient(opened, _Opened)
    return said.session_id if said else ""


# Permissions


class _Option(Struct, rename="camel"):
    option_id: str
    kind: str = ""


class _Permission(Struct):
    options: list[_Option] = []


def permit(params: Raw) -> Mapping[str, Any]:
    """The answer that lets the agent go on: once if that is offered, else however it may be allowed."""
    asked = _lenient(params, _Permission)
    options = asked.options if asked else []
    for wanted in ("allow_once", "allow"):
        for option in options:
            if option.kind.startswith(wanted):
                return {"outcome": {"outcome": "selected", "optionId": option.option_id}}
    return {"outcome": {"outcome": "cancelled"}}


# Updates of a session


class _Block(Struct):
    type: str = ""
    text: str = ""
    content: "_Block | None" = None  # tool calls wrap their blocks once more
    path: str = ""


class _Change(Struct, tag_field="sessionUpdate", rename="camel"):
    pass


class _Message(_Change, tag="agent_message_chunk"):
    content: _Block


class _Thought(_Change, tag="agent_thought_chunk"):
    content: _Block


class _ToolChanged(_Change, tag="tool_call_update"):
    tool_call_id: str
    name: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[_Block] | None = None
    raw_input: Any = None
    raw_output: Any = None


class _ToolStarted(_ToolChanged, tag="tool_call"):
    pass


class _Tokens(Struct, rename="camel"):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_read_tokens: int | None = 0
    cached_write_tokens: int | None = 0
    cost_usd: Decimal | None = None


class _Cost(Struct):
    amount: Decimal
    currency: str = "USD"


class _Meta(Struct):
    call: _Tokens | None = msgspec.field(name="remuda/call", default=None)


class _UsageChanged(_Change, tag="usage_update"):
    used: int | None = None
    size: int | None = None
    cost: _Cost | None = None
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class _Notification(Struct):
    update: _Message | _Thought | _ToolStarted | _ToolChanged | _UsageChanged


class _TurnEnded(Struct, rename="camel"):
    stop_reason: str
    usage: Raw = _NOTHING


class Reading:
    """What has been understood of one session so far. Feed it the agent's messages in order."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolCall] = {}
        self._calls = 0
        self._context = 0
        self._window = 0
        self._cost: int | None = None  # the session's, as last told
        self._counted: int | None = 0  # how much of it is in a ModelCall already, if that is known
        self._each_call_told = False  # then the total at the end of a turn would count everything twice

    def replay(self, params: Raw) -> None:
        """An update from before the session was open is history; only where its counters stand matters."""
        match _change(params):
            case _UsageChanged() as change:
                self._note(change)
                if self._cost is not None:
                    self._counted = self._cost

    def resumed(self) -> None:
        """The agent's cost may go on from that of earlier processes: the first it tells is only where to count from.

        The call that it is told with stays without a price. To count the whole past once more would be worse.
        """
        self._counted = self._cost

    def update(self, params: Raw) -> Sequence[Update]:
        match _change(params):
            case _Message(content) if content.text:
                return [Text(content.text)]
            case _Thought(content) if content.text:
                return [Thought(content.text)]
            case _ToolChanged() as change:
                return self._tool(change)
            case _UsageChanged() as change:
                self._note(change)
                if change.meta and change.meta.call:
                    self._each_call_told = True
                    return [self._call(change.meta.call)]
        return []

    def end_turn(self, result: Raw) -> tuple[TurnResult, Sequence[ModelCall]]:
        ended = _lenient(result, _TurnEnded)
        if ended is None:
            raise AgentFault(f"the agent answered the prompt with something else: {bytes(result)[:_EVIDENCE]!r}")
        reason = ended.stop_reason
        outcome, error = OUTCOMES.get(reason, (Outcome.FAILED, f"unknown stop reason {reason!r}"))
        return TurnResult(outcome, reason, error), self.settle(ended.usage)

    def settle(self, usage: Raw = _NOTHING) -> Sequence[ModelCall]:
        """Count what the turn used, however it ended: money that was spent is spent."""
        self._tools.clear()
        if self._each_call_told:
            return []
        tokens = _lenient(usage, _Tokens) or _Tokens()
        call = self._call(tokens)
        used = call.usage
        if not (used.input_tokens or used.output_tokens or used.cache_read_tokens or used.cost_nanousd):
            self._calls -= 1  # nothing happened, so no call is reported under that number
            return []
        return [call]

    def _tool(self, change: _ToolChanged) -> Sequence[ToolCall]:
        before = self._tools.get(change.tool_call_id)
        name = change.name or (before.name if before else change.title or change.kind or change.tool_call_id)
        now = replace(
            before or ToolCall(change.tool_call_id, name, "started"),
            name=name,
            status=_status(change.status, before),
            arguments=_json(change.raw_input) or (before.arguments if before else ""),
            result=_result(change) or (before.result if before else ""),
        )
        self._tools[now.id] = now
        return [now] if before is None or before.status != now.status else []

    def _note(self, change: _UsageChanged) -> None:
        self._context = self._context if change.used is None else change.used
        self._window = self._window if change.size is None else change.size
        if change.cost and change.cost.currency.upper() == "USD":
            self._cost = _nanousd(change.cost.amount)
            if self._counted and self._cost < self._counted:  # the agent began to count anew
                self._counted = 0

    def _call(self, tokens: _Tokens) -> ModelCall:
        self._calls += 1
        cost = None if self._cost is None or self._counted is None else self._cost - self._counted
        if self._cost is not None:
            self._counted = self._cost
        usage = Usage(
            input_tokens=tokens.input_tokens or 0,
            output_tokens=tokens.output_tokens or 0,
            cache_read_tokens=tokens.cached_read_tokens or 0,
            cache_creation_tokens=tokens.cached_write_tokens or 0,
            context_tokens=self._context,
            context_window=self._window,
            cost_nanousd=cost if tokens.cost_usd is None else _nanousd(tokens.cost_usd),
        )
        return ModelCall(self._calls, usage)


def _change(params: Raw) -> _Change | None:
    notification = _lenient(params, _Notification)
    return notification.update if notification else None


def _status(said: str | None, before: ToolCall | None) -> Status:
    match said:
        case "completed" | "failed":
            return said
        case None if before:
            return before.status
    return "started"


def _result(change: _ToolChanged) -> str:
    texts = [_block_text(block) for block in change.content or ()]
    return "\n".join(text for text in texts if text) or _json(change.raw_output)


def _block_text(block: _Block) -> str:
    inner = block.content or block
    return f"changed {inner.path}" if inner.type == "diff" else inner.text


def _json(value: object) -> str:
    """Compact JSON, a bare string as it is, nothing for nothing."""
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _nanousd(amount: Decimal) -> int:
    return int((amount * NANOS).to_integral_value())


def _lenient(raw: Raw, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        return None
