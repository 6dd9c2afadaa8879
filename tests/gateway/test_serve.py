"""`remuda gateway serve` as a program: over stdio and HTTP, in both eras, with real servers behind it."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ListRootsResult

from gateway.kit import run, until
from gateway.serve_kit import START, environment, over_stdio, say, write_settings
from gateway.test_lifecycle import gone
from remuda.gateway.approvals import Approvals

ERAS = ["legacy", "2026-07-28"]


@pytest.mark.parametrize("era", [*ERAS, "auto"])
def test_activate_use_idle_out_and_use_again(tmp_path: Path, era: str) -> None:
    write_settings(tmp_path, {"one": {}, "two": {}}, idle_turns=2)

    async def story() -> None:
        async with over_stdio(tmp_path, era) as client:
            assert len((await client.list_tools()).tools) == 3
            assert "is running" in await say(client, "resolve_intent", query="use one")
            pid = int(await say(client, "one__pid"))
            for _ in range(2):
                await say(client, "two__echo", text="x")
            await until(lambda: gone(pid))
            assert int(await say(client, "one__pid")) != pid
            assert (await client.call_tool("one__fail", {})).is_error

    run(story())


def test_the_banner_tells_the_clock_and_what_is_known_and_stdout_is_the_clients(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})
    done = subprocess.run(
        START,
        cwd=tmp_path,
        env=environment(tmp_path),
        input=b"",
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    said = done.stderr.decode()
    assert "turn 0; a server leaves after 5 idle turns" in said
    assert "servers  one" in said
    assert "known    the tools of 0 of them, 0 tokens" in said


def start(folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*START, *options],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def exchange(process: "subprocess.Popen[bytes]", number: int, method: str, **params: object) -> dict[str, object]:
    assert process.stdin
    assert process.stdout
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    while True:
        answer: dict[str, object] = json.loads(process.stdout.readline())
        if answer.get("id") == number:
            return answer


def child_of(process: "subprocess.Popen[bytes]") -> int:
    """The server that it started, in the middle of a conversation."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    exchange(process, 1, "initialize", **hello)
    answer = exchange(process, 2, "tools/call", name="one__pid")
    return int(answer["result"]["content"][0]["text"])  # type: ignore[index]


def test_it_exits_with_its_servers_when_the_client_closes_the_pipe(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})
    with start(tmp_path) as process:
        pid = child_of(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(10) == 0
    assert gone(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_exits_with_its_servers_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    write_settings(tmp_path, {"one": {}})
    with start(tmp_path) as process:
        pid = child_of(process)
        process.send_signal(number)
        assert process.wait(10) == 0
    assert gone(pid)


class Site(NamedTuple):
    url: str
    process: asyncio.subprocess.Process


@asynccontextmanager
async def http_site(folder: Path) -> AsyncIterator[Site]:
    env = {**environment(folder), "REMUDA_GATEWAY_TOKEN": "sesame"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*START, "--http", cwd=folder, env=env, stderr=pipe)
    assert process.stderr
    try:
        banner = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        yield Site(banner.split()[-1], process)
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 20)


@asynccontextmanager
async def over_http(site: Site, era: str) -> AsyncIterator[Client]:
    http = httpx2.AsyncClient(headers={"Authorization": "Bearer sesame"}, timeout=30)
    async with http, Client(streamable_http_client(site.url, http_client=http), mode=era) as client:
        yield client


@pytest.mark.parametrize("era", ERAS)
def test_over_http_with_the_token_and_not_without(tmp_path: Path, era: str) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        async with http_site(tmp_path) as site:
            async with over_http(site, era) as client:
                assert await say(client, "one__echo", text="hello") == "hello"
            async with httpx2.AsyncClient() as stranger:
                assert (await stranger.post(site.url, json={})).status_code == 401

    run(story())


def test_over_http_a_client_of_the_newer_era_hears_that_its_list_grew(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        async with http_site(tmp_path) as site, over_http(site, "2026-07-28") as client:
            await client.list_tools()
            async with client.listen(tools_list_changed=True) as listening:
                await say(client, "activate", server="one")
                assert await anext(listening) == ToolsListChanged()
            assert "one__echo" in [tool.name for tool in (await client.list_tools()).tools]

    run(story())


async def roots(context: ClientRequestContext) -> ListRootsResult:
    return ListRootsResult.model_validate({"roots": [{"uri": "file:///here"}]})


@pytest.mark.parametrize("era", ERAS)
def test_a_server_may_ask_clients_of_both_eras_in_the_middle_of_a_call(tmp_path: Path, era: str) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        async with over_stdio(tmp_path, era, list_roots_callback=roots) as client:
            for _ in range(2):
                assert "file:///here" in await say(client, "one__ask", method="roots/list")
            assert "nobody here can answer" in await say(client, "one__ask", method="elicitation/create")
            assert await say(client, "one__echo", text="still here") == "still here"

    run(story())


def test_over_http_a_server_may_ask_a_client_of_the_newer_era(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer sesame"}, timeout=30)
        async with http_site(tmp_path) as site, http:
            transport = streamable_http_client(site.url, http_client=http)
            async with Client(transport, mode="2026-07-28", list_roots_callback=roots) as client:
                assert "file:///here" in await say(client, "one__ask", method="roots/list")

    run(story())


def test_new_settings_are_taken_over_while_it_runs_and_bad_ones_are_not(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}, "two": {}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            kept, changed = int(await say(client, "one__pid")), int(await say(client, "two__pid"))
            write_settings(tmp_path, {"one": {}, "two": {"page": 5}, "three": {}})
            await until(lambda: gone(changed))
            assert await say(client, "three__echo", text="new") == "new"
            assert int(await say(client, "one__pid")) == kept
            assert int(await say(client, "two__pid")) != changed
            (tmp_path / "gateway.toml").write_text("[gateway]\nno_such_key = 1\n")
            assert int(await say(client, "one__pid")) == kept

    run(story())


def test_what_is_approved_while_it_runs_can_be_called_at_once(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {"tools": ["echo"]}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            await say(client, "activate", server="one")
        write_settings(tmp_path, {"one": {"tools": ["echo", "pid"], "description": "really does"}})
        async with over_stdio(tmp_path) as client:
            told = await say(client, "activate", server="one")
            assert "It has no tools that you can call." in told
            assert "Not usable: one__echo, one__pid: not as it was approved; a person has to look at it" in told
            (state,) = (tmp_path / "state" / "remuda" / "gateway").iterdir()
            assert await say(client, "one__pid") == (
                "one__pid cannot be called: not as it was approved; a person has to look at it and say "
                "`remuda gateway approve one`"
            )
            Approvals(state).approve("one")
            while "approve" in await say(client, "one__echo", text="fine"):
                pass
            assert await say(client, "one__echo", text="fine") == "fine"

    run(story())


def test_a_pinned_server_that_was_seen_before_is_listed_from_the_start_and_started_by_a_call(tmp_path: Path) -> None:
    path = write_settings(tmp_path, {"one": {"tools": ["pid"]}, "two": {"tools": ["pid"]}})
    path.write_text(path.read_text().replace("[gateway.servers.one]", "[gateway.servers.one]\npinned = true"))

    async def story() -> None:
        listed: list[set[str]] = []
        for _ in range(2):
            async with over_stdio(tmp_path) as client:
                listed.append({tool.name for tool in (await client.list_tools()).tools if "__" in tool.name})
                for name in ("one", "two"):
                    assert await say(client, f"{name}__pid")
        assert listed == [set(), {"one__pid"}]

    run(story())


def test_what_happened_is_on_the_disk_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    write_settings(tmp_path, {"one": {}})

    async def story() -> None:
        async with over_stdio(tmp_path) as client:
            await say(client, "one__echo", text="a secret of the user")

    run(story())
    (state,) = (tmp_path / "state" / "remuda" / "gateway").iterdir()
    stats = json.loads((state / "stats" / "last.json").read_bytes())
    assert (stats["turn"], stats["servers"]["one"]["calls"], stats["servers"]["one"]["starts"]) == (1, 1, 1)
    assert stats["servers"]["one"]["tokens"] > 300
    events = (state / "events.jsonl").read_text()
    assert [json.loads(line)["event"] for line in events.splitlines()] == [
        "ServerStarted",
        "ServerCalled",
        "ServerLeft",
    ]
    assert "secret" not in events + json.dumps(stats)
    assert os.stat(state / "events.jsonl").st_mode & 0o077 == 0
