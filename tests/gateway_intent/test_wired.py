"""Ranking and approvals in a gateway that runs, with the official SDK as its client."""

from pathlib import Path

from gateway.kit import run
from gateway.serve_kit import environment, over_stdio, say, write_settings
from remuda.gateway.approvals import Approvals
from remuda.gateway.config import state_folder


def approvals_of(folder: Path) -> Approvals:
    # The server runs with a home of its own; so does what it keeps.
    state = Path(environment(folder)["XDG_STATE_HOME"]) / "remuda" / "gateway"
    (only,) = state.iterdir()
    return Approvals(only)


def test_an_intent_finds_a_server_by_its_tools_once_they_are_known(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}, "two": {"tools": ["transcode_film"]}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            assert "No tool server fits" in await say(client, "resolve_intent", query="transcode the film")
            assert "is running" in await say(client, "activate", server="two")
        async with over_stdio(tmp_path) as client:  # another gateway, which has started nothing yet
            assert "'two' is running" in await say(client, "resolve_intent", query="transcode the film")

    run(story())


def test_a_tool_that_nobody_approved_is_not_shown_and_not_called_until_somebody_does(tmp_path: Path) -> None:
    async def story() -> None:
        write_settings(tmp_path, {"one": {"tools": ["echo"]}})
        async with over_stdio(tmp_path) as client:
            assert "is running" in await say(client, "activate", server="one")
        write_settings(tmp_path, {"one": {"tools": ["echo", "pid"]}})
        async with over_stdio(tmp_path) as client:
            said = await say(client, "activate", server="one")
            assert "remuda gateway approve one" in said
            assert "remuda gateway approve one" in await say(client, "one__pid")
            assert await say(client, "one__echo", text="still here") == "still here"
            assert "one__pid" not in [tool.name for tool in (await client.list_tools()).tools]
        approvals_of(tmp_path).approve("one")
        async with over_stdio(tmp_path) as client:
            assert (await say(client, "one__pid")).isdigit()

    run(story())


def test_a_project_keeps_what_it_learnt_in_its_own_folder(tmp_path: Path) -> None:
    assert state_folder(tmp_path / "remuda.toml").is_relative_to(tmp_path / ".remuda")
