"""What a call costs when the agent does not say."""

import asyncio
import subprocess
import sys
from dataclasses import replace

from adapters.agent_kit import Recorder
from remuda.agents import ModelCall
from remuda.agents.prices import Table, cost_nanousd, load, priced
from remuda.domain.state import Usage

USED = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=500)


def table() -> Table | None:
    return asyncio.run(load())


def test_a_known_model_has_a_price_and_the_cache_is_cheaper() -> None:
    cost = cost_nanousd(table(), USED, "gpt-4o")
    fresh = cost_nanousd(table(), replace(USED, input_tokens=1500, cache_read_tokens=0), "gpt-4o")
    assert cost is not None
    assert fresh is not None
    assert 0 < cost < fresh


def test_a_provider_in_front_of_the_name_does_not_hide_the_model() -> None:
    assert cost_nanousd(table(), USED, "openai/gpt-4o") == cost_nanousd(table(), USED, "gpt-4o")


def test_nobody_guesses_the_price_of_a_model_that_is_not_in_the_table() -> None:
    assert cost_nanousd(table(), USED, "my-own-model") is None
    assert cost_nanousd(table(), USED, "") is None
    assert cost_nanousd(None, USED, "gpt-4o") is None


def test_a_price_that_the_agent_told_stands_and_one_it_did_not_tell_is_looked_up() -> None:
    heard = Recorder()

    async def story() -> None:
        loading = asyncio.ensure_future(load())
        listen = priced(heard, loading)
        listen(ModelCall(1, USED, "gpt-4o"))
        await loading
        listen(ModelCall(2, USED, "gpt-4o"))
        listen(ModelCall(3, replace(USED, cost_nanousd=7), "gpt-4o"))
        listen(ModelCall(4, USED, "my-own-model"))

    asyncio.run(story())
    first, second, third, fourth = (each.usage.cost_nanousd for each in heard.calls())
    assert first is None
    assert second == cost_nanousd(table(), USED, "gpt-4o")
    assert third == 7
    assert fourth is None


def test_the_table_is_not_imported_before_it_is_wanted() -> None:
    code = "import sys, remuda.agents.catalog; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
