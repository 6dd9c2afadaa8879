"""The gateway of a runtime: agents' sessions get one each, their real turns count, and it ends with them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.kit import run, until
from gateway.serve_kit import say, write_settings
from gateway.test_lifecycle import gone
from remuda.agents import McpServer
from remuda.domain.commands import SpawnAgent
from remuda.domain.effects import StartSession
from remuda.effects.world import Loan
from remuda.gateway.supervised import Seats, serve_gateway
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime


class Watched:
    """A runtime whose loans can be seen."""

    def __init__(self, runtime: Runtime, seats: Seats) -> None:
        self.runtime, self.seats = runtime, seats
        self.loans: dict[str, Loan] = {}
        runtime.world.lenders[:] = [self._lend]

    def _lend(self, effect: StartSession, token: str) -> Loan:
        self.loans[effect.agent] = loan = self.seats.lend(effect, token)
        return loan

    async def agent(self, name: str, role: str = "worker") -> None:
        await self.runtime.spawn(SpawnAgent(role, "scripted", name))
        await self.turn(name, 1)

    async def turn(self, name: str, number: int) -> None:
        await self.runtime.send(name, "Good morning.")
        await until(lambda: (agent := self.runtime.agent(name)).turns >= number and agent.turn is None)

    def server(self, name: str) -> McpServer:
        (server,) = self.loans[name].mcp_servers
        return server

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[Client]:
        server = self.server(name)
        http = httpx2.AsyncClient(headers=dict(server.headers), timeout=30)
        async with http, Client(streamable_http_client(server.url, http_client=http)) as client:
            yield client


@asynccontextmanager
async def watched(folder: Path, **gateway: object) -> AsyncIterator[Watched]:
    write_settings(folder, {"one": {}, "two": {}}, **gateway).rename(folder / "remuda.toml")
    make_place(folder)
    async with open_runtime(folder) as runtime, serve_gateway(runtime) as seats:
        made = Watched(runtime, seats)
        try:
            yield made
        finally:
            runtime.world.lenders[:] = [seats.lend]


def test_a_server_leaves_after_turns_of_the_agent_and_not_after_calls(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path, idle_turns=2) as made:
            await made.agent("ada")
            async with made.client("ada") as client:
                pid = int(await say(client, "one__pid"))
                for _ in range(6):
                    await say(client, "two__echo", text="x")
                assert not gone(pid)
                await made.turn("ada", 2)
                await made.turn("ada", 3)
                await until(lambda: gone(pid))
                assert int(await say(client, "one__pid")) != pid

    run(story())


def test_every_session_has_its_own_gateway_and_its_token_opens_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as made:
            await made.agent("ada")
            await made.agent("bob")
            async with made.client("ada") as ada, made.client("bob") as bob:
                assert await say(ada, "one__pid") != await say(bob, "one__pid")
                mark = json.loads(await say(ada, "one__env"))["REMUDA_MARK"]
                assert mark.startswith(f"{made.runtime.place.mark}/ada/"), "the next runtime sweeps it up by that"
            tokens = {dict(made.server(name).headers)["Authorization"] for name in ("ada", "bob")}
            assert len(tokens) == 2

    run(story())


def test_with_the_session_its_gateway_ends_and_its_token_is_worth_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as made:
            await made.agent("ada")
            async with made.client("ada") as client:
                pid = int(await say(client, "one__pid"))
            live = made.runtime.world.live["ada"]
            await live.session.end(gentle=False)  # type: ignore[union-attr]
            await until(lambda: gone(pid))
            server = made.server("ada")
            async with httpx2.AsyncClient(headers=dict(server.headers)) as http:
                assert (await http.post(server.url, json={})).status_code == 401

    run(story())


def test_what_a_role_may_not_use_its_agents_do_not_see(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as made:
            settings = tmp_path / "remuda.toml"
            rules = '\n[gateway.roles.reviewer]\nallow = ["two"]\n'
            await asyncio.to_thread(settings.write_text, await asyncio.to_thread(settings.read_text) + rules)
            await made.agent("ada", "reviewer")
            async with made.client("ada") as client:
                assert "there is no tool" in await say(client, "one__pid")
                assert await say(client, "two__echo", text="mine") == "mine"

    run(story())


def test_without_servers_nothing_is_lent(tmp_path: Path) -> None:
    async def story() -> None:
        make_place(tmp_path)
        async with open_runtime(tmp_path) as runtime, serve_gateway(runtime) as seats:
            made = Watched(runtime, seats)
            await made.agent("ada")
            assert made.loans["ada"] == Loan()
            runtime.world.lenders[:] = [seats.lend]

    run(story())


def test_the_statistics_of_a_session_are_in_the_projects_private_folder(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched(tmp_path) as made:
            await made.agent("ada")
            async with made.client("ada") as client:
                await say(client, "one__echo", text="x")

    run(story())
    stats = json.loads((tmp_path / ".remuda" / "gateway" / "stats" / "last.json").read_bytes())
    assert stats["servers"]["one"]["calls"] == 1
