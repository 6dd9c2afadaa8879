"""OpenAI Chat Completions: `POST /v1/chat/completions`.

Cached tokens are a part of `prompt_tokens`. A stream tells its usage only when asked to (`stream_options`).
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
from remuda.scripted_model.openai_errors import failure
from remuda.scripted_model.reply import Call, Failure, Part, Refusal, Reply, Stop, Text, Thought, Usage, chunks, pieces

STOP = {Stop.END: "stop", Stop.TOOLS: "tool_calls", Stop.REFUSAL: "content_filter"}
LAST = Frame(Mark.CLOSE, "[DONE]")


def read(body: Json) -> Conversation:
    functions = [
        an_object(each, "function") for each in objects(body, "tools") if each.get("type", "function") == "function"
    ]
    return Conversation(
        model=a_text(body, "model") or "unnamed",
        items=tuple(_items(body)),
        tools=tuple(Tool(a_text(each, "name"), an_object(each, "parameters")) for each in functions),
        stream=body.get("stream") is True,
        schema=_schema(an_object(body, "response_format")),
        usage_wanted=an_object(body, "stream_options").get("include_usage") is True,
    )


def _items(body: Json) -> Iterator[Item]:
    for message in objects(body, "messages"):
        match message.get("role"):
            case "tool" | "function":
                yield Returned(joined(message.get("content")))
            case "assistant":
                if joined(message.get("content")):
                    yield Said("assistant", joined(message["content"]))
                for each in objects(message, "tool_calls"):
                    yield Called(a_text(an_object(each, "function"), "name"))
            case "user":
                yield Said("user", joined(message.get("content")))
            case _:
                yield Said("system", joined(message.get("content")))


def _schema(wanted: Json) -> Schema | None:
    if wanted.get("type") == "json_object":
        return {}
    return an_object(an_object(wanted, "json_schema"), "schema") if wanted.get("type") == "json_schema" else None


def whole(envelope: Envelope, reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text() or None, "refusal": reply.refusal() or None}
    if reply.thoughts():
        message["reasoning_content"] = reply.thoughts()
    if reply.calls():
        message["tool_calls"] = [_call(envelope, index, each) for index, each in enumerate(reply.calls())]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": STOP[reply.stop]}
    return {**_about(envelope, "chat.completion"), "choices": [choice], "usage": _usage(reply.usage)}


def frames(envelope: Envelope, reply: Reply) -> list[Frame]:
    sent = [_chunk(Mark.OPEN, envelope, {"role": "assistant", "content": ""})]
    number = 0
    for part in reply.parts:
        sent += _part_frames(envelope, number, part)
        number += isinstance(part, Call)
    sent.append(_chunk(Mark.CLOSE, envelope, {}, STOP[reply.stop]))
    if envelope.usage_wanted:
        counted = {**_about(envelope, "chat.completion.chunk"), "choices": [], "usage": _usage(reply.usage)}
        sent.append(frame(Mark.CLOSE, counted))
    return [*sent, LAST]


def _part_frames(envelope: Envelope, number: int, part: Part) -> Iterator[Frame]:
    match part:
        case Call():
            call = _call(envelope, number, part)
            begun = {**call, "index": number, "function": {**call["function"], "arguments": ""}}
            yield _chunk(Mark.OPEN, envelope, {"tool_calls": [begun]})
            for each in chunks(call["function"]["arguments"]):
                more = {"index": number, "function": {"arguments": each}}
                yield _chunk(Mark.PIECE, envelope, {"tool_calls": [more]})
        case Thought():
            # OpenAI keeps its thoughts; this is the word that most servers of its dialect use for them.
            for each in pieces(part.text):
                yield _chunk(Mark.PIECE, envelope, {"reasoning_content": each})
        case Text():
            for each in pieces(part.text):
                yield _chunk(Mark.PIECE, envelope, {"content": each})
        case Refusal():
            for each in pieces(part.text):
                yield _chunk(Mark.PIECE, envelope, {"refusal": each})


def _chunk(mark: Mark, envelope: Envelope, delta: Json, finish: str | None = None) -> Frame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return frame(mark, {**_about(envelope, "chat.completion.chunk"), "choices": [choice]})


def _call(envelope: Envelope, number: int, call: Call) -> Json:
    arguments = call.arguments if isinstance(call.arguments, str) else compact(call.arguments)
    return {
        "id": envelope.id("call_", number),
        "type": "function",
        "function": {"name": call.tool, "arguments": arguments},
    }


def _about(envelope: Envelope, kind: str) -> Json:
    return {"id": envelope.id("chatcmpl-"), "object": kind, "created": envelope.created, "model": envelope.model}


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def failed(_: Envelope, what: Failure) -> list[Frame]:
    return [frame(Mark.CLOSE, failure(what))]


CODEC = Codec(
    name="chat",
    read=read,
    whole=whole,
    frames=frames,
    failure=failure,
    failed=failed,
    count=lambda usage: {"input_tokens": usage.input},
    too_long="This model's maximum context length is 200000 tokens. However, your messages resulted in 250000 tokens. "
    "Please reduce the length of the messages.",
)
