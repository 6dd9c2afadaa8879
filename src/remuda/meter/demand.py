"""Reads a request before it is passed on: how much it may use at most, and how to make it ask for less. Pure.

**The bound on the input never undershoots.** A token stands for at least one byte of text, and JSON writes no text with
fewer bytes than it has, so a request has no more tokens than bytes, and a little for what the service puts around it.
That is four times too much for plain text. So what a session's earlier calls were really counted as is remembered: a
request that grows out of one of them has no more tokens than that one, and the bytes that are new.
"""

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from remuda.domain.errors import Invalid
from remuda.meter import Estimate
from remuda.meter.apis import CHAT, Api, ceiling
from remuda.meter.elsewhere import has_hosted_tool, points_elsewhere
from remuda.meter.wire import LARGEST_REQUEST

AROUND = 64  # tokens that the service puts around a conversation, and that a change may add at its seams
AROUND_TOOLS = 1_024  # ... and around tools
LARGEST_CONTEXT = 1_000_000  # of a request that names what stands elsewhere: a file, an earlier answer
HOSTED = 50_000  # what a tool that the service runs itself may put in; an allowance, for nobody limits it

_REASONS = re.compile(r"gpt-[5-9]|^o\d|/o\d")  # models that know the newer name of the limit alone
_LEAST_THINKING = 1_024
_PLAIN = ("", "identity")


@dataclass(frozen=True, slots=True)
class Known:
    """A call that was made and counted."""

    model: str
    body: bytes
    input_tokens: int


@dataclass(frozen=True, slots=True)
class Demand:
    api: Api
    body: dict[str, Any]
    data: bytes  # the same in one spelling: what two could read differently is not passed on
    estimate: Estimate
    answers: int = 1
    as_it_came: bool = False  # nothing limits it, and the data is what the program sent

    def within(self, output_tokens: int) -> bytes:
        """The request, made to ask for no more output than this."""
        if output_tokens >= self.estimate.output_tokens:
            return self.data
        each = output_tokens // self.answers
        body = self.body
        fields = [path for path in self.api.fields if _get(body, path) is not None]
        for path in fields or [_usual(self.api, self.estimate.model)]:
            limit = _number(_get(body, path))
            body = _put(body, path, each if limit is None else min(limit, each))
        thinking = body.get("thinking")
        if isinstance(thinking, dict) and (_number(thinking.get("budget_tokens")) or 0) >= each:
            body = _put(body, ("thinking", "budget_tokens"), each - 1)
        return _encoder.encode(body)


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
    return Demand(api, _NOTHING, data, Estimate(seen.model or _model_in(path), 0, 0), as_it_came=True)


def read(api: Api, path: str, body: dict[str, Any], known: tuple[Known, ...] = ()) -> Demand:
    if api is CHAT and body.get("stream") is True:
        body = _put(body, ("stream_options", "include_usage"), True)  # else nothing tells what the answer cost
    data = _encoder.encode(body)
    unseen = LARGEST_CONTEXT if points_elsewhere(body) else HOSTED if has_hosted_tool(body) else 0
    around = AROUND_TOOLS if body.get("tools") else AROUND
    model = str(body.get("model") or _model_in(path))
    answers = max([1, *(_number(_get(body, each)) or 1 for each in api.choices)])
    said = [limit for each in api.fields if (limit := _number(_get(body, each))) is not None]
    output = max(said) if said else ceiling(model)
    thinks = isinstance(body.get("thinking"), dict) and "budget_tokens" in body["thinking"]
    floor = max(api.least, _LEAST_THINKING + 1 if thinks else 0)
    into = unseen + bound(model, data, known, around)
    estimate = Estimate(model, into, max(output, 1) * answers, min(floor, max(output, 1)) * answers)
    return Demand(api, body, data, estimate, answers)


def bound(model: str, data: bytes, known: tuple[Known, ...], around: int) -> int:
    """No request like this has more tokens in it than this. Should a service have counted more than one token for
    a byte before, it is taken to do so again."""
    same = [each for each in known if each.model == model]
    dear = max([1.0, *(each.input_tokens / len(each.body) for each in same)])
    least = around + math.ceil(len(data) * dear)
    for each in reversed(same):
        new = new_bytes(each.body, data)
        least = min(least, each.input_tokens + AROUND + math.ceil(new * dear))
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
    try:
        body = msgspec.json.decode(unpacked(data, encoding))
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
    name, colon, _ = path.rpartition("/")[2].partition(":")
    return name if colon else ""


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
