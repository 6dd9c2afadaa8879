"""What an agent's session tells, in our words, and what a turn came to.

Pure. Feed a `Reading` the agent's messages in order.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from remuda.agents import ModelCall, Retry, Text, Thought, ToolCall, TurnResult, Update
from remuda.agents.acp_codec import NOTHING, as_text, lenient
from remuda.agents.acp_tally import Answer, Cost, Tally, Tokens
from remuda.agents.books import Kept
from remuda.agents.failures import cause
from remuda.agents.jsonrpc import RpcError
from remuda.agents.quirks import PLAIN, Quirks
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome

_EVIDENCE = 300  # characters of a bad answer that the error quotes

Status = Literal["started", "completed", "failed"]

OUTCOMES: Mapping[str, tuple[Outcome, str, Failure | None]] = {
    "end_turn": (Outcome.COMPLETED, "", None),
    "max_tokens": (Outcome.COMPLETED, "", None),
    "max_turn_requests": (Outcome.COMPLETED, "", None),
    "refusal": (Outcome.FAILED, "the agent refused to go on", Failure.REFUSED),
    "cancelled": (Outcome.FAILED, "the turn was cancelled", Failure.CANCELLED),
}
SILENCE = (
    "the agent ended its turn without a word, a tool or a model call that it counted: "
    "this is how it reports a model call that failed"
)


class _Block(Struct):
    type: str = ""
    text: str = ""
    content: "_Block | None" = None  # tool calls wrap their blocks once more
    path: str = ""


class _Change(Struct, tag_field="sessionUpdate", rename="camel"):
    pass


class _ChunkMeta(Struct):
    usage: Tokens | None = None


class _Message(_Change, tag="agent_message_chunk"):
    content: _Block
    meta: _ChunkMeta | None = msgspec.field(name="_meta", default=None)


class _Thought(_Change, tag="agent_thought_chunk"):
    content: _Block


class _NamedTool(Struct, rename="camel"):
    tool_name: str = ""


class _Owner(Struct, rename="camel"):
    tool_call: _NamedTool | None = None


class _ToolMeta(Struct, rename="camel"):
    goose: _Owner | None = None
    claude_code: _NamedTool | None = None

    @property
    def name(self) -> str:
        inner = (self.goose and self.goose.tool_call) or self.claude_code
        return inner.tool_name if inner else ""


class _ToolChanged(_Change, tag="tool_call_update"):
    tool_call_id: str
    name: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[_Block] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: _ToolMeta | None = msgspec.field(name="_meta", default=None)


class _ToolStarted(_ToolChanged, tag="tool_call"):
    pass


class _Meta(Struct):
    call: Tokens | None = msgspec.field(name="remuda/call", default=None)


class _UsageChanged(_Change, tag="usage_update"):
    used: int | None = None
    size: int | None = None
    cost: Cost | None = None
    accumulated_input_tokens: int | None = None
    accumulated_output_tokens: int | None = None
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class _MessageTokens(Struct, rename="camel"):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    cache_write_tokens: int | None = 0


class _MessageUsage(_Change, tag="message_usage"):
    usage: _MessageTokens


class _StatusLine(Struct):
    message: str = ""


class _StatusMessage(_Change, tag="status_message"):
    status: _StatusLine


class _CodexError(Struct):
    message: str = ""


class _CodexMeta(Struct):
    error: _CodexError | None = None


class _InfoMeta(Struct):
    codex: _CodexMeta | None = None


class _Info(_Change, tag="session_info_update"):
    meta: _InfoMeta | None = msgspec.field(name="_meta", default=None)


class _Notification(Struct):
    update: _Message | _Thought | _ToolStarted | _ToolChanged | _UsageChanged | _MessageUsage | _StatusMessage | _Info


class _PermissionAsked(Struct, rename="camel"):
    tool_call: Raw = NOTHING


class _Told(Struct):
    """What kind of failure it is, from an agent that knows our words for them."""

    kind: Failure
    retry_after: float | None = None


class _ErrorData(Struct, rename="camel"):
    error_kind: str = ""
    error_name: str = ""
    told: Raw = field(default=NOTHING, name="remuda/failure")


class Reading:
    """What has been understood of one session so far."""

    def __init__(self, quirks: Quirks = PLAIN) -> None:
        self._quirks = quirks
        self._tools: dict[str, ToolCall] = {}
        self._complaint = ""  # the failure that the agent told in this turn, in its words
        self._lively = False  # it has said or done something in this turn
        self.tally = Tally(quirks)

    def replay(self, params: Raw) -> None:
        """An update from before the session was open is history; only where its counters stand matters."""
        match _change(params):
            case _UsageChanged() as change:
                self._note(change)
                self.tally.replayed()

    def resumed(self) -> None:
        self.tally.resumed()

    def begin_turn(self) -> None:
        self._complaint = ""
        self._lively = False
        self.tally.begin_turn()

    def update(self, params: Raw) -> Sequence[Update]:
        match _change(params):
            case _Message() as change:
                return self._message(change)
            case _Thought(content) if content.text:
                self._lively = True
                return [Thought(content.text)]
            case _ToolChanged() as change:
                return self._tool(change)
            case _UsageChanged() as change:
                self._note(change)
                if change.meta and change.meta.call:
                    return [self._counted(change.meta.call)]
            case _MessageUsage(usage):
                return [self._counted(Tokens(*(getattr(usage, name) for name in usage.__struct_fields__)))]
            case _StatusMessage(status):
                self._hear_complaint(status.message)
            case _Info(meta) if meta and meta.codex and meta.codex.error:
                self._complaint = meta.codex.error.message or "the agent told of an error and not of which"
        return []

    def asked(self, params: Raw) -> Sequence[Update]:
        """Some agents tell of a tool for the first time when they ask whether they may use it."""
        said = lenient(params, _PermissionAsked)
        tool = lenient(said.tool_call, _ToolChanged) if said else None
        return self._tool(tool) if tool and tool.tool_call_id not in self._tools else []

    def name_of(self, tool_call: str) -> str:
        """What the tool of a call is named, if it is known: the same name in a question as in the transcript."""
        known = self._tools.get(tool_call)
        return known.name if known else ""

    def booked(self, books: Sequence[Kept], *, count: bool = True) -> Sequence[ModelCall]:
        """The model calls in the agent's own books that are new to us."""
        calls = self.tally.keep(books, count=count)
        self._lively = self._lively or any(call.usage.output_tokens for call in calls)
        return calls

    def end_turn(self, result: Raw, *, cancelled: bool = False) -> tuple[TurnResult, Sequence[ModelCall]]:
        answer = lenient(result, Answer)
        if answer is None:
            raise AgentFault(
                f"the agent answered the prompt with something else: {bytes(result)[:_EVIDENCE]!r}", Failure.MALFORMED
            )
        verdict = self._verdict(answer.stop_reason, cancelled)
        return verdict, self._settle(answer)

    def failed(self, error: RpcError, *, cancelled: bool = False) -> TurnResult:
        """What the turn came to, of which the agent says that it failed."""
        if cancelled:
            return TurnResult(Outcome.FAILED, "cancelled", error.message, Failure.CANCELLED)
        data = lenient(error.data, _ErrorData) or _ErrorData()
        if told := lenient(data.told, _Told):
            return TurnResult(Outcome.FAILED, "error", error.message, told.kind, told.retry_after)
        detail = as_text(lenient(error.data, object))
        kind = cause(f"{error.message} {detail}", code=error.code, name=data.error_name or data.error_kind)
        return TurnResult(Outcome.FAILED, "error", error.message, kind.failure, kind.retry_after)

    def settle(self) -> Sequence[ModelCall]:
        """The turn ended without an answer that counts."""
        return self._settle(None)

    def _settle(self, answer: Answer | None) -> Sequence[ModelCall]:
        self._tools.clear()
        return self.tally.settle(answer)

    def _verdict(self, reason: str, cancelled: bool) -> TurnResult:
        unknown = (Outcome.FAILED, f"unknown stop reason {reason!r}", Failure.MALFORMED)
        outcome, error, failure = OUTCOMES.get(reason, unknown)
        if outcome is not Outcome.COMPLETED:
            return TurnResult(outcome, reason, error, failure)
        if self._complaint:
            kind = cause(self._complaint)
            return TurnResult(Outcome.FAILED, reason, self._complaint, kind.failure, kind.retry_after)
        if self._lively or not (self._quirks.silence_fails or cancelled):
            return TurnResult(outcome, reason, error, failure)
        if cancelled:
            return TurnResult(Outcome.FAILED, "cancelled", "the turn was cancelled", Failure.CANCELLED)
        return TurnResult(Outcome.FAILED, reason, SILENCE, Failure.MODEL_ERROR)

    def _message(self, change: _Message) -> Sequence[Update]:
        text = change.content.text
        if self._quirks.retries and (retry := self._quirks.retries.fullmatch(text)):
            return [_retry(retry)] if retry["attempt"] else []
        counted = [self._counted(change.meta.usage)] if change.meta and change.meta.usage else []
        if text and not self._hear_complaint(text):
            self._lively = True
        return [Text(text), *counted] if text else counted

    def _hear_complaint(self, text: str) -> bool:
        wanted = self._quirks.complaint
        if wanted is None or not wanted.fullmatch(text):
            return False
        self._complaint = text.strip()
        return True

    def _counted(self, tokens: Tokens) -> ModelCall:
        call = self.tally.one(tokens)
        self._lively = self._lively or call.usage.output_tokens > 0
        return call

    def _tool(self, change: _ToolChanged) -> Sequence[ToolCall]:
        self._lively = True
        before = self._tools.get(change.tool_call_id)
        name = _name(change) or (before.name if before else self._first_name(change))
        now = replace(
            before or ToolCall(change.tool_call_id, name, "started"),
            name=name,
            status=_status(change.status, before),
            arguments=as_text(change.raw_input) or (before.arguments if before else _described(change, name)),
            result=_result(change) or (before.result if before else ""),
        )
        self._tools[now.id] = now
        return [now] if before is None or before.status != now.status else []

    def _first_name(self, change: _ToolChanged) -> str:
        within = self._quirks.tool_in_id
        found = within.match(change.tool_call_id) if within else None
        return found[1] if found else change.title or change.kind or change.tool_call_id

    def _note(self, change: _UsageChanged) -> None:
        self.tally.note(change.used, change.size, change.cost)
        if change.accumulated_input_tokens is not None:
            self.tally.total(Tokens(change.accumulated_input_tokens, change.accumulated_output_tokens))


def _retry(told: re.Match[str]) -> Retry:
    return Retry(int(told["attempt"]), Failure.MODEL_ERROR, told[0], float(told["seconds"]))


def _change(params: Raw) -> _Change | None:
    notification = lenient(params, _Notification)
    return notification.update if notification else None


def _name(change: _ToolChanged) -> str:
    return change.name or (change.meta.name if change.meta else "")


def _described(change: _ToolChanged, name: str) -> str:
    """In place of arguments, which Gemini never tells: its titles say the command or the file."""
    return change.title if change.raw_input is None and change.title and change.title != name else ""


def _status(said: str | None, before: ToolCall | None) -> Status:
    match said:
        case "completed" | "failed":
            return said
        case None if before:
            return before.status
    return "started"


def _result(change: _ToolChanged) -> str:
    texts = [_block_text(block) for block in change.content or ()]
    return "\n".join(text for text in texts if text) or as_text(change.raw_output)


def _block_text(block: _Block) -> str:
    inner = block.content or block
    return f"changed {inner.path}" if inner.type == "diff" else inner.text
