"""OpenAI Responses: `POST /v1/responses`. Cached tokens are a part of `input_tokens`."""

from collections.abc import Iterator
from dataclasses import dataclass

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
from remuda.scripted_model.openai_errors import code_of, failure
from remuda.scripted_model.reply import Call, Failure, Part, Refusal, Reply, Stop, Text, Thought, Usage, chunks, pieces

# What Codex calls the namespace of its plain tools. Calls of them carry no namespace.
PLAIN = "functions"


def read(body: Json) -> Conversation:
    given = (
        [{"role": "user", "content": body["input"]}] if isinstance(body.get("input"), str) else objects(body, "input")
    )
    tools = [*_tools(objects(body, "tools"))]
    for each in given:
        if each.get("type") == "additional_tools":  # where newer Codex models find theirs
            tools += _tools(objects(each, "tools"))
    wanted = an_object(an_object(body, "text"), "format")
    return Conversation(
        model=a_text(body, "model") or "unnamed",
        items=(Said("system", a_text(body, "instructions")), *_items(given)),
        tools=tuple(tools),
        stream=body.get("stream") is True,
        schema=_schema(wanted),
    )


def _items(given: list[Json]) -> Iterator[Item]:
    for each in given:
        kind = each.get("type", "message")
        if kind == "message":
            by = each.get("role")
            yield Said("user" if by == "user" else "assistant" if by == "assistant" else "system", joined(each))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            yield Called(a_text(each, "name"))
        elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            yield Returned(joined(each.get("output")))


def _tools(given: list[Json], namespace: str = "") -> Iterator[Tool]:
    for each in given:
        if each.get("type") == "namespace":
            name = a_text(each, "name")
            yield from _tools(objects(each, "tools"), "" if name == PLAIN else name)
        elif a_text(each, "name"):
            freeform = each.get("type") == "custom"
            yield Tool(a_text(each, "name"), an_object(each, "parameters"), freeform, namespace)


def _schema(wanted: Json) -> Schema | None:
    if wanted.get("type") == "json_object":
        return {}
    return an_object(wanted, "schema") if wanted.get("type") == "json_schema" else None


def whole(envelope: Envelope, reply: Reply) -> Json:
    items = [_item(envelope, index, part) for index, part in enumerate(reply.parts)]
    return _finished(envelope, reply, items)


def frames(envelope: Envelope, reply: Reply) -> list[Frame]:
    begun = _response(envelope, "in_progress")
    events = [_Event(Mark.OPEN, "created", {"response": begun}), _Event(Mark.OPEN, "in_progress", {"response": begun})]
    items = [_item(envelope, index, part) for index, part in enumerate(reply.parts)]
    for index, part in enumerate(reply.parts):
        events += _part_events(index, part, items[index])
    finished = _finished(envelope, reply, items)
    events.append(_Event(Mark.CLOSE, finished["status"], {"response": finished}))
    return _numbered(events)


@dataclass(frozen=True, slots=True)
class _Event:
    mark: Mark
    kind: str  # what follows "response."
    fields: Json


def _numbered(events: list[_Event], first: int = 0) -> list[Frame]:
    sent = []
    for number, each in enumerate(events, first):
        kind = f"response.{each.kind}"
        sent.append(frame(each.mark, {"type": kind, "sequence_number": number, **each.fields}, kind))
    return sent


def _part_events(index: int, part: Part, item: Json) -> Iterator[_Event]:
    yield _Event(Mark.OPEN, "output_item.added", {"output_index": index, "item": {**item, **_unsaid(part)}})
    at = {"item_id": item["id"], "output_index": index}
    match part:
        case Call():
            yield from _call_events(at, item)
        case Thought():
            yield from _thought_events({**at, "summary_index": 0}, part.text)
        case Text() | Refusal():
            yield from _text_events({**at, "content_index": 0}, item["content"][0])
    yield _Event(Mark.CLOSE, "output_item.done", {"output_index": index, "item": item})


def _unsaid(part: Part) -> Json:
    match part:
        case Call():
            return {"status": "in_progress", "input" if isinstance(part.arguments, str) else "arguments": ""}
        case Thought():
            return {"summary": []}
        case Text() | Refusal():
            return {"status": "in_progress", "content": []}


def _call_events(at: Json, item: Json) -> Iterator[_Event]:
    key, kind = ("input", "custom_tool_call_input") if "input" in item else ("arguments", "function_call_arguments")
    for each in chunks(item[key]):
        yield _Event(Mark.PIECE, f"{kind}.delta", {**at, "delta": each})
    done = {**at, key: item[key]}
    yield _Event(Mark.CLOSE, f"{kind}.done", done if key == "input" else {**done, "name": item["name"]})


def _thought_events(at: Json, text: str) -> Iterator[_Event]:
    part = {"type": "summary_text", "text": text}
    yield _Event(Mark.OPEN, "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}})
    for each in pieces(text):
        yield _Event(Mark.PIECE, "reasoning_summary_text.delta", {**at, "delta": each})
    yield _Event(Mark.CLOSE, "reasoning_summary_text.done", {**at, "text": text})
    yield _Event(Mark.CLOSE, "reasoning_summary_part.done", {**at, "part": part})


def _text_events(at: Json, part: Json) -> Iterator[_Event]:
    key, kind = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
    extra: Json = {} if kind == "refusal" else {"logprobs": []}
    yield _Event(Mark.OPEN, "content_part.added", {**at, "part": {**part, key: ""}})
    for each in pieces(part[key]):
        yield _Event(Mark.PIECE, f"{kind}.delta", {**at, "delta": each, **extra})
    yield _Event(Mark.CLOSE, f"{kind}.done", {**at, key: part[key], **extra})
    yield _Event(Mark.CLOSE, "content_part.done", {**at, "part": part})


def _item(envelope: Envelope, index: int, part: Part) -> Json:
    match part:
        case Call():
            return _call_item(envelope, index, part)
        case Thought():
            summary = [{"type": "summary_text", "text": part.text}]
            return {
                "type": "reasoning",
                "id": envelope.id("rs_", index),
                "summary": summary,
                "encrypted_content": "c2M=",
            }
        case Text():
            content: Json = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
        case Refusal():
            content = {"type": "refusal", "refusal": part.text}
    message = {"type": "message", "id": envelope.id("msg_", index), "status": "completed", "role": "assistant"}
    return {**message, "content": [content]}


def _call_item(envelope: Envelope, index: int, call: Call) -> Json:
    item: Json = {"status": "completed", "call_id": envelope.id("call_", index), "name": call.tool}
    if isinstance(call.arguments, str):
        item |= {"type": "custom_tool_call", "id": envelope.id("ctc_", index), "input": call.arguments}
    else:
        item |= {"type": "function_call", "id": envelope.id("fc_", index), "arguments": compact(call.arguments)}
    return {**item, "namespace": call.namespace} if call.namespace else item


def _response(envelope: Envelope, status: str) -> Json:
    return {
        "id": envelope.id("resp_"),
        "object": "response",
        "created_at": envelope.created,
        "status": status,
        "model": envelope.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _finished(envelope: Envelope, reply: Reply, items: list[Json]) -> Json:
    refused = reply.stop is Stop.REFUSAL
    response = _response(envelope, "incomplete" if refused else "completed")
    if refused:
        response["incomplete_details"] = {"reason": "content_filter"}
    return {**response, "output": items, "usage": _usage(reply.usage)}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total,
    }


def failed(envelope: Envelope, what: Failure) -> list[Frame]:
    error = {"code": code_of(what) or "server_error", "message": what.message}
    response = {**_response(envelope, "failed"), "error": error}
    # No client may rely on the number of this event; it only has to come after all others.
    return _numbered([_Event(Mark.CLOSE, "failed", {"response": response})], first=1_000_000)


CODEC = Codec(
    name="responses",
    read=read,
    whole=whole,
    frames=frames,
    failure=failure,
    failed=failed,
    count=lambda usage: {"object": "response.input_tokens", "input_tokens": usage.input},
    too_long="Your input exceeds the context window of this model. Please adjust your input and try again.",
    too_long_in_stream=True,
    piece="response.output_text.delta",
)
