"""Calls through the gateway to real child servers: what comes back is what the server said."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.kit import Player, Told, child, run, table, until
from remuda.gateway.events import ServerCalled


def test_a_call_starts_its_server_and_comes_back_as_the_server_said_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            assert await player.call("one__fail") == {
                "content": [{"type": "text", "text": "it went wrong"}],
                "isError": True,
            }
            await player.call("one__structured")
            said = b'"structuredContent": {"a": [1, 2.5]}, "_meta": {"own": 1}}'
            assert player.raw[-1].endswith(said + b"}"), "byte for byte, with its own spaces"
            (image,) = (await player.call("one__image"))["content"]
            assert (image["type"], image["data"]) == ("image", "cG5n")

    run(story())


def test_what_a_server_answers_as_an_error_is_told_to_the_model(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            answer = await player.call("one__error")
            assert answer["isError"]
            assert "no such table" in answer["content"][0]["text"]
            assert [event.ok for event in made.of(ServerCalled)] == [False]

    run(story())


def test_progress_goes_to_the_caller_under_the_callers_own_token(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            other = Player(made.gateway)
            await other.hello("other")
            token = {"progressToken": "same for both"}
            calls = (each.ask("tools/call", {"name": "one__count", "_meta": token}) for each in (player, other))
            await asyncio.gather(*calls)
            for each in (player, other):
                steps = [told["params"] for told in each.heard if told["method"] == "notifications/progress"]
                assert [step["progress"] for step in steps] == [1, 2, 3]
                assert {step["progressToken"] for step in steps} == {"same for both"}
                assert {step["message"] for step in steps} == {"so far"}
            await other.close()

    run(story())


def test_a_call_that_the_client_cancels_is_cancelled_at_the_server(tmp_path: Path) -> None:
    told = tmp_path / "told"

    async def story() -> None:
        async with table(tmp_path, {"one": child({"told": str(told)})}) as (made, player):
            assert await player.say("one__echo", text="up") == "up"
            player.send({"id": "mine", "method": "tools/call", "params": {"name": "one__wait"}})
            await until(lambda: made.fleet.clock.uses["one"].flying == 1)
            player.send({"method": "notifications/cancelled", "params": {"requestId": "mine"}})
            await until(lambda: told.exists() and "notifications/cancelled" in told.read_text())
            assert (made.fleet.clock.uses["one"].flying, player.dropped) == (0, ["mine"])
            assert await player.say("one__echo", text="still here") == "still here"

    run(story())


def test_a_server_may_ask_the_client_what_the_client_can_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(), "two": child()}) as (made, _):
            able = Player(made.gateway)
            able.answers["sampling/createMessage"] = {"model": "m", "role": "assistant"}
            await able.hello("able", sampling={})
            said = await able.say("one__ask", method="sampling/createMessage", params={"messages": []})
            assert json.loads(said) == {"model": "m", "role": "assistant"}
            assert "nobody here can answer" in await able.say("one__ask", method="elicitation/create")
            assert "nobody here can answer" in await able.say("one__ask", method="no/such")
            await able.close()

    run(story())


def test_logging_and_changes_of_a_server_reach_the_client(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            await player.ask("logging/setLevel", {"level": "info"})
            await player.say("one__log")
            await until(lambda: "notifications/message" in player.methods())
            await player.tools()
            await player.say("one__grow")
            await until(lambda: player.lists >= 2)
            assert "one__grown" in await player.tools()

    run(story())


def test_prompts_and_resources_of_the_servers_that_run(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child({"uri": "mem://one"}), "two": child({"uri": "mem://two"}), "idle": child()}
        async with table(tmp_path, servers) as (_, player):
            assert await player.ask("prompts/list") == {"prompts": []}
            for name in ("one", "two"):
                await player.call("activate", server=name)
            prompts = (await player.ask("prompts/list"))["prompts"]
            assert [each["name"] for each in prompts] == ["one__greet", "two__greet"]
            got = await player.ask("prompts/get", {"name": "two__greet"})
            assert got["messages"][0]["content"]["text"] == "hello from greet"
            resources = (await player.ask("resources/list"))["resources"]
            assert [each["uri"] for each in resources] == ["mem://one", "mem://two"]
            read = await player.ask("resources/read", {"uri": "mem://two"})
            assert read["contents"][0]["text"] == "contents"
            with pytest.raises(Told, match="no prompt"):
                await player.ask("prompts/get", {"name": "nobody__greet"})

    run(story())


def test_a_resource_that_two_servers_have_is_nobodys(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child({"uri": "mem://same"}), "two": child({"uri": "mem://same"})}
        async with table(tmp_path, servers) as (_, player):
            for name in servers:
                await player.call("activate", server=name)
            await player.ask("resources/list")
            with pytest.raises(Told, match="one and two"):
                await player.ask("resources/read", {"uri": "mem://same"})

    run(story())


def test_a_result_that_is_too_long_goes_to_a_file_and_can_be_read_in_parts(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}, gateway={"output_bytes": 5000}) as (_, player):
            assert await player.say("one__big", size=4000) == "x" * 4000
            said = await player.say("one__big", size=20_000_000)
            assert len(said) < 5000
            assert '{"output": 1, "from": 2000}' in said
            kept.append(Path(said.partition(" is in ")[2].partition(". To read on")[0]))
            part = await player.say("call_tool", name="read_output", arguments={"output": 1, "from": 19_990_000})
            assert part == "x" * 10_000
            part = await player.say("call_tool", name="read_output", arguments={"output": 1, "from": 2000})
            assert part.endswith("(19,978,000 characters follow, from 22000)")
            bad: list[Any] = [{}, {"output": 2}, {"output": "../../etc/passwd"}, {"output": 1.5}]
            for odd in bad:
                assert "there is no output" in await player.say("call_tool", name="read_output", arguments=odd)
            assert await player.say("one__echo", text="unharmed") == "unharmed"

    kept: list[Path] = []
    run(story())
    assert kept[0].read_text() == "x" * 20_000_000
    assert kept[0].stat().st_mode & 0o777 == 0o600


def test_a_child_sees_what_it_was_given_and_nothing_of_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "do not leak")
    monkeypatch.setenv("ITS_SECRET", "its own")

    async def story() -> None:
        async with table(tmp_path, {"one": child(env={"TOKEN": "${env:ITS_SECRET}"})}) as (_, player):
            seen = json.loads(await player.say("one__env"))
            assert seen["TOKEN"] == "its own"
            assert "OUR_SECRET" not in seen

    run(story())
