"""Real agents, the gateway, and real tool servers behind it: found by intent, used, idled out, used again.

Each client in the way of listing that suits it: Claude and OpenCode see the new tools in their very next request to the
model, because the gateway waits for them to have asked; Gemini sees them with the next prompt, and Codex never: both
are told them in words, and call by name until then.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.agent_kit import Recorder
from live.kit import WITHIN, Stage, script
from live.native_kit import NOT_TESTED, find_cli
from remuda.agents import McpServer
from remuda.domain.state import Outcome
from remuda.gateway.config import state_folder
from remuda.gateway.writing import add_servers
from remuda.runtime.tool_servers import ServerSettings
from remuda.scripted_model import ScriptedModel
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]

HOME = Path(__file__).parents[2] / ".tool_servers"
CLIENTS = ("claude", "opencode", "gemini", "codex")
BY_NAME = ("codex", "gemini")  # within a prompt they do not see the tools of a server that was started in it
LISTED = ("claude", "opencode", "gemini")


def servers(work: Path) -> dict[str, ServerSettings]:
    """Seven programs that others wrote, with what a user would say of them."""
    npm, pypi = HOME / "npm" / "node_modules" / ".bin", HOME / "venv" / "bin"
    path = {"PATH": os.environ["PATH"]}
    return {
        "filesystem": _server(npm / "mcp-server-filesystem", str(work), about="Files and folders", **path),
        "memory": _server(npm / "mcp-server-memory", about="A knowledge graph that remembers", **path),
        "thinking": _server(npm / "mcp-server-sequential-thinking", about="Sequential thinking", **path),
        "everything": _server(npm / "mcp-server-everything", about="Every feature of the protocol", **path),
        "git": _server(pypi / "mcp-server-git", about="Git repositories", **path),
        "time": _server(pypi / "mcp-server-time", about="Time and timezones", **path),
        "fetch": _server(pypi / "mcp-server-fetch", about="Web pages", **path),
    }


def _server(program: Path, *arguments: str, about: str, **env: str) -> ServerSettings:
    return ServerSettings(command=(str(program), *arguments), env=env, description=about, start_seconds=120)


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    client = str(request.param)
    find_cli(client)
    if not (HOME / ".ready").exists():
        why = f"{NOT_TESTED}: the tool servers are not installed; `make servers` installs them"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return client


def use(client: str, tool: str, **arguments: Any) -> Mapping[str, object]:
    if client in BY_NAME:
        return {"tool": {"name": "call_tool", "arguments": {"name": tool, "arguments": arguments}}}
    return {"tool": {"name": tool, "arguments": arguments}}


def want(query: str) -> Mapping[str, object]:
    return {"tool": {"name": "resolve_intent", "arguments": {"query": query}}}


def start(server: str) -> Mapping[str, object]:
    return {"tool": {"name": "activate", "arguments": {"server": server}}}


def happened(state: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for path in sorted(state.rglob("events.jsonl")) for line in path.read_text().splitlines()]
    return [each for each in lines if each["event"] != "ServerCalled"]


def of(server: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in events if each["server"] == server]


def test_a_server_is_found_used_idled_out_and_used_again_with_six_others_behind_the_gateway(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = tmp_path / "gateway.toml"

    async def story(stage: Stage) -> None:
        config.write_text("[gateway]\nidle_turns = 2\n")
        add_servers(config, servers(stage.work))
        heard = Recorder()
        async with stage.session(heard, mcp_servers=(gateway_of(config, tmp_path),)) as session:
            for number, steps in enumerate(turns(name, stage.work)):
                result = await session.prompt(script(*steps, {"say": f"Turn {number} is done."}))
                assert (result.outcome, result.error) == (Outcome.COMPLETED, ""), heard.text()
            # Written down within a second, before the client ends it in whatever way it ends its tool servers.
            await until(lambda: len(of("time", happened(state_folder(config)))) > 2)
        results = [each.result for each in heard.tools() if each.status == "completed"]
        # Some clients show what is structured as they like.
        said = "\n".join(results).replace(" ", "").replace("\\", "")
        assert said.count('"timezone":"Etc/UTC"') == 2, results
        assert "Onbranch" in said
        assert "notes.txt" in said
        assert "Echo:hello" in said
        assert "thoughtNumber" in said
        assert '"entities":[]' in said

    async def whole() -> None:
        async with asyncio.timeout(WITHIN), ScriptedModel() as model:
            await story(Stage(name, tmp_path, model))

    prepare(tmp_path / "work")
    asyncio.run(whole())
    check_lifecycle(state_folder(config))


def gateway_of(config: Path, folder: Path) -> McpServer:
    command = (sys.executable, "-P", "-m", "remuda.cli.entry", "gateway", "serve", "--config", str(config))
    return McpServer(
        "gateway", command, env=(("XDG_STATE_HOME", str(folder / "state")), ("HOME", str(folder / "home")))
    )


def prepare(work: Path) -> None:
    work.mkdir()
    (work / "notes.txt").write_text("alpha\n")
    for arguments in (["init", "-q", "."], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", "-C", str(work), *arguments], check=True)


def turns(client: str, work: Path) -> list[list[Mapping[str, object]]]:
    utc = use(client, "time__get_current_time", timezone="Etc/UTC")
    status = use(client, "git__git_status", repo_path=str(work))
    thought = {"thought": "hm", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    return [
        [want("tell the current time in a timezone"), utc],
        [want("status of the git repository"), status],
        [start("filesystem"), use(client, "filesystem__list_directory", path=str(work)), status],
        [start("memory"), use(client, "memory__read_graph"), status],
        [start("everything"), use(client, "everything__echo", message="hello")],
        [start("thinking"), use(client, "thinking__sequentialthinking", **thought)],
        [use("", "time__get_current_time", timezone="Etc/UTC") if client in LISTED else utc],
    ]


def check_lifecycle(state: Path) -> None:
    """What the gateway wrote down: `time` came, left after two idle turns, and came back by itself."""
    events = happened(state)
    of_time = of("time", events)
    assert [each["event"] for each in of_time[:3]] == ["ServerStarted", "ServerLeft", "ServerStarted"]
    assert (of_time[1]["why"], of_time[1]["idle_turns"] >= 2) == ("idle", True)
    started = {each["server"] for each in events if each["event"] == "ServerStarted"}
    assert started == {"filesystem", "memory", "thinking", "everything", "git", "time"}
    assert {each["event"] for each in events} == {"ServerStarted", "ServerLeft"}
