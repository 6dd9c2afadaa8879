"""What Claude Code's lines mean, and what they add up to. Pure: the connection that uses it is in claude.py.

Three things about the stream shape this file:

- Text comes in pieces (`stream_event`) and then again as a whole (`assistant`). Only what was not told in pieces is
  told from the whole.
- A call's usage is complete only in its last event (`message_delta`); the whole message repeats its first estimate.
  Calls that are not streamed to us, those of subagents first of all, show in the sums at the end of the turn alone.
- Money is told once per turn, at its end. It goes on the turn's last call; the calls before it carry zero, so that the
  sum is right. A turn that dies before its end leaves its last call without a price, so that it can be seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec

from remuda.agents import Hook, ModelCall, Retry, Text, Thought, ToolCall, TurnResult, Update
from remuda.agents.claude_hooks import hook
from remuda.agents.claude_wire import (
    Assistant,
    Block,
    Event,
    Known,
    Message,
    ModelUsage,
    PromptOutcome,
    RateLimited,
    Result,
    Streamed,
    System,
    Tokens,
    User,
)
from remuda.agents.failures import by_status, model_failure
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome, Usage

NANOS = 1_000_000_000
NOTHING = Usage()
NO_REASON = "it did not say why"
CUT_SHORT = "the turn ended before the tool did"

# Ways to end that are no error of anyone: the agent was done, or the user's own hook said that it is.
COMPLETED = ("completed", "stop_hook_prevented", "hook_stopped")

REASONS: Mapping[str, Failure] = {
    "aborted_streaming": Failure.CANCELLED,
    "aborted_tools": Failure.CANCELLED,
    "prompt_too_long": Failure.CONTEXT_EXCEEDED,
    "blocking_limit": Failure.CONTEXT_EXCEEDED,
    "rapid_refill_breaker": Failure.CONTEXT_EXCEEDED,
}

# The program's own names for what the model's service said.
KINDS: Mapping[str, Failure] = {
    "authentication_failed": Failure.NOT_LOGGED_IN,
    "rate_limit": Failure.RATE_LIMITED,
    "overloaded": Failure.OVERLOADED,
}


@dataclass(frozen=True, slots=True)
class _Call:
    """A call to the model as far as it is known."""

    id: str = ""
    model: str = ""
    usage: Usage = NOTHING
    main: bool = True  # of the conversation itself, not of a subagent


class Reading:
    """What has been understood of one session so far. Feed it the program's lines in order."""

    def __init__(self, *, resumed: bool = False) -> None:
        self._tools: dict[str, ToolCall] = {}
        self._calls = 0
        self._context = 0
        self._windows: dict[str, int] = {}
        self._streaming: dict[str | None, _Call] = {}  # by the tool call whose subagent it is; None is the main one
        self._abandoned: list[_Call] = []  # begun and never finished: the program gave up on them
        self._held: list[_Call] = []  # finished, and perhaps the last of the turn
        self._counted: list[Usage] = []  # what this turn's finished calls used
        self._told: set[str] = set()  # messages of this turn whose text came in pieces
        # A resumed conversation's money goes on from where it stood, which nobody tells.
        self._cost: int | None = None if resumed else 0
        self._priced: int | None = 0  # what a call carries whose price comes later; None if none will come
        self._complaint = ""  # the program's name for the error it told last
        self._blocked = ""  # why a hook of the user's did not let the prompt through
        self._resets_at: float | None = None

    def update(self, line: Known) -> Sequence[Update]:
        match line:
            case Streamed():
                return self._streamed(line.event, line.parent_tool_use_id)
            case Assistant():
                return self._assistant(line)
            case User(message=Message(content=list() as blocks)):
                return [done for block in blocks for done in self._tool_done(block)]
            case System(subtype="api_retry"):
                return [_retry(line)]
            case System(subtype="hook_response"):
                return [self._hook(line)]
            case System(prompt_submit_outcome=PromptOutcome(kind="blocked_by_hook", reason=reason)):
                self._blocked = reason or NO_REASON
            case RateLimited(rate_limit_info=limit) if limit.status == "rejected":
                self._resets_at = limit.resets_at
        return []

    def end_turn(self, result: Result, now: float) -> tuple[TurnResult, Sequence[Update]]:
        """How the turn ended, and what it used that was not told before. `now` is in seconds since the epoch."""
        turn = self._blocked_turn() or verdict(result, self._complaint)
        if turn.failure is Failure.RATE_LIMITED and self._resets_at is not None:
            turn = replace(turn, retry_after=max(0.0, self._resets_at - now))
        self._complaint = self._blocked = ""
        self._resets_at = None
        self._windows.update(
            (name.partition("[")[0], usage.context_window)
            for name, usage in (result.model_usage or {}).items()
            if usage.context_window
        )
        cost = self._cost_of(result)
        return turn, [*self._cut_short(), *self._settle(result.turn_usage or {}, cost)]

    def _hook(self, line: System) -> Hook:
        told = hook(line)
        if line.hook_event == "UserPromptSubmit" and told.status == "blocked":
            self._blocked = told.text or NO_REASON
        return told

    def _blocked_turn(self) -> TurnResult | None:
        """The program calls it a success: nothing was done, and that went well."""
        if not self._blocked:
            return None
        why = f"a hook did not let the prompt through: {self._blocked}"
        return TurnResult(Outcome.FAILED, "blocked", why, Failure.REFUSED)

    def give_up(self) -> Sequence[Update]:
        """The turn will have no end. What it used is used, at a price that nobody told."""
        return [*self._cut_short(), *self._settle({}, None)]

    def _streamed(self, event: Event, parent: str | None) -> Sequence[Update]:
        match event:
            case Event(type="message_start", message=Message() as message):
                return self._begin(message, parent)
            case Event(type="content_block_delta") if parent is None:
                return self._piece(event)
            case Event(type="message_delta") if parent in self._streaming:
                call = self._streaming.pop(parent)
                call = replace(call, usage=_usage(event.usage, call.usage))
                if event.delta and event.delta.stop_reason:
                    return self._finish(call, event.delta.stop_reason)
                self._streaming[parent] = call  # the program closes a stream that broke: the call has no end
        return []

    def _begin(self, message: Message, parent: str | None) -> Sequence[Update]:
        if parent in self._streaming:
            self._abandoned.append(self._streaming.pop(parent))
        self._streaming[parent] = _Call(message.id, message.model, _usage(message.usage), main=parent is None)
        return self._release() if parent is None else []

    def _piece(self, event: Event) -> Sequence[Update]:
        call = self._streaming.get(None)
        if call is None or event.delta is None:
            return []
        self._told.add(call.id)
        if event.delta.text:
            return [Text(event.delta.text)]
        return [Thought(event.delta.thinking)] if event.delta.thinking else []

    def _finish(self, call: _Call, reason: str) -> Sequence[Update]:
        self._counted.append(call.usage)
        if call.main:
            self._context = _size(call.usage)
        if call.main and reason != "tool_use":
            self._held.append(call)  # most likely the last of the turn: it waits for its price
            return []
        return [self._report(call, self._priced)]

    def _release(self) -> Sequence[Update]:
        """It was not the last call after all."""
        calls = [self._report(call, self._priced) for call in self._held]
        self._held.clear()
        return calls

    def _assistant(self, line: Assistant) -> Sequence[Update]:
        message = line.message
        if line.is_api_error_message:
            self._complaint = line.error or ""
            return []
        blocks = message.content if isinstance(message.content, list) else [Block("text", text=message.content)]
        updates = [update for block in blocks if (update := self._whole(block, line))]
        known = any(call.id == message.id for call in (*self._streaming.values(), *self._held))
        if message.stop_reason and not known and message.id not in self._told:
            call = _Call(message.id, message.model, _usage(message.usage), main=line.parent_tool_use_id is None)
            updates.extend(self._finish(call, message.stop_reason))
        return updates

    def _whole(self, block: Block, line: Assistant) -> Update | None:
        if block.type == "tool_use" and block.id:
            tool = ToolCall(block.id, block.name or block.id, "started", _json(block.input))
            self._tools[tool.id] = tool
            return tool
        if line.parent_tool_use_id or line.message.id in self._told:
            return None  # a subagent speaks to the agent, not to us; and nothing is told twice
        if block.type == "text" and block.text:
            return Text(block.text)
        return Thought(block.thinking) if block.thinking else None

    def _tool_done(self, block: Block) -> Iterable[ToolCall]:
        tool = self._tools.pop(block.tool_use_id or "", None)
        if block.type == "tool_result" and tool:
            yield replace(tool, status="failed" if block.is_error else "completed", result=_plain(block.content))

    def _cut_short(self) -> Sequence[Update]:
        tools = [replace(tool, status="failed", result=CUT_SHORT) for tool in self._tools.values()]
        self._tools.clear()
        return tools

    def _cost_of(self, result: Result) -> int | None:
        """The turn's money, in billionths of a dollar; None where it cannot be known."""
        before, self._cost = self._cost, None if result.total_cost_usd is None else _nanousd(result.total_cost_usd)
        if any(usage.cost_basis == "unknown" for usage in (result.turn_usage or result.model_usage or {}).values()):
            self._priced = None  # the program has no price for this model and takes that of another: a guess
            return None
        if result.turn_usage is not None:
            return sum(_nanousd(usage.cost_usd) for usage in result.turn_usage.values())
        return None if before is None or self._cost is None else max(0, self._cost - before)

    def _settle(self, told: Mapping[str, ModelUsage], cost: int | None) -> Sequence[ModelCall]:
        """Report what is still open, and what the sums have over what was seen."""
        total = _sum(map(_told_usage, told.values()))
        priced, unpriced = [], []
        for call in (*self._abandoned, *self._streaming.values()):
            self._context = _size(call.usage) if call.main else self._context
            counted = _sum((*self._counted, call.usage))
            if _rest(counted, total) == NOTHING:  # the program counted it too, though it never finished
                self._counted.append(call.usage)
                priced.append(call)
            else:
                unpriced.append(call)
        if (unseen := _rest(total, _sum(self._counted))) != NOTHING:
            priced.append(_Call(model=next(iter(told)) if len(told) == 1 else "", usage=unseen, main=False))
        priced += self._held
        if cost and not priced:
            priced.append(_Call(main=False))  # all calls are reported already, and here is what they cost
        for kept in (self._abandoned, self._streaming, self._held, self._counted, self._told):
            kept.clear()
        costs = [*(None for _ in unpriced), *(self._priced for _ in priced[:-1]), *(cost for _ in priced[-1:])]
        return [self._report(call, each) for call, each in zip((*unpriced, *priced), costs, strict=True)]

    def _report(self, call: _Call, cost: int | None) -> ModelCall:
        self._calls += 1
        window = self._windows.get(call.model, 0)
        usage = replace(call.usage, context_tokens=self._context, context_window=window, cost_nanousd=cost)
        return ModelCall(self._calls, usage, call.model)


def verdict(result: Result, complaint: str = "") -> TurnResult:
    """How a turn ended by all that its last line says. Each of its fields alone says `success` of some failure."""
    reason = result.terminal_reason or "completed"
    text = result.result or "; ".join(result.errors or ()) or f"claude ended the turn: {result.subtype}, {reason}"
    if result.stop_reason == "refusal":
        return TurnResult(Outcome.FAILED, "refusal", f"the model refused: {text}", Failure.REFUSED)
    if not result.is_error and result.subtype == "success" and reason in COMPLETED:
        return TurnResult(Outcome.COMPLETED, result.stop_reason or reason)
    failure = REASONS.get(reason) or KINDS.get(complaint) or model_failure(result.api_error_status, text)
    if failure is Failure.CANCELLED:
        return TurnResult(Outcome.FAILED, "cancelled", "the turn was cancelled", failure)
    return TurnResult(Outcome.FAILED, "error", text, failure)


def _retry(line: System) -> Retry:
    kind = line.error or "unknown"
    failure = by_status(line.error_status) or KINDS.get(kind, Failure.MODEL_ERROR)
    detail = kind if line.error_status is None else f"{kind} (HTTP {line.error_status})"
    return Retry(line.attempt or 0, failure, detail, (line.retry_delay_ms or 0) / 1000)


def _usage(tokens: Tokens | None, before: Usage = NOTHING) -> Usage:
    """The last event of a call may leave out what the first told already."""
    if tokens is None:
        return before
    return Usage(
        input_tokens=_either(tokens.input_tokens, before.input_tokens),
        output_tokens=_either(tokens.output_tokens, before.output_tokens),
        cache_read_tokens=_either(tokens.cache_read_input_tokens, before.cache_read_tokens),
        cache_creation_tokens=_either(tokens.cache_creation_input_tokens, before.cache_creation_tokens),
    )


def _told_usage(told: ModelUsage) -> Usage:
    return Usage(told.input_tokens, told.output_tokens, told.cache_read_tokens, told.cache_creation_tokens)


def _either(said: int | None, before: int) -> int:
    return before if said is None else said


def _sum(usages: Iterable[Usage]) -> Usage:
    amounts = [_amounts(each) for each in usages]
    return Usage(*(sum(column) for column in zip(*amounts, strict=True))) if amounts else NOTHING


def _rest(whole: Usage, part: Usage) -> Usage:
    """What is in the one over what is in the other, never less than nothing."""
    return Usage(*(max(0, a - b) for a, b in zip(_amounts(whole), _amounts(part), strict=True)))


def _amounts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_creation_tokens


def _size(usage: Usage) -> int:
    return sum(_amounts(usage))


def _nanousd(amount: float) -> int:
    return int((Decimal(str(amount)) * NANOS).to_integral_value())


def _plain(content: object) -> str:
    """A tool's result as text: it comes as one, or in blocks of which some are text."""
    if isinstance(content, list):
        texts = [each.get("text") or each.get("type", "") for each in content if isinstance(each, dict)]
        return "\n".join(str(text) for text in texts)
    return _json(content)


def _json(value: object) -> str:
    """Compact JSON, a bare string as it is, nothing for nothing."""
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
