"""What a model call costs where the agent does not say: from a table that others keep, or not at all.

The table is genai-prices'. It works offline, but its import takes most of a second of CPU, so it is loaded in a thread,
once, when the first agent that needs it starts. Until then, and for a model that is not in it, the cost is unknown.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

from remuda.agents import Listen, ModelCall, Update
from remuda.domain.state import Usage

NANOS = 1_000_000_000

# The usage of one call and the model's name -> dollars. Raises LookupError for a model that is not in the table.
Table = Callable[[Usage, str], Decimal]

_loading: "asyncio.Task[Table | None] | None" = None


async def load() -> Table | None:
    """The table; None where the package is not installed. Loaded once in the life of the process."""
    global _loading
    if _loading is None or _loading.cancelled() or _loading.get_loop().is_closed():
        _loading = asyncio.ensure_future(asyncio.to_thread(_import))
    return await asyncio.shield(_loading)


def cost_nanousd(table: Table | None, usage: Usage, model: str) -> int | None:
    """In whole billionths of a dollar; None when nobody knows."""
    if table is None or not model:
        return None
    for name in (model, model.rpartition("/")[2]):  # some agents put the provider in front: anthropic/claude-…
        try:
            return int((table(usage, name) * NANOS).to_integral_value())
        except LookupError:
            continue
    return None


def priced(listen: Listen, loading: "asyncio.Future[Table | None]") -> Listen:
    """Pass everything on; a model call without a price gets the table's."""

    def heard(update: Update) -> None:
        if isinstance(update, ModelCall) and update.usage.cost_nanousd is None and loading.done():
            cost = cost_nanousd(loading.result(), update.usage, update.model)
            update = replace(update, usage=replace(update.usage, cost_nanousd=cost))
        listen(update)

    return heard


def _import() -> Table | None:
    try:
        import genai_prices
    except ImportError:
        return None
    prices: Any = genai_prices

    def table(usage: Usage, model: str) -> Decimal:
        # It counts what came from the cache as a part of the input; we count it apart.
        tokens = prices.Usage(
            input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_creation_tokens,
            output_tokens=usage.output_tokens,
        )
        total: Decimal = prices.calc_price(tokens, model).total_price
        return total

    with suppress(LookupError):
        table(Usage(1, 1), "gpt-4o")  # what it puts off until its first use is paid here too, and not in the loop
    return table
