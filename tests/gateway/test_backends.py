"""Servers made with the official SDK behind the gateway, over each transport: an independent judge of our client."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.inbound import decode_header_value
from msgspec import Raw

from gateway.kit import child, run, table, until
from remuda.gateway import link_http
from remuda.gateway.link_http import HttpLink, events
from remuda.mcp.eras import RESOURCE_UPDATED as UPDATED
from remuda.mcp.jsonrpc import Request
from remuda.mcp.routing import marked, routing
from remuda.runtime.tool_servers import AuthSettings, ServerSettings, Transport

PROGRAM = str(Path(__file__).parent / "sdk_server.py")


@asynccontextmanager
async def judge(how: str, token: str = "") -> AsyncIterator[ServerSettings]:
    """A server that runs for as long as the block, and how it is reached."""
    if how == "stdio":
        yield ServerSettings(command=(sys.executable, PROGRAM, "stdio"))
        return
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, how, token, stdout=pipe)
    assert process.stdout
    try:
        port = int(await asyncio.wait_for(process.stdout.readline(), 60))
        auth = AuthSettings(type="bearer", token="${env:JUDGE_TOKEN}") if token else None
        kind: Transport = "sse" if how == "sse" else "http"
        url = f"http://127.0.0.1:{port}/{'sse' if how == 'sse' else 'mcp'}"
        yield ServerSettings(url=url, transport=kind, auth=auth)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("how", ["stdio", "http", "sse", "modern"])
def test_a_server_of_the_sdk_can_be_used(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        async with judge(how) as settings, table(tmp_path, {"judge": settings, "one": child()}) as (made, player):
            said = await player.say("activate", server="judge")
            assert "judge__add" in said, said
            answer = await player.call("judge__add", a=2, b=3)
            assert answer["structuredContent"] == {"result": 5}
            token = {"progressToken": 7}
            assert (await player.ask("tools/call", {"name": "judge__steps", "_meta": token}))["content"]
            await until(lambda: player.methods().count("notifications/progress") == 2)
            broken = await player.call("judge__broken")
            assert broken["isError"]
            read = await player.ask("resources/read", {"uri": "judge://motto"})
            assert read["contents"][0]["text"] == "fiat justitia"
            assert made.fleet.running == ("judge",)

    run(story())


@pytest.mark.parametrize("how", ["http", "sse", "modern"])
def test_a_server_elsewhere_knows_us_by_a_token_that_is_never_told(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_TOKEN", "let-me-in-please")

    async def story() -> None:
        async with judge(how, "let-me-in-please") as settings, table(tmp_path, {"judge": settings}) as (_, player):
            assert (await player.call("judge__add", a=1, b=1))["structuredContent"] == {"result": 2}
        monkeypatch.setenv("JUDGE_TOKEN", "a wrong one")
        async with judge(how, "let-me-in-please") as settings, table(tmp_path, {"judge": settings}) as (_, player):
            said = await player.say("activate", server="judge")
            assert "401" in said
            assert "auth of this server" in said
            assert "a wrong one" not in said

    run(story())


def test_a_server_elsewhere_that_dies_and_comes_back_is_greeted_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with judge("http") as settings, table(tmp_path, {"judge": settings}) as (made, player):
            await player.call("judge__add", a=1, b=1)
            connection = made.fleet.servers["judge"].connection
            assert connection is not None
            assert isinstance(connection.link, HttpLink)
            connection.link._session = "a session that it has forgotten"
            await player.call("judge__add", a=1, b=1)
            await until(lambda: not made.fleet.servers["judge"].running)
            assert (await player.call("judge__add", a=2, b=2))["structuredContent"] == {"result": 4}

    run(story())


def test_a_server_elsewhere_of_the_newer_era_tells_of_its_changes(tmp_path: Path) -> None:
    async def story() -> None:
        async with judge("modern") as settings, table(tmp_path, {"judge": settings}) as (_, player):
            await player.say("activate", server="judge")
            await player.ask("resources/subscribe", {"uri": "judge://motto"})

            async def heard(tool: str, done: Callable[[], bool]) -> None:
                """Called until it is heard: nobody says when the server has begun to listen to us."""
                while not done():
                    await player.say(tool)

            await player.say("judge__touch")  # once: whoever has subscribed is told of what comes after
            await until(lambda: UPDATED in player.methods())
            assert player.heard[0]["params"] == {"uri": "judge://motto"}, "how we listen is between us and the server"
            await player.tools()
            lists = player.lists
            await heard("judge__learn", lambda: player.lists > lists)
            assert await player.say("judge__learnt") == "new"

    run(story())


def test_a_call_to_a_server_of_the_newer_era_is_given_up_by_hanging_up(tmp_path: Path) -> None:
    async def story() -> None:
        async with judge("modern") as settings, table(tmp_path, {"judge": settings}) as (made, player):
            await player.say("activate", server="judge")
            player.send({"id": "long", "method": "tools/call", "params": {"name": "judge__dawdle"}})
            connection = made.fleet.servers["judge"].connection
            assert connection is not None
            link = connection.link
            assert isinstance(link, HttpLink)
            await until(lambda: len(link._posts) == 2)  # the other one listens
            player.send({"method": "notifications/cancelled", "params": {"requestId": "long"}})
            await until(lambda: len(link._posts) == 1)
            assert player.dropped == ["long"]
            assert (await player.call("judge__add", a=1, b=1))["structuredContent"] == {"result": 2}

    run(story())


@pytest.mark.parametrize("name", ["plain", "with space", " padded", "ümlaut", "=?base64?eA==?=", "new\nline"])
def test_what_a_request_names_is_read_from_its_header_as_the_sdk_does(name: str) -> None:
    params = json.dumps({"name": name})
    headers = routing(Request(1, "tools/call", Raw(params.encode())), {})
    assert headers["Mcp-Method"] == "tools/call"
    assert decode_header_value(headers["Mcp-Name"]) == name
    assert routing(Request(1, "tools/list"), {}) == {"Mcp-Method": "tools/list"}


def test_arguments_that_a_tool_has_marked_are_repeated_in_headers(tmp_path: Path) -> None:
    async def story() -> None:
        async with judge("modern") as settings, table(tmp_path, {"judge": settings}) as (_, player):
            for region in ("west", "mitten in Köln", " "):
                assert await player.say("judge__go", region=region, fast=True) == f"{region} True"

    run(story())


def test_only_what_the_sdk_takes_for_a_mark_is_one() -> None:
    text = {"type": "string", "x-mcp-header": "Deep"}
    schema = {"properties": {"a": {"properties": {"b": text}}, "c": {"type": "string", "x-mcp-header": "no token"}}}
    assert marked(schema) == {("a", "b"): "Deep"}
    inside: list[Any] = [None, [], {"properties": 5}, {"properties": {"a": 5}}, {"items": {"properties": {"b": text}}}]
    for odd in inside:
        assert marked(odd) == {}
    huge = Raw(b'{"name": "t", "arguments": {"a": {"b": %b}}}' % (b"9" * 5000))
    assert "Mcp-Param-Deep" not in routing(Request(1, "tools/call", huge), {"t": marked(schema)})


def test_a_server_of_the_newer_era_alone_can_be_used(tmp_path: Path) -> None:
    async def story() -> None:
        async with table(tmp_path, {"new": child({"modern": True})}) as (_, player):
            meta = {"progressToken": 1}
            answer = await player.ask("tools/call", {"name": "new__echo", "arguments": {"text": "x"}, "_meta": meta})
            assert answer["content"][0]["text"] == "x"

    run(story())


CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
ENDLESS = b"HTTP/1.1 200 OK\r\n" + b"X-Pad: " + b"x" * 200_000


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (b"", "cannot be reached"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "cannot be reached"),
        (ENDLESS, "cannot be reached"),
        (CLOSED, "refused the handshake"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "text/html, which is no MCP"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", "status 500"),
        (b"HTTP/1.1 302 Go\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n", "has moved to"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: no json\n\n", "ended without an answer"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "sse"])
def test_whatever_a_server_elsewhere_answers_its_fault_is_told(
    tmp_path: Path, kind: Transport, response: bytes, said: str
) -> None:
    async def story() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

        listening = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        odd = ServerSettings(url=f"http://127.0.0.1:{port}/mcp", transport=kind, start_seconds=1.0)
        async with listening, table(tmp_path, {"odd": odd, "good": child()}) as (_, player):
            told = await player.say("activate", server="odd")
            assert "'odd'" in told
            assert said in told or kind == "sse"
            assert await player.say("good__echo", text="fine") == "fine"

    run(story())


def test_a_server_elsewhere_that_takes_nothing_of_what_it_is_sent_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_http, "MOST_AT_ONCE", 50)

    async def story() -> None:
        async with judge("modern") as settings, table(tmp_path, {"judge": settings}) as (_, player):
            await player.say("activate", server="judge")
            calls = [asyncio.create_task(player.say("judge__dawdle")) for _ in range(60)]
            done, others = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert done.pop().result() == "the tool server 'judge' does not read: 50 messages wait for it"
            for each in others:  # some went to the next that was started
                each.cancel()
            assert (await player.call("judge__add", a=1, b=1))["structuredContent"] == {"result": 2}

    run(story())


def test_a_stream_that_sends_us_elsewhere_is_not_followed(tmp_path: Path) -> None:
    async def story() -> None:
        hung_up = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            writer.write(head + b"event: endpoint\ndata: http://evil.example/messages\n\n")
            await reader.read()  # until we hang up
            writer.close()
            await writer.wait_closed()
            hung_up.set()

        listening = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        odd = ServerSettings(url=f"http://127.0.0.1:{port}/sse", transport="sse", start_seconds=5.0)
        async with listening, table(tmp_path, {"odd": odd}) as (_, player):
            assert "evil.example, which is not it" in await player.say("activate", server="odd")
            await asyncio.wait_for(hung_up.wait(), 20)

    run(story())


def test_a_server_that_cannot_be_reached_is_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        gone = ServerSettings(url="http://127.0.0.1:9/mcp")
        async with table(tmp_path, {"gone": gone}) as (_, player):
            said = await player.say("activate", server="gone")
            assert said == "the tool server 'gone' at http://127.0.0.1:9 cannot be reached: Connection refused"

    run(story())


def test_events_are_read_however_they_are_cut() -> None:
    stream = b": hello\r\n\r\nevent: endpoint\r\ndata: /x\r\n\r\ndata: one\ndata: two\n\nid: 5\ndata:three\r\n\r\n"

    async def cut(size: int) -> list[tuple[str, bytes]]:
        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(stream), size):
                yield stream[start : start + size]

        return [event async for event in events(chunks())]

    whole = [("endpoint", b"/x"), ("message", b"one\ntwo"), ("message", b"three")]
    for size in (1, 2, 3, 7, 1000):
        assert asyncio.run(cut(size)) == whole
