"""What the gateway counts: tokens, the savings of those who left, failures in a row."""

import json
from pathlib import Path

import msgspec
import pytest

from gateway.kit import child, run, table
from remuda.gateway.books import Books, to_json
from remuda.gateway.books import table as as_table
from remuda.gateway.breaker import LONGEST, Breaker
from remuda.gateway.events import ServerCalled, ServerDied, ServerLeft, ServerRefused, ServerStarted, in_words
from remuda.gateway.metatools import TOKENS
from remuda.gateway.tokens import count_tokens

# Of real servers' tools, counted with the vocabulary o200k.
COUNTED = {
    "arxiv": 1757,
    "atlassian": 5540,
    "blender": 2602,
    "chart": 1435,
    "chrome-devtools": 1237,
    "circleci": 8059,
    "elevenlabs": 4830,
    "firecrawl": 3724,
    "hubspot": 3511,
    "mapbox": 2420,
    "sentry": 2817,
    "stripe": 1918,
    "todoist": 2222,
    "zotero": 8091,
}
RECORDED = Path(__file__).parents[2] / "bench" / "data" / "tool_servers.json"


def test_tokens_are_counted_as_closely_as_a_budget_needs() -> None:
    counts = {}
    for server in json.loads(RECORDED.read_bytes()):
        seen = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in server["tools"]]
        counts[server["name"]] = sum(count_tokens(msgspec.json.encode(each).decode()) for each in seen)
    for name, counted in COUNTED.items():
        assert abs(counts[name] / counted - 1) < 0.08, name
    total = sum(counts[name] for name in COUNTED)
    assert abs(total / sum(COUNTED.values()) - 1) < 0.04


@pytest.mark.parametrize("text", ["", " ", "\x00", "日本語", "😀" * 50, "a" * 100_000, '{"x":[1,2,3]}'])
def test_any_text_can_be_counted(text: str) -> None:
    assert 0 <= count_tokens(text) <= len(text)


def test_the_savings_of_a_developers_day() -> None:
    """Three servers of 300, 750 and 1,800 tokens; the first leaves at turn 9, the second at turn 12."""
    books = Books(servers={})
    books.add(ServerStarted(1, "postgres", 0.1, 2, 300))
    books.list(300)
    books.add(ServerStarted(4, "stripe", 0.1, 5, 750))
    books.list(1050)
    books.add(ServerStarted(8, "cap-js", 0.1, 12, 1800))
    books.list(2850)
    books.add(ServerLeft(9, "postgres", "idle", 6, 300))
    books.list(2550)
    books.add(ServerLeft(12, "stripe", "idle", 5, 750))
    books.list(1800)
    books.add(ServerCalled(14, "cap-js", "deploy", True, 0.1, 10))
    assert (books.turn, books.listed, books.ever, books.most, books.saved_percent) == (14, 1800, 2850, 2850, 37)
    assert books.without - books.sent == 3 * 300 + 2 * 1050
    told = as_table(books)
    assert "1800 tokens of tools listed, 2850 if nobody ever left" in told
    assert "saved now 37 %" in told
    assert to_json(books)["servers"]["postgres"]["idled"] == 1


def test_what_was_never_started_is_saved_as_well() -> None:
    books = Books(servers={})
    books.list(0, known=5000)
    books.add(ServerStarted(1, "postgres", 0.1, 2, 300))
    books.list(300, known=5000)
    books.add(ServerCalled(11, "postgres", "query", True, 0.1, 10))
    assert books.direct - books.sent == 11 * (5000 - TOKENS) - 10 * 300
    assert f"known has 5000; against that {11 * (5000 - TOKENS) - 3000} were saved" in as_table(books)


def test_everything_that_happens_is_kept_and_can_be_told() -> None:
    books = Books(servers={})
    for event in (
        ServerStarted(1, "one", 0.5, 3, 100),
        ServerCalled(2, "one", "echo", False, 0.001, 5),
        ServerDied(3, "one", "SIGKILL"),
        ServerRefused(4, "one", "no module named mcp"),
        ServerLeft(5, "one", "budget", 0, 100),
    ):
        books.add(event)
        assert f"turn {event.turn}: one" in in_words(event)
    line = books.servers["one"]
    assert (line.starts, line.calls, line.failures, line.deaths, line.running) == (1, 1, 1, 1, False)
    assert line.note == "no module named mcp"
    assert "one: no module named mcp" in as_table(books)
    assert "failed" in as_table(books).splitlines()[1]
    books.add(ServerStarted(6, "one", 0.5, 3, 100))
    assert "no module" not in as_table(books)
    assert Books(servers={}).saved_percent == 0


def test_tokens_are_measured_from_the_list_that_a_server_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"small": child({"tools": ["a"]}), "large": child({"many": 100})}) as (made, player):
            for name in ("small", "large"):
                await player.say("activate", server=name)
            small, large = (event.tokens for event in made.of(ServerStarted))
            assert 15 < small < 35
            assert 95 * small < large < 120 * small
            assert made.gateway.tokens_listed() == small + large

    run(story())
    assert 150 < TOKENS < 400


def test_failures_in_a_row_wait_longer_and_a_server_that_ran_well_begins_anew() -> None:
    breaker, waits = Breaker(), []
    for _ in range(12):
        breaker = breaker.failed(100.0)
        waits.append(breaker.wait(100.0))
    assert waits[:5] == [0.0, 0.0, 2.0, 4.0, 8.0]
    assert max(waits) == LONGEST
    assert breaker.wait(100.0 + LONGEST) == 0
    assert breaker.failed(1000.0, ran=3600.0) == Breaker(1, 1000.0)
    assert breaker.failed(1000.0, ran=1.0).wait(1000.0) == LONGEST
