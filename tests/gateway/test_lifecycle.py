"""Servers that come and go: single starts, idle turns, deaths, restarts, those that never come up."""

import asyncio
import os
from pathlib import Path

import pytest

from gateway.kit import Player, child, run, table, until
from remuda.gateway.events import ServerDied, ServerLeft, ServerRefused, ServerStarted


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_however_many_need_a_server_it_is_started_once(tmp_path: Path) -> None:
    starts = tmp_path / "starts"

    async def story() -> None:
        async with table(tmp_path, {"one": child({"starts": str(starts)})}) as (made, player):
            resolved = (player.call("resolve_intent", query="use one") for _ in range(4))
            called = (player.say("one__pid") for _ in range(4))
            await asyncio.gather(*resolved, *called)
            assert len(starts.read_text().split()) == 1
            assert len(made.of(ServerStarted)) == 1

    run(story())


def test_fifteen_turns_of_a_developer_with_real_servers(tmp_path: Path) -> None:
    from gateway.test_clock import DAY

    async def story() -> None:
        servers = {name: child() for name in ("postgres", "stripe", "cap-js")}
        async with table(tmp_path, servers) as (made, player):
            for turn, (what, server, leaving, last) in enumerate(DAY, 1):
                if what == "resolve":
                    await player.say("resolve_intent", query=server)
                else:
                    assert await player.say(f"{server}__echo", text="x") == "x"
                left = {event.server: event.idle_turns for event in made.of(ServerLeft) if event.turn == turn}
                assert (made.fleet.clock.turn, left) == (turn, leaving)
                assert set(made.fleet.running) == set(last)
            started = [(event.turn, event.server) for event in made.of(ServerStarted)]
            assert started == [(1, "postgres"), (4, "stripe"), (8, "cap-js"), (15, "postgres")]

    run(story())


def test_a_server_that_left_is_gone_and_comes_back_with_the_next_call(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(idle_turns=2), "two": child()}) as (made, player):
            pid = int(await player.say("one__pid"))
            for _ in range(2):
                await player.say("two__echo")
            assert [event.why for event in made.of(ServerLeft)] == ["idle"]
            await until(lambda: gone(pid))
            assert int(await player.say("one__pid")) != pid

    run(story())


def test_a_call_in_flight_keeps_its_server(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(idle_turns=1), "two": child()}) as (made, player):
            await player.say("one__pid")
            player.send({"id": "long", "method": "tools/call", "params": {"name": "one__wait"}})
            await until(lambda: made.fleet.clock.uses["one"].flying == 1)
            for _ in range(5):
                await player.say("two__echo")
            assert made.of(ServerLeft) == []
            player.send({"method": "notifications/cancelled", "params": {"requestId": "long"}})
            await until(lambda: made.fleet.clock.uses["one"].flying == 0)
            await player.say("two__echo")
            assert [event.server for event in made.of(ServerLeft)] == ["one"]

    run(story())


def test_a_server_that_dies_in_a_call_is_told_with_its_last_words_and_started_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(), "two": child()}) as (made, player):
            other = int(await player.say("two__pid"))
            answer = await player.call("one__crash")
            assert answer["isError"]
            assert "SIGKILL" in answer["content"][0]["text"]
            assert "the disk is on fire" in answer["content"][0]["text"]
            assert len(made.of(ServerDied)) == 1
            assert await player.say("one__echo", text="back") == "back"
            assert int(await player.say("two__pid")) == other

    run(story())


def test_a_server_that_dies_between_calls_is_started_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            os.kill(int(await player.say("one__pid")), 9)
            await until(lambda: made.of(ServerDied) != [])
            assert await player.say("one__echo", text="back") == "back"

    run(story())


def test_a_server_that_does_not_start_is_told_with_its_last_words_and_left_alone_for_a_while(tmp_path: Path) -> None:
    async def story() -> None:
        behaves = {"stderr": "ImportError: no module named mcp", "exit": 3}
        async with table(tmp_path, {"bad": child(behaves), "good": child()}) as (made, player):
            for _ in range(3):
                said = await player.say("activate", server="bad")
                assert "exited with code 3" in said
                assert "no module named mcp" in said
            assert "failed 3 times; it is tried again in" in await player.say("activate", server="bad")
            assert len(made.of(ServerRefused)) == 4
            assert await player.say("good__echo", text="fine") == "fine"

    run(story())


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
def test_a_server_that_never_answers_is_given_up(tmp_path: Path, method: str) -> None:
    starts = tmp_path / "starts"

    async def story() -> None:
        mute = child({"never": [method], "starts": str(starts), "stderr": "thinking"}, start_seconds=2.0)
        async with table(tmp_path, {"mute": mute, "good": child()}) as (_, player):
            said = await player.say("activate", server="mute")
            assert "was not ready within 2 s" in said
            assert "thinking" in said
            await until(lambda: gone(int(starts.read_text())))
            assert await player.say("good__echo", text="fine") == "fine"

    run(story())


def test_a_call_that_is_never_answered_ends_and_the_server_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(call_seconds=0.3)}) as (_, player):
            pid = await player.say("one__pid")
            assert "did not answer tools/call within 0.3 s" in await player.say("one__wait")
            assert await player.say("one__pid") == pid

    run(story())


def test_a_program_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        missing = child()
        missing = type(missing)(command=("no-such-program-anywhere",))
        async with table(tmp_path, {"gone": missing}) as (_, player):
            assert "no-such-program-anywhere" in await player.say("activate", server="gone")

    run(story())


def test_a_secret_that_is_missing_is_told_by_name_and_nobody_else_is_disturbed(tmp_path: Path) -> None:
    async def story() -> None:
        needy = child(env={"TOKEN": "${env:NOBODY_HAS_SET_THIS}"})
        async with table(tmp_path, {"needy": needy, "good": child()}) as (_, player):
            assert "NOBODY_HAS_SET_THIS" in await player.say("activate", server="needy")
            assert await player.say("good__echo", text="fine") == "fine"

    run(story())


def test_two_gateways_do_not_touch_each_others_servers(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child()}
        async with table(tmp_path, servers) as (_, first):
            pid = int(await first.say("one__pid"))
            async with table(tmp_path, servers) as (_, second):
                assert int(await second.say("one__pid")) != pid
            assert int(await first.say("one__pid")) == pid

    run(story())


def test_what_a_gateway_started_is_gone_when_it_closes(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(), "two": child()}) as (_, player):
            pids = [int(await player.say(f"{name}__pid")) for name in ("one", "two")]
        assert all(gone(pid) for pid in pids)

    run(story())


def test_turns_that_the_runtime_tells_count_and_calls_do_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(idle_turns=2), "two": child()}) as (made, player):
            made.fleet.counting = "told"
            await player.say("one__echo")
            for _ in range(10):
                await player.say("two__echo")
            assert made.fleet.clock.turn == 0
            made.gateway.turn_ended()
            made.gateway.turn_ended()
            assert {event.server for event in made.of(ServerLeft)} == {"one"}

    run(story())


def test_a_client_that_tells_its_own_turns_is_believed(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            for turn in ("a", "a", "a", "b", "b", "c"):
                meta = {"x-codex-turn-metadata": {"session_id": "s", "turn_id": turn}}
                await player.ask("tools/call", {"name": "one__echo", "_meta": meta})
            assert made.fleet.clock.turn == 2

    run(story())


def test_a_client_that_goes_in_the_middle_of_a_call_leaves_nothing_in_flight(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, _):
            leaver = Player(made.gateway)
            await leaver.hello("leaver")
            await leaver.say("one__echo")
            leaver.send({"id": "long", "method": "tools/call", "params": {"name": "one__wait"}})
            await until(lambda: made.fleet.clock.uses["one"].flying == 1)
            await leaver.close()
            assert made.fleet.clock.uses["one"].flying == 0

    run(story())
