"""Resources that are watched: a change is told to whoever wants to hear of it, and to nobody else."""

import asyncio
from pathlib import Path

import pytest
from mcp.shared.subscriptions import ResourceUpdated
from msgspec import Raw

from gateway.kit import Player, Told, child, run, table, until
from gateway.serve_kit import over_stdio, say, write_settings
from gateway.test_backends import judge
from remuda.gateway.listening import Listening
from remuda.gateway.watched import Watched
from remuda.gateway.writing import add_servers
from remuda.mcp.eras import RESOURCE_UPDATED
from remuda.mcp.jsonrpc import METHOD_NOT_FOUND, RpcError

ONE = {"uri": "mem://one"}


def updates(player: Player) -> list[str]:
    return [each["params"]["uri"] for each in player.heard if each["method"] == RESOURCE_UPDATED]


def test_a_change_is_told_to_those_who_asked_and_to_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child({"uri": "mem://one"}), "two": child({"uri": "mem://two"})}
        async with table(tmp_path, servers) as (made, player):
            other, third = Player(made.gateway), Player(made.gateway)
            for each in (other, third):
                await each.hello("other")
            for name in servers:
                await player.call("activate", server=name)
            await player.ask("resources/list")
            for each in (player, other):
                await each.ask("resources/subscribe", ONE)
            assert (await player.say("one__watched"), await player.say("two__watched")) == ("mem://one", "")
            await player.say("one__touch")
            await until(lambda: updates(player) == updates(other) == ["mem://one"])
            assert updates(third) == []

            await player.ask("resources/unsubscribe", ONE)
            assert await player.say("one__watched") == "mem://one", "the other one still wants it"
            await player.say("one__touch")
            await until(lambda: len(updates(other)) == 2)
            assert len(updates(player)) == 1
            await other.close()  # it need not say so
            while await player.say("one__watched"):
                pass
            await third.close()

    run(story())


def test_a_part_of_what_is_watched_concerns_whoever_watches_the_whole(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            watched = Watched()
            client = player._conversation
            watched.add("file:///notes", "one", client)
            watched.add("file:///notes/", "one", client)
            assert list(watched.told("one", "file:///notes/today.md")) == [client], "and is told once"
            assert list(watched.told("two", "file:///notes/today.md")) == []
            assert list(watched.told("one", "file:///notes-of-others")) == []
            assert watched.drop("file:///notes", client) == "one"
            assert watched.drop("file:///notes", client) == "", "a second time it is news to nobody"

    run(story())


def test_a_server_that_was_started_again_is_watched_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            await player.call("activate", server="one")
            await player.ask("resources/subscribe", ONE)
            await player.call("one__crash")
            while await player.say("one__watched") != "mem://one":
                pass
            await player.say("one__touch")
            await until(lambda: updates(player) == ["mem://one"])

    run(story())


def test_a_server_that_is_watched_stays_however_idle_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        servers = {"one": child(), "two": child({"uri": "mem://two"})}
        async with table(tmp_path, servers, gateway={"idle_turns": 2}) as (made, player):
            await player.call("activate", server="one")
            await player.ask("resources/subscribe", ONE)
            for _ in range(4):
                await player.call("two__pid")
            assert made.fleet.running == ("one", "two")
            await player.ask("resources/unsubscribe", ONE)
            await player.call("two__pid")
            await until(lambda: made.fleet.running == ("two",))

    run(story())


def test_what_nobody_can_tell_of_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (_, player):
            with pytest.raises(Told, match="no server that runs has the resource"):
                await player.ask("resources/subscribe", ONE)
            for odd in ({}, {"uri": 5}, {"uri": "mem://never seen"}):
                assert await player.ask("resources/unsubscribe", odd) == {}

    run(story())


def test_a_client_of_the_newer_era_listens_to_a_server_of_the_older_one(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        async with over_stdio(tmp_path, "2026-07-28") as client:
            await say(client, "activate", server="one")
            async with client.listen(resource_subscriptions=["mem://one"]) as listening:
                assert await say(client, "one__watched") == "mem://one"
                await say(client, "one__touch")
                assert await anext(aiter(listening)) == ResourceUpdated(uri="mem://one")
            while await say(client, "one__watched"):
                pass

    run(story())


def test_a_client_of_the_newer_era_listens_to_a_server_of_the_newer_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with judge("modern") as settings:
            add_servers(tmp_path / "gateway.toml", {"judge": settings})
            async with over_stdio(tmp_path, "2026-07-28") as client:
                await say(client, "activate", server="judge")
                async with client.listen(resource_subscriptions=["judge://motto"]) as listening:
                    await say(client, "judge__touch")
                    assert await anext(aiter(listening)) == ResourceUpdated(uri="judge://motto")

    run(story())


def test_a_watch_begins_when_the_server_has_said_so_and_not_before() -> None:
    asked: list[Raw] = []

    async def silent(_method: str, params: Raw, _seconds: float) -> Raw:
        asked.append(params)
        return await asyncio.Future()

    async def story() -> None:
        listening = Listening("one", silent, {})
        watching = asyncio.create_task(listening.watch("mem://one", on=True))
        await until(lambda: bool(asked))
        assert not watching.done()
        listening.acknowledged()
        await watching
        listening.stop()

    run(story())


def test_a_server_that_refuses_to_tell_is_not_watched() -> None:
    async def refusing(_method: str, _params: Raw, _seconds: float) -> Raw:
        raise RpcError(METHOD_NOT_FOUND, "there is no such thing")

    async def story() -> None:
        with pytest.raises(RpcError, match="no such thing"):
            await Listening("one", refusing, {}).watch("mem://one", on=True)

    run(story())
