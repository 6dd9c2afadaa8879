"""Servers that behave badly and intents that make no sense: a clear error, and nobody else is disturbed."""

from pathlib import Path

import pytest

from gateway.kit import Told, child, run, table, until
from remuda.gateway.events import ServerDied
from remuda.gateway.toollist import MOST_LISTED


def test_logs_and_half_messages_on_stdout_are_passed_over(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            assert await player.say("one__noise") == "you called noise"

    run(story())


def test_a_second_answer_is_nobodys(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            assert await player.say("one__twice") == "once"
            assert await player.say("one__echo", text="not the second") == "not the second"

    run(story())


@pytest.mark.parametrize("page", [1, 7, 10_000])
def test_a_list_in_pages_is_read_to_its_end(tmp_path: Path, page: int) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child({"page": page})}) as (_, player):
            await player.say("activate", server="one")
            listed = await player.tools()
            assert len([name for name in listed if name.startswith("one__")]) == 21

    run(story())


def test_of_ten_thousand_tools_some_are_listed_and_all_can_be_called(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"many": child({"many": 10_000}), "one": child()}) as (_, player):
            await player.say("activate", server="many")
            listed = [name for name in await player.tools() if name.startswith("many__")]
            assert len(listed) == MOST_LISTED
            assert await player.say("many__tool9999") == "you called tool9999"
            assert await player.say("one__echo", text="fine") == "fine"

    run(story())


def test_a_server_that_renames_its_tools_is_listed_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child({"tools": ["grow", "old"]})}) as (_, player):
            await player.say("activate", server="one")
            await player.tools()
            await player.say("one__grow")
            await until(lambda: player.lists >= 2)
            assert await player.say("one__grown") == "you called grown"
            assert "its tools are: " in await player.say("one__never")

    run(story())


def test_a_line_beyond_any_size_ends_its_server_and_the_next_call_starts_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.gateway.link_stdio.ServerPipes.limits", {1: 100_000, 2: 1000})

    async def story() -> None:
        async with table(tmp_path, {"one": child(), "two": child()}) as (made, player):
            other = await player.say("two__pid")
            assert "more than 100000 bytes" in await player.say("one__big", size=200_000)
            assert len(made.of(ServerDied)) == 1
            assert await player.say("one__echo", text="back") == "back"
            assert await player.say("two__pid") == other

    run(story())


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   \n",
        "x" * 10_000,
        "データベースを調べて",
        "\x00\ud7ff",
        "'; DROP TABLE servers; --",
        "* OR *",
        '"',
        "NEAR(",
    ],
)
def test_any_intent_gets_an_answer(tmp_path: Path, query: str) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            said = await player.say("resolve_intent", query=query)
            assert "one" in said or "say what you want" in said
            assert (made.fleet.running, made.fleet.clock.turn) == ((), 1)

    run(story())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "there is no tool 'nothing'"),
        ("nobody__x", "there is no tool 'nobody__x'"),
        ("one__nothing", "one has no tool 'one__nothing'"),
        ("__", "there is no tool"),
        ("x" * 5000, "there is no tool"),
        ("", "there is no tool"),
    ],
)
def test_a_tool_that_does_not_exist_is_told_so(tmp_path: Path, name: str, said: str) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            answer = await player.call(name)
            assert answer["isError"]
            assert said in answer["content"][0]["text"]

    run(story())


def test_calls_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            for params in ({}, {"name": 5}, {"name": "one__echo", "_meta": []}):
                with pytest.raises(Told):
                    await player.ask("tools/call", params)
            with pytest.raises(Told, match="there is no no/such"):
                await player.ask("no/such")
            assert "called directly" in await player.say("call_tool", name="call_tool")
            for odd in ("no json", "[1]", [1], 5):  # told to the model, which can do better
                said = await player.call("call_tool", name="one__echo", arguments=odd)
                assert said["isError"]
                assert "its arguments as an object" in said["content"][0]["text"]
            assert await player.say("call_tool", name="one__echo", arguments='{"text": "as text"}') == "as text"
            for odd in ("", "server", 5):
                assert "no tool server" in await player.say("activate", server=odd)

    run(story())
