"""Reads a request before it is passed on: how much it may use at most, and how to make it ask for less. Pure.

**The bound on the input never undershoots.** A token stands for at least one byte of text, and JSON writes no text with
fewer bytes than it has, so a request has no more tokens than bytes, and a little for what the service puts around it.
That is four times too much for plain text. So what a session's earlier calls were really counted as is remembered: a
request that grows out of one of them has no more tokens than that one, and the bytes that are new. What brings in more
than its bytes is allowed for (`elsewhere`).
"""

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from remuda.domain.errors import Invalid
from remuda.meter import Estimate
from remuda.meter.apis import CHAT, Api, ceiling
from remuda.meter.elsewhere import LARGEST_CONTEXT, NOTHING, Beyond, beyond, has_hosted_tool
from remuda.meter.wire import LARGEST_REQUEST

AROUND = 64  # tokens that the service puts around a conversation, and that a change may add at its seams
AROUND_TOOLS = 1_024  # ... and around tools
HOSTED = 50_000  # what a tool that the service runs itself may put in; an allowance, for nobody limits it

_REASONS = re.compile(r"gpt-[5-9]|^o\d|/o\d")  # models that know the newer name of the limit alone
_LEAST_THINKING = 1_024
_PLAIN = ("", "identity")

# Of a request of many megabytes nearly all is pictures. One that is made of small parts instead would take seconds and
# gigabytes to be read, and everybody else would wait.
_LARGE = 4 << 20
_MOST_PARTS = 1 << 20

# What may be different in a request that grew out of another: text that is counted by its bytes, and what does nothing
# to the input. Any other change may bring in what was left out before, as when old results are no longer cleared.
_TEXT = ("messages", "input", "contents", "system", "instructions", "systemInstruction", "system_instruction", "tools")
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "model", "stream", "stream_options")
_WISHES = ("metadata", "user", "store", "temperature", "top_p", "prompt_cache_key", "safety_identifier")
_GROWS = frozenset({*_TEXT, *_LIMITS, *_WISHES})
# Some gateways read names in whatever case they come: what is read here must not be there a second time.
_READ_HERE = frozenset({*_GROWS, "thinking", "generationConfig", "best_of", "service_tier", "mcp_servers"})
_FOLDED = {name.casefold(): name for name in _READ_HERE}
# Wishes that change the price, by how they may be put without doing so; and models that may answer in another's place.
_USUAL_TIERS = ("auto", "default", "flex", "standard", "standard_only")
_OTHER_PRICES = ("speed", "models", "fallbacks")


@dataclass(frozen=True, slots=True)
class Known:
    """A call that was made and counted."""

    model: str
    body: bytes
    input_tokens: int
    beyond: Beyond = field(default_factory=Beyond)
    switches: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demand:
    api: Api
    body: dict[str, Any]
    data: bytes  # the same in one spelling: what two could read differently is not passed on
    estimate: Estimate
    answers: int = 1
    model: str = ""
    beyond: Beyond = field(default_factory=Beyond)
    as_it_came: bool = False  # nothing limits it, and the data is what the program sent

    def within(self, output_tokens: int) -> bytes:
        """The request, made to ask for no more output than this."""
        if output_tokens >= self.estimate.output_tokens:
            return self.data
        each = output_tokens // self.answers
        body = self.body
        fields = [path for path in self.api.fields if _get(body, path) is not None]
        for path in fields or [_usual(self.api, self.model)]:
            limit = _number(_get(body, path))
            body = _put(body, path, each if limit is None else min(limit, each))
        thinking = body.get("thinking")
        if isinstance(thinking, dict) and (_number(thinking.get("budget_tokens")) or 0) >= each:
            body = _put(body, ("thinking", "budget_tokens"), each - 1)
        return _encoder.encode(body)

    def known(self, input_tokens: int) -> Known:
        return Known(self.model, self.data, input_tokens, self.beyond, _switches(self.body))


class _Peek(msgspec.Struct):
    """All that has to be known of a request that nothing limits; the rest is passed over."""

    model: str = ""
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None


_peek = msgspec.json.Decoder(_Peek)
_encoder = msgspec.json.Encoder()
_NOTHING: dict[str, Any] = {}


def glance(api: Api, path: str, data: bytes, encoding: str) -> Demand:
    """A request that nothing limits. It is passed on as it is, read or not, but in Chat Completions the usage has to be
    asked for. Invalid where that cannot be done."""
    try:
        seen = _peek.decode(data if encoding in _PLAIN else unpacked(data, encoding))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Invalid):
        if api is CHAT:
            return read(api, path, decode(data, encoding))
        seen = _Peek()
    if api is CHAT and seen.stream and (seen.stream_options or _NOTHING).get("include_usage") is not True:
        return read(api, path, decode(data, encoding))
    model = _model_in(path) or seen.model
    return Demand(api, _NOTHING, data, Estimate(model, 0, 0), model=model, as_it_came=True)


def read(api: Api, path: str, body: dict[str, Any], known: tuple[Known, ...] = ()) -> Demand:
    if api is CHAT and body.get("stream") is True:
        body = _put(body, ("stream_options", "include_usage"), True)  # else nothing tells what the answer cost
    _check_names(body)
    data = _encoder.encode(body)
    model = str(_model_in(path) or body.get("model") or "")
    more = beyond(body, model)
    unseen = LARGEST_CONTEXT if more.fetched else HOSTED if has_hosted_tool(body, model) else 0
    around = AROUND_TOOLS if body.get("tools") else AROUND
    answers = max([1, *(_number(_get(body, each)) or 1 for each in api.choices)])
    said = [limit for each in api.fields if (limit := _number(_get(body, each))) is not None]
    output = max(said) if said else ceiling(model)
    thinks = isinstance(body.get("thinking"), dict) and "budget_tokens" in body["thinking"]
    floor = max(api.least, _LEAST_THINKING + 1 if thinks else 0)
    same = tuple(each for each in known if each.model == model and each.switches == _switches(body)) if known else ()
    into = unseen + bound(data, more, same, around)
    priced = "" if _has_another_price(body) else model  # one that no table has
    estimate = Estimate(priced, into, max(output, 1) * answers, min(floor, max(output, 1)) * answers)
    return Demand(api, body, data, estimate, answers, model, more)


def bound(data: bytes, more: Beyond, known: tuple[Known, ...], around: int) -> int:
    """No request like this has more tokens in it than this. Should a service have counted more than one token for
    a byte before, it is taken to do so again."""
    spoken = (each.input_tokens - each.beyond.more_than(NOTHING) for each in known)
    dear = max([1.0, *(tokens / len(each.body) for tokens, each in zip(spoken, known, strict=True))])
    least = around + math.ceil(len(data) * dear) + more.more_than(NOTHING)
    for each in reversed(known):
        new = new_bytes(each.body, data)
        least = min(least, each.input_tokens + AROUND + math.ceil(new * dear) + more.more_than(each.beyond))
        if new < len(data) // 8:
            break  # this is what it grew out of
    return least


def new_bytes(old: bytes, new: bytes) -> int:
    """How much of the new is not in the old, where the old was added to in one place."""
    shorter = min(len(old), len(new))
    before = _longest(shorter, lambda low, high: old[low:high] == new[low:high])
    ends = len(old), len(new)
    after = _longest(
        shorter - before,
        lambda low, high: old[ends[0] - high : ends[0] - low] == new[ends[1] - high : ends[1] - low],
    )
    return len(new) - before - after


def _longest(most: int, same: Callable[[int, int], bool]) -> int:
    """How far they are the same: halved until found, because comparing bytes is fast and looking at each is not."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def decode(data: bytes, encoding: str) -> dict[str, Any]:
    """A request's body. Invalid for one that nobody here can read."""
    data = unpacked(data, encoding)
    if len(data) > _LARGE and sum(map(data.count, (b",", b"[", b"{"))) > _MOST_PARTS:
        raise Invalid("the request has more parts than any conversation")
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"the request's body is no JSON: {error}") from error
    except RecursionError as error:
        raise Invalid("the request's body is nested too deep to be read") from error
    if not isinstance(body, dict):
        raise Invalid("the request's body must be a JSON object")
    return body


def unpacked(data: bytes, encoding: str) -> bytes:
    if encoding in _PLAIN:
        return data
    if encoding not in ("gzip", "deflate"):
        raise Invalid(f"the meter cannot read a request packed as {encoding[:40]!r}; send it plain or as gzip")
    inflate = zlib.decompressobj(wbits=47)
    try:
        data = inflate.decompress(data, LARGEST_REQUEST)
    except zlib.error as error:
        raise Invalid(f"the request's body is no {encoding}") from error
    if inflate.unconsumed_tail:
        raise Invalid(f"the request is larger than {LARGEST_REQUEST >> 20} MiB when it is unpacked")
    return data


def _model_in(path: str) -> str:
    """Of services that go by it: then whatever the body names is not what answers."""
    before, _, last = path.rpartition("/")
    name, colon, _ = last.partition(":")
    deployed = before.partition("/deployments/")[2].partition("/")[0]
    return name if colon else deployed


def _check_names(body: dict[str, Any]) -> None:
    for name in body:
        meant = _FOLDED.get(name.casefold(), name)
        if name not in _READ_HERE and meant != name:
            raise Invalid(f"the request has {name[:40]!r}, which some services read as {meant!r}: write it so")


def _switches(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _GROWS}


def _has_another_price(body: dict[str, Any]) -> bool:
    tier = body.get("service_tier")
    return (tier is not None and tier not in _USUAL_TIERS) or any(body.get(name) for name in _OTHER_PRICES)


def _usual(api: Api, model: str) -> tuple[str, ...]:
    return ("max_tokens",) if api is CHAT and not _REASONS.search(model) else api.usual_field


def _get(body: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = body
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _put(body: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy with one value put in; what it shares with the original is not touched."""
    key, *rest = path
    inner = body.get(key)
    return {**body, key: _put(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value}


def _number(value: Any) -> int | None:
    """A limit as it may be written: 8192, 8192.0. Anything else is no limit."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 13:
        value = int(value)  # Gemini takes numbers in quotes
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < 1e12 else None
