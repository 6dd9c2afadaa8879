"""New settings while servers are at work: nobody loses a call for them."""

import asyncio
from pathlib import Path

from gateway.kit import Player, Table, child, run, table, until
from remuda.gateway.config import Configured
from remuda.gateway.events import ServerLeft
from remuda.runtime.tool_servers import GatewaySettings, ServerSettings


def take(made: Table, servers: dict[str, ServerSettings]) -> None:
    path = made.fleet.configured.path
    made.fleet.replace(Configured(path, GatewaySettings(servers=servers), servers))


def reasons(made: Table) -> list[tuple[str, str]]:
    return [(event.server, event.why) for event in made.of(ServerLeft)]


def gone(pid: str) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def asking(player: Player) -> "asyncio.Task[str]":
    """A call that is under way until the client has answered the server's question."""
    call = asyncio.create_task(player.say("one__ask"))
    await until(lambda: "roots/list" in player.methods())
    return call


def test_what_is_only_said_of_a_server_does_not_end_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            pid = await player.say("one__pid")
            take(made, {"one": child(idle_turns=9, steering="Be kind.", keywords=("kindness",))})
            assert await player.say("one__pid") == pid
            assert "Be kind." in await player.say("activate", server="one")
            assert reasons(made) == []

    run(story())


def test_a_server_that_would_be_started_in_another_way_leaves_when_its_call_is_answered(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child()}) as (made, player):
            await player.hello(roots={})
            old = await player.say("one__pid")
            player.holds = True
            call = await asking(player)
            take(made, {"one": child({"description": "new"})})
            new = await player.say("one__pid")
            assert new != old
            assert not gone(old)
            player.let_go()
            assert await call == "{}"
            await until(lambda: gone(old))
            assert await player.say("one__pid") == new
            assert reasons(made) == [("one", "reload")]

    run(story())


def test_a_server_that_is_taken_out_answers_its_call_first_and_one_that_closes_does_not_wait(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"one": child(), "two": child()}) as (made, player):
            await player.hello(roots={})
            pid = await player.say("one__pid")
            player.holds = True
            call = await asking(player)
            take(made, {"two": child()})
            assert "there is no tool 'one__pid'" in await player.say("one__pid")
            await made.gateway.close()
            assert "was stopped" in await call
            assert gone(pid)

    run(story())


def test_who_waits_for_a_server_that_is_stopped_while_it_starts_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        never = child({"never": ["tools/list"], "starts": str(tmp_path / "starts")})
        async with table(tmp_path, {"one": never}) as (made, player):
            call = asyncio.create_task(player.say("one__echo"))
            await until((tmp_path / "starts").exists)
            await made.fleet.servers["one"].leave()
            assert "was stopped while it started" in await call

    run(story())
