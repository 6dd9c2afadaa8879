"""Claude Code's stream-json as values: what its lines say, and the lines that we write. Pure.

Of each line only what we use is read, and all of that is optional: versions differ in what they fill in. A line of a
kind that we do not know is None, for the transcript has it anyway; a line that ends a turn or waits for an answer and
cannot be read is a fault, because to pass it over would be to wait for ever.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from remuda.agents import Answered
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure

_EVIDENCE = 300  # characters of a bad line that the error quotes
_MUST_BE_READ = ("result", "control_request", "control_response")


class Tokens(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class Message(Struct):
    id: str = ""
    model: str = ""
    content: list[Block] | str = []
    usage: Tokens | None = None
    stop_reason: str | None = None


class Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    stop_reason: str | None = None


class Event(Struct):
    """One event of the model's own stream."""

    type: str = ""
    message: Message | None = None
    delta: Delta | None = None
    usage: Tokens | None = None


class Line(Struct, tag_field="type"):
    pass


class PromptOutcome(Struct):
    """What became of a prompt that never reached the model."""

    kind: str = ""
    reason: str = ""


class System(Line, tag="system"):
    subtype: str = ""
    session_id: str = ""
    # of a retry
    attempt: int | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None
    # of a hook
    hook_name: str = ""
    hook_event: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""
    # of a prompt
    prompt_submit_outcome: PromptOutcome | None = None


class Streamed(Line, tag="stream_event"):
    event: Event
    parent_tool_use_id: str | None = None


class Assistant(Line, tag="assistant"):
    message: Message
    parent_tool_use_id: str | None = None
    is_api_error_message: bool | None = None
    error: str | None = None


class User(Line, tag="user"):
    message: Message
    parent_tool_use_id: str | None = None


class RateLimit(Struct, rename="camel"):
    status: str = ""
    resets_at: float | None = None


class RateLimited(Line, tag="rate_limit_event"):
    rate_limit_info: RateLimit


class Lifecycle(Line, tag="command_lifecycle"):
    """What became of a prompt that we sent under a uuid of ours."""

    command_uuid: str = ""
    state: str = ""


class ModelUsage(Struct):
    input_tokens: int = msgspec.field(name="inputTokens", default=0)
    output_tokens: int = msgspec.field(name="outputTokens", default=0)
    cache_read_tokens: int = msgspec.field(name="cacheReadInputTokens", default=0)
    cache_creation_tokens: int = msgspec.field(name="cacheCreationInputTokens", default=0)
    cost_usd: float = msgspec.field(name="costUSD", default=0.0)
    cost_basis: str | None = msgspec.field(name="costBasis", default=None)  # "unknown": the cost is a guess
    context_window: int = msgspec.field(name="contextWindow", default=0)


class Result(Line, tag="result"):
    """The end of a turn: of the one we asked for, or (with an origin) of one that the program began by itself."""

    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    errors: list[str] | None = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    session_id: str = ""
    user_message_uuids: list[str] | None = None
    origin: Any = None
    total_cost_usd: float | None = None
    model_usage: dict[str, ModelUsage] | None = msgspec.field(name="modelUsage", default=None)
    turn_usage: dict[str, ModelUsage] | None = msgspec.field(name="model_usage_since_last_result", default=None)


class ToolQuestion(Struct):
    subtype: str = ""
    tool_name: str = ""
    input: Raw = Raw(b"{}")
    description: str | None = None
    blocked_path: str | None = None
    tool_use_id: str | None = None


class ControlRequest(Line, tag="control_request"):
    request_id: str
    request: ToolQuestion


class ControlCancel(Line, tag="control_cancel_request"):
    request_id: str


class Reply(Struct):
    request_id: str = ""
    subtype: str = ""
    error: str | None = None


class ControlResponse(Line, tag="control_response"):
    response: Reply


Known = (
    System
    | Streamed
    | Assistant
    | User
    | RateLimited
    | Lifecycle
    | Result
    | ControlRequest
    | ControlCancel
    | ControlResponse
)
_decoder: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)


class _Kind(Struct):
    type: str = ""


def decode(line: str) -> Known | None:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        if _kind(line) in _MUST_BE_READ:
            raise _malformed("a message that cannot be read", error, line) from error
        return None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _malformed("a line that is no JSON", error, line) from error


def _kind(line: str) -> str:
    try:
        return msgspec.json.decode(line, type=_Kind).type
    except msgspec.ValidationError:
        return ""
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _malformed("a line that is no JSON", error, line) from error


def _malformed(what: str, error: Exception, line: str) -> AgentFault:
    return AgentFault(f"claude wrote {what} ({error}): {line[:_EVIDENCE]}", Failure.MALFORMED)


# What we write


def prompt(text: str, uuid: str) -> str:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return _encode({"type": "user", "message": message, "parent_tool_use_id": None, "uuid": uuid})


def control(number: int, subtype: str) -> str:
    return _encode({"type": "control_request", "request_id": str(number), "request": {"subtype": subtype}})


def tool_answer(asked: ControlRequest, answered: Answered) -> str:
    if answered.allow:
        # It wants the input back, for a person may have changed it. Nobody has.
        decision: Mapping[str, Any] = {"behavior": "allow", "updatedInput": asked.request.input}
    else:
        decision = {"behavior": "deny", "message": answered.why or "Not allowed."}
    return _response(asked.request_id, {"subtype": "success", "response": decision})


def not_served(asked: ControlRequest) -> str:
    return _response(asked.request_id, {"subtype": "error", "error": f"Remuda does not offer {asked.request.subtype}"})


def _response(request_id: str, response: Mapping[str, Any]) -> str:
    return _encode({"type": "control_response", "response": {"request_id": request_id, **response}})


def _encode(message: Mapping[str, Any]) -> str:
    return msgspec.json.encode(message).decode()
