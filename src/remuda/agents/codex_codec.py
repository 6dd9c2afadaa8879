"""What the messages of Codex's app-server mean, and what they add up to. Pure: the connection is in codex.py.

Usage is told as a running total of the conversation, and told again when nothing was used: some time after a resume (of
a turn long past), and when a turn is interrupted. So a model call is what the total has grown by, never the message
itself. Of input tokens the cached ones are a part here; `Usage` counts them apart, as all backends do.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.agents import Asked, ModelCall, Retry, Text, Thought, ToolCall, TurnResult, Update
from remuda.agents.failures import by_status, by_words, model_failure
from remuda.agents.jsonrpc import Id
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome, Usage

T = TypeVar("T")
CUT_SHORT = "the turn ended before the tool did"
_EVIDENCE = 300  # characters of a bad message that the error quotes
_ATTEMPT = re.compile(r"(\d+)/\d+")  # "Reconnecting... 1/5"

# Codex's own names for what went wrong.
KINDS: Mapping[str, Failure] = {
    "contextWindowExceeded": Failure.CONTEXT_EXCEEDED,
    "usageLimitExceeded": Failure.RATE_LIMITED,
    "rateLimitExceeded": Failure.RATE_LIMITED,
    "serverOverloaded": Failure.OVERLOADED,
    "flexUnavailable": Failure.OVERLOADED,
    "unauthorized": Failure.NOT_LOGGED_IN,
    "cyberPolicy": Failure.REFUSED,
    "misalignmentPolicyViolation": Failure.REFUSED,
    "internalServerError": Failure.MODEL_ERROR,
}


class Error(Struct, rename="camel"):
    message: str = ""
    codex_error_info: Any = None
    additional_details: str | None = None


class Turn(Struct):
    id: str = ""
    status: str = ""
    error: Error | None = None


class Item(Struct, rename="camel"):
    """A step of a turn: something said, thought or done. Which of the fields it has depends on its type."""

    type: str = ""
    id: str = ""
    status: str | None = None
    text: str | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: list[Any] | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    result: Any = None
    error: Any = None
    query: str | None = None


class Breakdown(Struct, rename="camel"):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0


class TokenUsage(Struct, rename="camel"):
    last: Breakdown
    total: Breakdown
    model_context_window: int | None = None


class Params(Struct, rename="camel"):
    """What a notification may carry."""

    thread_id: str = ""
    turn_id: str = ""
    item_id: str = ""
    delta: str = ""
    item: Item | None = None
    turn: Turn | None = None
    error: Error | None = None
    will_retry: bool = False
    token_usage: TokenUsage | None = None
    request_id: Id = None


class _Thread(Struct):
    id: str = ""


class Opened(Struct):
    thread: _Thread
    model: str = ""


class Started(Struct):
    turn: Turn


class _Change(Struct):
    path: str = ""


class _Patch(Struct):
    changes: list[_Change] = []


class _Question(Struct, rename="camel"):
    item_id: str = ""
    command: str | None = None
    reason: str | None = None
    grant_root: str | None = None
    message: str | None = None
    server_name: str | None = None
    approval_id: str | None = None


class Reading:
    """What has been understood of one session so far. Feed it the server's notifications in order."""

    def __init__(self) -> None:
        self.thread = ""
        self.model = ""
        self._turns: set[str] = set()  # begun in this process; what is told of others is history
        self._tools: dict[str, ToolCall] = {}
        self._told: set[str] = set()  # items whose text came in pieces
        self._calls = 0
        self._totals: dict[str, Breakdown] = {}  # by thread: subagents have threads of their own
        self._trouble: Error | None = None

    def update(self, method: str, params: Params) -> Sequence[Update]:
        match method:
            case "item/agentMessage/delta" | "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta":
                return self._piece(method, params)
            case "item/started" if params.item:
                return self._started(params.item)
            case "item/completed" if params.item:
                return self._completed(params.item, params.thread_id)
            case "turn/started" if params.turn:
                self._turns.add(params.turn.id)
            case "thread/tokenUsage/updated" if params.token_usage:
                return self._used(params, params.token_usage)
            case "error" if params.error and params.will_retry:
                return [_retry(params.error)]
            case "error" if params.error:
                self._trouble = params.error
        return []

    def end_turn(self, turn: Turn) -> tuple[TurnResult, Sequence[Update]]:
        trouble, self._trouble = self._trouble, None
        return verdict(turn, trouble), self.give_up()

    def give_up(self) -> Sequence[Update]:
        """The turn is over, however: a tool that still runs will never be heard of again."""
        tools = [replace(tool, status="failed", result=CUT_SHORT) for tool in self._tools.values()]
        self._tools.clear()
        self._told.clear()
        return tools

    def asked(self, sender: Id, method: str, params: Raw) -> Asked:
        """What it wants to do. The tool call that a question is about was told before it."""
        said = lenient(params, _Question) or _Question()
        about = self._tools.get(said.item_id)
        what = method.removeprefix("item/").partition("/")[0]
        return Asked(
            id=said.approval_id or said.item_id or str(sender),
            tool=about.name if about else (said.server_name or what),
            arguments=about.arguments if about else _json({"command": said.command} if said.command else None),
            paths=_paths(about.arguments) if about else (),
            title=said.reason or said.message or said.command or "",
        )

    def _piece(self, method: str, params: Params) -> Sequence[Update]:
        if params.thread_id != self.thread or not params.delta:
            return []
        self._told.add(params.item_id)
        return [Text(params.delta) if method == "item/agentMessage/delta" else Thought(params.delta)]

    def _started(self, item: Item) -> Sequence[Update]:
        tool = _tool(item)
        if tool is None or tool.id in self._tools:
            return []
        self._tools[tool.id] = tool
        return [tool]

    def _completed(self, item: Item, thread: str) -> Sequence[Update]:
        if item.type == "agentMessage":
            whole = thread == self.thread and item.id not in self._told and item.text
            return [Text(item.text or "")] if whole else []
        tool = _tool(item)
        if tool is None:
            return []
        started = [] if tool.id in self._tools else [tool]
        self._tools.pop(tool.id, None)
        done = item.status in (None, "completed")
        return [*started, replace(tool, status="completed" if done else "failed", result=_result(item))]

    def _used(self, params: Params, used: TokenUsage) -> Sequence[Update]:
        before = self._totals.get(params.thread_id)
        self._totals[params.thread_id] = used.total
        # The first total that a turn tells may go on from a past that nobody told: then the last call is what is new.
        grown = used.last if before is None else _grown(used.total, before)
        if params.turn_id not in self._turns or grown == Breakdown():
            return []
        self._calls += 1
        usage = _usage(grown)
        context = used.last.input_tokens + used.last.output_tokens
        window = used.model_context_window or 0
        return [ModelCall(self._calls, replace(usage, context_tokens=context, context_window=window), self.model)]


def verdict(turn: Turn, trouble: Error | None) -> TurnResult:
    match turn.status:
        case "completed":
            return TurnResult(Outcome.COMPLETED, "end_turn")
        case "interrupted":
            return TurnResult(Outcome.FAILED, "cancelled", "the turn was cancelled", Failure.CANCELLED)
    error = turn.error or trouble or Error(f"codex ended the turn as {turn.status!r} and did not say why")
    failure = _failure(error)
    return TurnResult(Outcome.FAILED, "refusal" if failure is Failure.REFUSED else "error", _words(error), failure)


def _failure(error: Error) -> Failure:
    """What it was. The status of the call, where there was one, is surer than the name of what came of it."""
    kind, status = _info(error.codex_error_info)
    text = _words(error)
    return by_status(status) or KINDS.get(kind) or by_words(text) or model_failure(status, text)


def _info(info: Any) -> tuple[str, int | None]:
    """It is a name, or an object with a name for its only key, and perhaps an HTTP status under that."""
    if isinstance(info, str):
        return info, None
    if isinstance(info, dict) and len(info) == 1:
        ((kind, detail),) = info.items()
        status = detail.get("httpStatusCode") if isinstance(detail, dict) else None
        return str(kind), status if isinstance(status, int) else None
    return "", None


def _words(error: Error) -> str:
    return f"{error.message}: {error.additional_details}" if error.additional_details else error.message


def _retry(error: Error) -> Retry:
    attempt = _ATTEMPT.search(error.message)
    return Retry(int(attempt[1]) if attempt else 0, _failure(error), _words(error))


def _tool(item: Item) -> ToolCall | None:
    match item.type:
        case "commandExecution":
            return ToolCall(item.id, "shell", "started", _json({"command": item.command or ""}))
        case "fileChange":
            return ToolCall(item.id, "apply_patch", "started", _json({"changes": item.changes or []}))
        case "mcpToolCall":
            return ToolCall(item.id, f"mcp__{item.server}__{item.tool}", "started", _json(item.arguments))
        case "webSearch":
            return ToolCall(item.id, "web_search", "started", _json({"query": item.query or ""}))
        case "dynamicToolCall" | "collabAgentToolCall":
            return ToolCall(item.id, item.tool or item.type, "started", _json(item.arguments))
    return None


def _result(item: Item) -> str:
    if item.type == "commandExecution":
        code = f"exit code {item.exit_code}" if item.exit_code else ""
        said = item.aggregated_output or ("" if item.status != "declined" else "not allowed")
        return "\n".join(part for part in (said, code) if part)
    if item.type == "fileChange":
        return "not allowed" if item.status == "declined" else ""
    if item.error:
        return str(item.error.get("message", "")) if isinstance(item.error, dict) else _json(item.error)
    content = item.result.get("content") if isinstance(item.result, dict) else None
    texts = [each.get("text") for each in content or () if isinstance(each, dict)]
    return "\n".join(str(text) for text in texts if text) or _json(item.result)


def _paths(arguments: str) -> tuple[str, ...]:
    """Files that a patch names. What a shell command touches cannot be told from its text."""
    patch = lenient(Raw(arguments.encode()), _Patch) or _Patch()
    return tuple(change.path for change in patch.changes if change.path)


def _grown(total: Breakdown, before: Breakdown) -> Breakdown:
    """Never less than nothing: a conversation that was rolled back begins to count from less."""
    return Breakdown(*(max(0, a - b) for a, b in zip(_amounts(total), _amounts(before), strict=True)))


def _amounts(told: Breakdown) -> Iterable[int]:
    return told.input_tokens, told.cached_input_tokens, told.cache_write_input_tokens, told.output_tokens


def _usage(told: Breakdown) -> Usage:
    apart = told.cached_input_tokens + told.cache_write_input_tokens
    return Usage(
        input_tokens=max(0, told.input_tokens - apart),
        output_tokens=told.output_tokens,
        cache_read_tokens=told.cached_input_tokens,
        cache_creation_tokens=told.cache_write_input_tokens,
    )


def read(raw: Raw, shape: type[T]) -> T:
    """A reply that we cannot do without."""
    found = lenient(raw, shape)
    if found is None:
        raise AgentFault(f"codex answered with something else: {bytes(raw)[:_EVIDENCE]!r}", Failure.MALFORMED)
    return found


def lenient(raw: Raw, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _json(value: object) -> str:
    """Compact JSON, a bare string as it is, nothing for nothing."""
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class _PermissionsAsked(Struct):
    permissions: Any = None


def permissions_wanted(params: Raw, allow: bool) -> Any:
    """All that it asked for, or nothing."""
    asked = lenient(params, _PermissionsAsked)
    return asked.permissions if allow and asked and asked.permissions else {}
