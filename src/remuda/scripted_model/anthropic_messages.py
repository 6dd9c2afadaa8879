"""Anthropic Messages: `POST /v1/messages` and `/v1/messages/count_tokens`.

Cached tokens are counted apart: `input_tokens` leaves them out, and all three numbers add up to what went in.
"""

from collections.abc import Iterator

from remuda.scripted_model.codec import Codec, Envelope, Frame, Mark, compact, frame
from remuda.scripted_model.conversation import (
    Called,
    Conversation,
    Item,
    Json,
    Returned,
    Said,
    Schema,
    Tool,
    a_text,
    an_object,
    joined,
    objects,
)
from remuda.scripted_model.reply import Call, Failure, Part, Refusal, Reply, Stop, Text, Thought, Usage, chunks, pieces

STOP = {Stop.END: "end_turn", Stop.TOOLS: "tool_use", Stop.REFUSAL: "refusal"}
ERROR = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
SIGNATURE = "c2NyaXB0ZWQ="  # thoughts are signed; nobody can check it but the API that made it


def read(body: Json) -> Conversation:
    return Conversation(
        model=a_text(body, "model") or "unnamed",
        items=(Said("system", joined(body.get("system"))), *_items(body)),
        tools=tuple(Tool(a_text(each, "name"), an_object(each, "input_schema")) for each in objects(body, "tools")),
        stream=body.get("stream") is True,
        schema=_schema(body),
    )


def _items(body: Json) -> Iterator[Item]:
    for message in objects(body, "messages"):
        by = message.get("role")
        if isinstance(message.get("content"), str):
            message = {"content": [{"type": "text", "text": message["content"]}]}
        for block in objects(message, "content"):
            if block.get("type") == "tool_use":
                yield Called(a_text(block, "name"))
            elif block.get("type") == "tool_result":
                yield Returned(joined(block.get("content")))
            elif block.get("type") == "text":
                yield Said("assistant" if by == "assistant" else "system" if by == "system" else "user", joined(block))


def _schema(body: Json) -> Schema | None:
    wanted = an_object(an_object(body, "output_config"), "format") or an_object(body, "output_format")
    return an_object(wanted, "schema") if wanted.get("type") == "json_schema" else None


def whole(envelope: Envelope, reply: Reply) -> Json:
    content = [_block(envelope, index, part) for index, part in enumerate(_shown(reply))]
    return {**_message(envelope), "content": content, **_ending(reply), "usage": _usage(reply.usage)}


def frames(envelope: Envelope, reply: Reply) -> list[Frame]:
    begun = {**_message(envelope), "content": [], "stop_reason": None, "stop_sequence": None}
    begun["usage"] = {**_usage(reply.usage), "output_tokens": min(1, reply.usage.output)}
    sent = [_event(Mark.OPEN, "message_start", message=begun), _event(Mark.OPEN, "ping")]
    for index, part in enumerate(_shown(reply)):
        sent += _part_frames(envelope, index, part)
    sent.append(_event(Mark.CLOSE, "message_delta", delta=_ending(reply), usage=_usage(reply.usage)))
    sent.append(_event(Mark.CLOSE, "message_stop"))
    return sent


def _part_frames(envelope: Envelope, index: int, part: Part) -> Iterator[Frame]:
    block = _block(envelope, index, part)
    empty: Json = {"thinking": "", "signature": ""} if isinstance(part, Thought) else {"text": ""}
    if isinstance(part, Call):
        empty = {"input": {}}
    yield _event(Mark.OPEN, "content_block_start", index=index, content_block={**block, **empty})
    for delta in _deltas(part):
        yield _event(Mark.PIECE, "content_block_delta", index=index, delta=delta)
    if isinstance(part, Thought):
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        yield _event(Mark.CLOSE, "content_block_delta", index=index, delta=signed)
    yield _event(Mark.CLOSE, "content_block_stop", index=index)


def _deltas(part: Part) -> list[Json]:
    if isinstance(part, Call):
        written = ["", *chunks(compact(part.arguments))]
        return [{"type": "input_json_delta", "partial_json": each} for each in written]
    kind = "thinking" if isinstance(part, Thought) else "text"
    return [{"type": f"{kind}_delta", kind: each} for each in pieces(part.text)]


def _block(envelope: Envelope, index: int, part: Part) -> Json:
    match part:
        case Call():
            return {"type": "tool_use", "id": envelope.id("toolu_", index), "name": part.tool, "input": part.arguments}
        case Thought():
            return {"type": "thinking", "thinking": part.text, "signature": SIGNATURE}
        case Text() | Refusal():
            return {"type": "text", "text": part.text}


def _shown(reply: Reply) -> list[Part]:
    """A refusal is a stop reason here; its words go into the details of it."""
    return [part for part in reply.parts if not isinstance(part, Refusal)]


def _message(envelope: Envelope) -> Json:
    return {"id": envelope.id("msg_"), "type": "message", "role": "assistant", "model": envelope.model}


def _ending(reply: Reply) -> Json:
    ending: Json = {"stop_reason": STOP[reply.stop], "stop_sequence": None}
    if reply.stop is Stop.REFUSAL:
        ending["stop_details"] = {"type": "refusal", "category": None, "explanation": reply.refusal()}
    return ending


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.fresh,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
    }


def failure(failed: Failure) -> Json:
    kind = ERROR.get(failed.status, "api_error" if failed.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": failed.message}}


def failed(_: Envelope, what: Failure) -> list[Frame]:
    return [frame(Mark.CLOSE, failure(what), "error")]


def _event(mark: Mark, kind: str, **fields: object) -> Frame:
    return frame(mark, {"type": kind, **fields}, kind)


CODEC = Codec(
    name="anthropic",
    read=read,
    whole=whole,
    frames=frames,
    failure=failure,
    failed=failed,
    count=lambda usage: {"input_tokens": usage.input},
    too_long="prompt is too long: 250000 tokens > 200000 maximum",
    piece="content_block_delta",
)
