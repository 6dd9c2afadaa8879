"""The four ways in which programs speak to models, as data: where the output is limited, and what tells the usage."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remuda.domain.state import Usage

Json = Mapping[str, Any]


class Action(StrEnum):
    SPEND = "spend"  # an answer of a model
    ASK = "ask"  # which models there are, how many tokens a prompt has: costs nothing


@dataclass(frozen=True, slots=True)
class Seen:
    """What one event of a stream, or a whole answer, tells of the usage."""

    usage: Usage | None = None
    final: bool = False  # nothing more is to come: the usage is that of the whole call


@dataclass(frozen=True, slots=True)
class Api:
    name: str
    spends: re.Pattern[str]  # the end of a path
    asks: re.Pattern[str]
    fields: tuple[tuple[str, ...], ...]  # each a way to the output limit
    usual_field: tuple[str, ...]  # the one to put in where there is none
    choices: tuple[tuple[str, ...], ...]  # a way to how many answers are wanted, each as long as the limit
    least: int  # the smallest limit that the service takes
    read: Callable[[Json], Seen]
    error: Callable[[int, str], Json]


# --- Anthropic Messages: cached tokens are counted apart ---


def _anthropic(event: Json) -> Seen:
    match event.get("type"):
        case "message_start":
            return Seen(_of_anthropic(_part(_part(event, "message"), "usage")))
        case "message_delta":
            return Seen(_of_anthropic(_part(event, "usage")))
        case "message_stop":
            return Seen(final=True)
        case "message":
            return Seen(_of_anthropic(_part(event, "usage")), final=True)
    return Seen()


def _of_anthropic(usage: Json) -> Usage | None:
    if not usage:
        return None
    return Usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(usage, "cache_read_input_tokens"),
        _count(usage, "cache_creation_input_tokens"),
    )


_ANTHROPIC_KINDS = {401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error"}


def _anthropic_error(status: int, text: str) -> Json:
    kind = _ANTHROPIC_KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": text}}


# --- OpenAI Responses and Chat Completions: cached tokens are a part of the input ---

_ENDED = ("response.completed", "response.incomplete", "response.failed")


def _responses(event: Json) -> Seen:
    if event.get("type") in _ENDED:
        usage = _of_openai(_part(_part(event, "response"), "usage"), "input", "output")
        return Seen(usage, final=usage is not None)
    if str(event.get("object", "")).startswith("response"):
        usage = _of_openai(_part(event, "usage"), "input", "output")
        return Seen(usage, final=usage is not None)
    return Seen()


def _chat(event: Json) -> Seen:
    usage = _of_openai(_part(event, "usage"), "prompt", "completion")
    choices = event.get("choices") or []  # none in the chunk that tells the usage of a stream, at its very end
    ended = all(isinstance(each, dict) and each.get("finish_reason") for each in choices)
    return Seen(usage, final=usage is not None and ended)


def _of_openai(usage: Json, into: str, out: str) -> Usage | None:
    if not usage:
        return None
    cached = _count(_part(usage, f"{into}_tokens_details"), "cached_tokens")
    fresh, said = _count(usage, f"{into}_tokens"), _count(usage, f"{out}_tokens")
    return Usage(fresh - cached, _with_thoughts(said, _count(usage, "total_tokens") - fresh), cached)


def _with_thoughts(said: int, rest: int) -> int:
    """Some services leave what the model thought out of the output, and only their total tells of it."""
    return max(said, rest) if said >= 0 else said


def _openai_error(status: int, text: str) -> Json:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": text, "type": kind, "param": None, "code": "remuda_meter"}}


# --- Gemini: each chunk repeats all of it ---

_GEMINI_KINDS = {401: "UNAUTHENTICATED", 402: "FAILED_PRECONDITION", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}


def _gemini(event: Json) -> Seen:
    usage = _part(event, "usageMetadata")
    if not usage:
        return Seen()
    cached = _count(usage, "cachedContentTokenCount")
    asked = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    out = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
    out = _with_thoughts(out, _count(usage, "totalTokenCount") - asked)
    candidates = event.get("candidates")
    ended = isinstance(candidates, list) and any(
        "finishReason" in each for each in candidates if isinstance(each, dict)
    )
    blocked = "blockReason" in _part(event, "promptFeedback")
    return Seen(Usage(asked - cached, out, cached), final=ended or blocked)


def _gemini_error(status: int, text: str) -> Json:
    kind = _GEMINI_KINDS.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": text, "status": kind}}


def _part(value: Json, key: str) -> Json:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def _count(value: Json, key: str) -> int:
    """A number as it was told, also one that cannot be: who adds it up will refuse it."""
    count = value.get(key)
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _fields(*paths: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(path.split(".")) for path in paths)


ANTHROPIC = Api(
    name="anthropic",
    spends=re.compile(r"/v1/messages$"),
    asks=re.compile(r"/v1/messages/count_tokens$"),
    fields=_fields("max_tokens"),
    usual_field=("max_tokens",),
    choices=(),
    least=1,
    read=_anthropic,
    error=_anthropic_error,
)
RESPONSES = Api(
    name="openai-responses",
    spends=re.compile(r"/responses(/compact)?$"),
    asks=re.compile(r"/responses/input_tokens$"),
    fields=_fields("max_output_tokens"),
    usual_field=("max_output_tokens",),
    choices=(),
    least=16,
    read=_responses,
    error=_openai_error,
)
CHAT = Api(
    name="openai-chat",
    spends=re.compile(r"/chat/completions$"),
    asks=re.compile(r"$^"),
    fields=_fields("max_completion_tokens", "max_tokens"),
    usual_field=("max_completion_tokens",),
    choices=_fields("n", "best_of"),
    least=1,
    read=_chat,
    error=_openai_error,
)
GEMINI = Api(
    name="gemini",
    spends=re.compile(r"/models/[^/]+:(streamGenerateContent|generateContent)$"),
    asks=re.compile(r"/models/[^/]+:countTokens$"),
    # Its service takes every name in two spellings.
    fields=_fields(
        "generationConfig.maxOutputTokens",
        "generationConfig.max_output_tokens",
        "generation_config.maxOutputTokens",
        "generation_config.max_output_tokens",
    ),
    usual_field=("generationConfig", "maxOutputTokens"),
    choices=_fields(
        "generationConfig.candidateCount",
        "generationConfig.candidate_count",
        "generation_config.candidateCount",
        "generation_config.candidate_count",
    ),
    least=1,
    read=_gemini,
    error=_gemini_error,
)

APIS = (ANTHROPIC, RESPONSES, CHAT, GEMINI)


def api_of(method: str, path: str) -> tuple[Api, Action] | None:
    """What a request would do, by the end of its path. None: nothing that could be counted."""
    if method != "POST":
        return None
    for api in APIS:
        if api.spends.search(path):
            return api, Action.SPEND
        if api.asks.search(path):
            return api, Action.ASK
    return None


# What a model gives at most where the caller sets no limit; the first that fits. A larger limit than that is refused by
# some services, so it is also the largest that is ever put in.
CEILINGS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), tokens)
    for pattern, tokens in (
        (r"(^|/)gpt-4-32k", 32_768),
        (r"(^|/)gpt-3\.5-turbo-16k", 16_384),
        (r"(^|/)(gpt-3\.5|gpt-4-(turbo|vision|1106|0125))", 4_096),
        (r"(^|/)gpt-4(?!\.|o)", 8_192),
        (r"(^|/)gpt-4o-64k", 65_536),
        (r"(^|/)(chat)?gpt-4o", 16_384),
        (r"(^|/)gpt-4\.1", 32_768),
        (r"(^|/)o\d", 100_000),
        (r"(^|/)gemini-(1|2\.0)(?!.*thinking)", 8_192),
        (r"(^|/)gemini", 65_536),
        (r"", 128_000),
    )
)


def ceiling(model: str) -> int:
    return next(tokens for pattern, tokens in CEILINGS if pattern.search(model))
