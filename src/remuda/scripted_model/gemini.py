"""Gemini: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` and `:countTokens`.

Cached tokens are a part of `promptTokenCount`. Every chunk of a stream repeats the usage of the whole answer so far; it
is not to be added up.
"""

from collections.abc import Iterator

from remuda.scripted_model.codec import Codec, Envelope, Frame, Mark, frame
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
from remuda.scripted_model.reply import Call, Failure, Part, Refusal, Reply, Stop, Text, Thought, Usage, pieces

STOP = {Stop.END: "STOP", Stop.TOOLS: "STOP", Stop.REFUSAL: "SAFETY"}
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
SIGNATURE = "c2NyaXB0ZWQ="  # a call without one is refused when it comes back to newer models


def read(body: Json) -> Conversation:
    """The model and whether to stream stand in the path; the server puts them into the body."""
    instruction = joined(objects(an_object(body, "systemInstruction"), "parts"))
    # As the real service does it, one that stands alone is taken for a list of one: goose sends it so.
    given = [body["tools"]] if isinstance(body.get("tools"), dict) else objects(body, "tools")
    declared = [each for tool in given for each in objects(tool, "functionDeclarations")]
    return Conversation(
        model=a_text(body, "model") or "unnamed",
        items=(Said("system", instruction), *_items(body)),
        tools=tuple(Tool(a_text(each, "name"), _parameters(each)) for each in declared),
        stream=body.get("stream") is True,
        schema=_schema(an_object(body, "generationConfig")),
    )


def _items(body: Json) -> Iterator[Item]:
    for content in objects(body, "contents"):
        for part in objects(content, "parts"):
            if "functionCall" in part:
                yield Called(a_text(an_object(part, "functionCall"), "name"))
            elif "functionResponse" in part:
                yield Returned(_result(an_object(an_object(part, "functionResponse"), "response")))
            elif "text" in part:
                yield Said("assistant" if content.get("role") == "model" else "user", a_text(part, "text"))


def _result(response: Json) -> str:
    return "\n".join(joined(each) for each in response.values())


def _parameters(declared: Json) -> Json:
    return an_object(declared, "parametersJsonSchema") or an_object(declared, "parameters")


def _schema(config: Json) -> Schema | None:
    if config.get("responseMimeType") != "application/json":
        return None
    return an_object(config, "responseJsonSchema") or an_object(config, "responseSchema")


def whole(envelope: Envelope, reply: Reply) -> Json:
    parts = [made for index, part in enumerate(reply.parts) for made in _parts(envelope, index, part, [_words(part)])]
    return _answer(envelope, reply, parts, STOP[reply.stop])


def frames(envelope: Envelope, reply: Reply) -> list[Frame]:
    sent = [
        frame(Mark.PIECE, _answer(envelope, reply, [made], None))
        for index, part in enumerate(reply.parts)
        for made in _parts(envelope, index, part, pieces(_words(part)))
    ]
    return [*sent, frame(Mark.CLOSE, _answer(envelope, reply, [], STOP[reply.stop]))]


def _words(part: Part) -> str:
    return "" if isinstance(part, Call) else part.text


def _parts(envelope: Envelope, index: int, part: Part, words: list[str]) -> list[Json]:
    match part:
        case Call():
            made = {"id": envelope.id("call_", index), "name": part.tool, "args": part.arguments}
            return [{"functionCall": made, "thoughtSignature": SIGNATURE}]
        case Thought():
            return [{"text": each, "thought": True} for each in words]
        case Text():
            return [{"text": each} for each in words]
        case Refusal():
            return []  # only the reason tells; what the model would have said is withheld


def _answer(envelope: Envelope, reply: Reply, parts: list[Json], finish: str | None) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    if finish == "SAFETY":
        candidate["finishMessage"] = reply.refusal()
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply.usage),
        "modelVersion": envelope.model,
        "responseId": envelope.id("resp-"),
    }


def _usage(usage: Usage) -> Json:
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total,
    }


def failure(what: Failure) -> Json:
    status = STATUS.get(what.status, "INTERNAL" if what.status >= 500 else "INVALID_ARGUMENT")
    error: Json = {"code": what.status, "message": what.message, "status": status}
    if what.retry_after is not None:
        delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{what.retry_after:g}s"}
        error["details"] = [delay]
    return {"error": error}


def failed(_: Envelope, what: Failure) -> list[Frame]:
    return [frame(Mark.CLOSE, failure(what))]


CODEC = Codec(
    name="gemini",
    read=read,
    whole=whole,
    frames=frames,
    failure=failure,
    failed=failed,
    count=lambda usage: {"totalTokens": usage.input},
    too_long="The input token count (1250000) exceeds the maximum number of tokens allowed (1048576).",
)
