"""What a session has used, made one meaning out of the several that agents give their numbers (see quirks.Counting).

Tokens that were read from the cache are counted apart and never twice: `input_tokens` are the fresh ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from remuda.agents import ModelCall
from remuda.agents.acp_codec import NOTHING, lenient
from remuda.agents.books import Kept
from remuda.agents.quirks import PLAIN, Counting, Quirks
from remuda.domain.state import Usage

NANOS = 1_000_000_000


class Tokens(Struct, rename="camel"):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_read_tokens: int | None = 0
    cached_write_tokens: int | None = 0
    cost_usd: Decimal | None = None


class Cost(Struct):
    amount: Decimal
    currency: str = "USD"


class _Count(Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0


class _OfModel(Struct):
    model: str = ""
    token_count: _Count | None = None


class _Quota(Struct):
    token_count: _Count | None = None
    model_usage: list[_OfModel] | None = None


class _AnswerMeta(Struct):
    quota: _Quota | None = None


class Answer(Struct, rename="camel"):
    """What a prompt is answered with."""

    stop_reason: str
    usage: Raw = NOTHING
    meta: _AnswerMeta | None = msgspec.field(name="_meta", default=None)


class Tally:
    def __init__(self, quirks: Quirks = PLAIN) -> None:
        self._quirks = quirks
        self.model = ""
        self.calls = 0
        self.context = 0
        self.window = 0
        self._cost: int | None = None  # the session's, as last told
        self._priced: int | None = 0  # how much of it is in a ModelCall already, if that is known
        self._each_call_told = False  # then the total at the end of a turn would count everything twice
        self._total: Tokens | None = Tokens()  # where the session's totals stood; None: to be learnt from the next
        self._running: Tokens | None = None  # the totals as last told
        self.kept: frozenset[str] = frozenset()  # what is in the agent's books and counted

    def note(self, context: int | None, window: int | None, cost: Cost | None) -> None:
        self.context = self.context if context is None else context
        self.window = self.window if window is None else window
        # Nothing spent so far says nothing about the price: agents write 0 for a model whose price they do not know.
        if cost and cost.currency.upper() == "USD" and (cost.amount or self._cost is not None):
            self._cost = nanousd(cost.amount)
            if self._priced and self._cost < self._priced:  # the agent began to count anew
                self._priced = 0

    def begin_turn(self) -> None:
        """Books that could be read before may not be readable now: then what the protocol tells counts again."""
        self._each_call_told = self._each_call_told and not self._quirks.books

    def replayed(self) -> None:
        """What was told so far is history."""
        if self._cost is not None:
            self._priced = self._cost

    def resumed(self) -> None:
        """The agent's counters may go on from those of earlier processes: the first it tells is where to count from.

        The call that a cost is first told with stays without a price. To count the whole past once more would be worse.
        """
        self._priced = self._cost
        self._total = self._running

    def total(self, tokens: Tokens) -> None:
        """The session's totals, as they stand now."""
        if self._total is None:
            self._total = tokens
        self._running = tokens

    def one(self, tokens: Tokens, model: str = "") -> ModelCall:
        """A call that was told by itself."""
        self._each_call_told = True
        if self._total is not None:
            self._total = _plus(self._total, tokens)
        return self._call(self._usage(tokens), model)

    def keep(self, books: Sequence[Kept], *, count: bool = True) -> list[ModelCall]:
        """The calls in the agent's books that were not counted yet; with `count` off they are history."""
        new = [each for each in books if each.id not in self.kept]
        self.kept = self.kept.union(each.id for each in new)
        if not count:
            return []
        self._each_call_told = self._each_call_told or bool(new)
        return [self._call(each.usage, each.model) for each in new]

    def settle(self, answer: Answer | None) -> list[ModelCall]:
        """Count what the turn used, however it ended: money that was spent is spent."""
        if self._quirks.counting is Counting.CALLS:
            return self._rest()
        if self._each_call_told:
            return []
        if answer is not None and self._quirks.counting is Counting.QUOTA:
            return self._by_model(answer)
        tokens = lenient(answer.usage if answer else NOTHING, Tokens) or Tokens()
        if self._quirks.counting is Counting.SESSION:
            tokens = self._since(tokens)
        return self._worth(tokens)

    def _rest(self) -> list[ModelCall]:
        """What the totals have and no call was told for: the agent called the model on its own account."""
        if self._total is None or self._running is None:
            return []
        rest = _minus(self._running, self._total)
        self._total = _plus(self._total, rest)
        return self._worth(rest)

    def _since(self, tokens: Tokens) -> Tokens:
        before = Tokens() if self._total is None else self._total
        if _any_less(tokens, before):  # the agent began to count anew
            before = Tokens()
        self._total = tokens
        return _minus(tokens, before)

    def _by_model(self, answer: Answer) -> list[ModelCall]:
        quota = (answer.meta and answer.meta.quota) or _Quota()
        parts = quota.model_usage or [_OfModel("", quota.token_count)]
        counts = [(each.model, each.token_count or _Count()) for each in parts]
        return [call for model, each in counts for call in self._worth(_tokens(each), model)]

    def _worth(self, tokens: Tokens, model: str = "") -> list[ModelCall]:
        """A call for these tokens, if there was one at all."""
        call = self._call(self._usage(tokens), model)
        used = call.usage
        if used.input_tokens or used.output_tokens or used.cache_read_tokens or used.cost_nanousd:
            return [call]
        self.calls -= 1  # nothing happened, so no call is reported under that number
        return []

    def _usage(self, tokens: Tokens) -> Usage:
        cached = (tokens.cached_read_tokens or 0, tokens.cached_write_tokens or 0)
        inside = sum(cached) if self._quirks.cached_inside else 0
        return Usage(
            input_tokens=max(0, (tokens.input_tokens or 0) - inside),
            output_tokens=tokens.output_tokens or 0,
            cache_read_tokens=cached[0],
            cache_creation_tokens=cached[1],
            cost_nanousd=None if tokens.cost_usd is None else nanousd(tokens.cost_usd),
        )

    def _call(self, usage: Usage, model: str) -> ModelCall:
        self.calls += 1
        cost = usage.cost_nanousd
        if cost is None and self._cost is not None and self._priced is not None:
            cost = self._cost - self._priced
        if self._cost is not None:
            self._priced = self._cost
        usage = replace(
            usage,
            context_tokens=usage.context_tokens or self.context,
            context_window=usage.context_window or self.window,
            cost_nanousd=cost,
        )
        return ModelCall(self.calls, usage, model or self.model)


def nanousd(amount: Decimal) -> int:
    return int((amount * NANOS).to_integral_value())


def _tokens(count: _Count) -> Tokens:
    return Tokens(count.input_tokens or 0, count.output_tokens or 0)


def _numbers(tokens: Tokens) -> Sequence[int]:
    return (
        tokens.input_tokens or 0,
        tokens.output_tokens or 0,
        tokens.cached_read_tokens or 0,
        tokens.cached_write_tokens or 0,
    )


def _pairs(one: Tokens, other: Tokens) -> Iterator[tuple[int, int]]:
    return zip(_numbers(one), _numbers(other), strict=True)


def _plus(one: Tokens, other: Tokens) -> Tokens:
    fresh, out, read, write = (a + b for a, b in _pairs(one, other))
    return Tokens(fresh, out, read, write)


def _minus(one: Tokens, other: Tokens) -> Tokens:
    fresh, out, read, write = (max(0, a - b) for a, b in _pairs(one, other))
    return Tokens(fresh, out, read, write)


def _any_less(one: Tokens, other: Tokens) -> bool:
    return any(a < b for a, b in _pairs(one, other))
