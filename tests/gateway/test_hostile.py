"""Servers that mean harm, or are broken as if they did: what they do costs them their answer, and others nothing."""

import json
from pathlib import Path

import pytest

from gateway.kit import Player, child, run, table, until
from remuda.gateway import connection, toollist
from remuda.gateway.events import ServerLeft

DEEP = '{"a":' * 5000 + "1" + "}" * 5000
NO_END = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"no end'


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":' + DEEP + "}}",
        '{"result":{"structuredContent":' + DEEP + '},"jsonrpc":"2.0","id":ID}',
        NO_END,
        '{"jsonrpc":"2.0","id":ID}',
        '{"jsonrpc":"2.0","id":ID,"method":5}',
    ],
    ids=["too deep", "too deep, with the id at its end", "cut off", "neither result nor error", "no method"],
)
def test_an_answer_that_cannot_be_read_is_told_at_once(tmp_path: Path, line: str) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            said = await player.say("one__write", lines=[line], answers=False)
            assert "answered tools/call in a way that cannot be read" in said
            assert len(said) < 1000
            assert await player.say("one__echo", text="fine") == "fine"

    run(story())


def test_what_only_looks_like_an_answer_is_passed_over(tmp_path: Path) -> None:
    lines = ['{"level":"info","id":ID}', '{"id":ID,"half": ', '[{"jsonrpc":"2.0","id":ID,"result":{}}]', "[]", "null"]
    lines += [f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}' for number in ('"ID"', "ID.0", "null", "9" * 30)]

    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            assert await player.say("one__write", lines=lines) == "written"

    run(story())


def test_half_a_character_does_not_cost_the_whole_answer(tmp_path: Path) -> None:
    """As JavaScript writes down a text that was cut in the middle of an emoji."""
    text = r"cut \ud83d, whole \ud83d\ude00, \\ud83d no character at all \ude00"

    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            line = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"' + text + '"}]}}'
            said = await player.say("one__write", lines=[line], answers=False)
            assert said == "cut \ufffd, whole \U0001f600, \\ud83d no character at all \ufffd"

    run(story())


def test_a_server_that_tells_of_changes_without_end_is_asked_now_and_then(tmp_path: Path) -> None:
    async def story() -> None:
        told = tmp_path / "told"
        async with table(tmp_path, {"one": child({"lists": str(told)}), "two": child()}) as (_, player):
            changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
            assert await player.say("one__write", lines=[changed], times=5000) == "written"
            assert await player.say("two__echo", text="fine") == "fine"
            await until(lambda: len(told.read_text()) >= 3)  # the start, the first change, and all that came since
            assert len(told.read_text()) < 20

    run(story())


def test_of_questions_without_end_some_are_asked_and_the_others_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            silent = Player(made.gateway)
            silent.holds = True
            await silent.hello(roots={})
            question = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'
            assert await silent.say("one__write", lines=[question], times=1000) == "written"
            assert silent.methods().count("roots/list") == connection.MOST_QUESTIONS
            refused = json.loads(await player.say("one__heard"))
            assert {each["error"]["message"] for each in refused} == {
                f"{connection.MOST_QUESTIONS} questions are open; wait for some of the answers"
            }
            await silent.close()

    run(story())


def test_a_list_without_end_is_cut_and_a_tool_that_no_model_could_be_given_is_barred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 5000)
    monkeypatch.setattr(toollist, "LONGEST", 1000)

    async def story() -> None:
        long = child({"tools": ["echo", "x" * 1000], "description": "long"})
        endless = child({"endless": True, "tools": ["echo"]})
        async with table(tmp_path, {"long": long, "endless": endless}) as (_, player):
            assert ": its definition is longer than" in await player.say("activate", server="long")
            assert await player.say("long__echo", text="fine") == "fine"
            await player.say("activate", server="endless")
            assert await player.say("endless__echo", text="fine") == "fine"

    run(story())


def test_a_call_of_a_tool_that_nobody_has_does_not_keep_its_server_for_good(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child(), "two": child()}
        async with table(tmp_path, servers, gateway={"idle_turns": 2}) as (made, player):
            assert "one has no tool 'one__never'" in await player.say("one__never")
            assert made.fleet.running == ("one",)
            for _ in range(2):
                await player.say("two__echo", text="")
            await until(lambda: made.fleet.running == ("two",))
            assert [event.server for event in made.of(ServerLeft)] == ["one"]

    run(story())
