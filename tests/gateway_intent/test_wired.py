"""Ranking and approvals in a gateway that runs, with the official SDK as its client."""

import asyncio
from pathlib import Path

from mcp import Client

from gateway.kit import run
from gateway.serve_kit import environment, over_stdio, say, write_settings
from remuda.gateway.approvals import Approvals
from remuda.gateway.config import state_folder


def approvals_of(folder: Path) -> Approvals:
    # The server runs with a home of its own; so does what it keeps.
    state = Path(environment(folder)["XDG_STATE_HOME"]) / "remuda" / "gateway"
    (only,) = state.iterdir()
    return Approvals(only)


async def asked_until(client: Client, wanted: str) -> str:
    """The gateway looks at its settings once a second, and a server that failed rests for a moment."""
    async with asyncio.timeout(30):
        while wanted not in (said := await say(client, "activate", server="one")):
            pass
    return said


def test_an_intent_finds_a_server_by_its_tools_once_they_are_known(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}, "two": {"tools": ["transcode_film"]}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            assert "No tool server fits" in await say(client, "resolve_intent", query="transcode the film")
            assert "is running" in await say(client, "activate", server="two")
        async with over_stdio(tmp_path) as client:  # another gateway, which has started nothing yet
            assert "'two' is running" in await say(client, "resolve_intent", query="transcode the film")

    run(story())


def test_a_server_that_comes_back_with_other_tools_is_refused_until_approved(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {"tools": ["first"]}, "two": {}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            assert "is running" in await say(client, "activate", server="one")
            write_settings(tmp_path, {"one": {"tools": ["first", "second"]}, "two": {}})

            said = await asked_until(client, "not those that were approved")
            assert "new: second" in said
            assert "remuda gateway approve one" in said
            assert "is running" in await say(client, "activate", server="two")
            approvals_of(tmp_path).approve("one")
            await asked_until(client, "is running")

    run(story())


def test_a_project_keeps_what_it_learnt_in_its_own_folder(tmp_path: Path) -> None:
    assert state_folder(tmp_path / "remuda.toml").is_relative_to(tmp_path / ".remuda")
