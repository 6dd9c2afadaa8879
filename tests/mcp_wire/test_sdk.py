"""The official SDK as a client of our fronts, in both eras and over both transports: it is the judge of our wire."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ListRootsResult, Root, TextContent, ToolListChangedNotification

from mcp_wire.desk import ToolDesk
from mcp_wire.kit import TOKEN, run, site, until

ERAS = ["legacy", "2026-07-28"]
STDIO = StdioServerParameters(
    command=sys.executable,
    args=["-m", "mcp_wire.desk"],
    env={"PYTHONPATH": str(Path(__file__).parents[1])},
)


@asynccontextmanager
async def over_http(era: str, desk: ToolDesk, **options: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with site(desk) as served, httpx2.AsyncClient(headers=headers, timeout=20) as http:
        transport = streamable_http_client(served.url, http_client=http)
        async with Client(transport, mode=era, **options) as client:
            yield client


@asynccontextmanager
async def over_stdio(era: str, desk: ToolDesk, **options: Any) -> AsyncIterator[Client]:
    async with Client(STDIO, mode=era, **options) as client:
        yield client


TRANSPORTS: list[Any] = [over_http, over_stdio]


def said(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("connect", TRANSPORTS)
@pytest.mark.parametrize("era", [*ERAS, "auto"])
def test_the_sdk_lists_and_calls_tools(connect: Any, era: str) -> None:
    async def story() -> None:
        async with connect(era, ToolDesk()) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "wait", "ask", "count"]
            assert said(await client.call_tool("echo", {"text": "grüß dich\n"})) == "grüß dich\n"
            with pytest.raises(MCPError, match="there is no tool nothing"):
                await client.call_tool("nothing", {})

    run(story())


@pytest.mark.parametrize("connect", TRANSPORTS)
def test_a_client_that_probes_ends_up_in_the_newer_era(connect: Any) -> None:
    async def story() -> None:
        async with connect("auto", ToolDesk()) as client:
            assert client.protocol_version == "2026-07-28"

    run(story())


@pytest.mark.parametrize("connect", TRANSPORTS)
@pytest.mark.parametrize("era", ERAS)
def test_progress_is_told_while_the_call_runs(connect: Any, era: str) -> None:
    async def story() -> None:
        seen: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            seen.append(done)

        async with connect(era, ToolDesk()) as client:
            assert said(await client.call_tool("count", {}, progress_callback=progress)) == "counted"
            await until(lambda: seen == [1, 2, 3])

    run(story())


@pytest.mark.parametrize("connect", TRANSPORTS)
def test_a_client_of_the_older_era_can_be_asked(connect: Any) -> None:
    async def roots(_: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": "file:///here"})])

    async def story() -> None:
        async with connect("legacy", ToolDesk(), list_roots_callback=roots) as client:
            assert said(await client.call_tool("ask", {})) == "file:///here"

    run(story())


def test_a_client_of_the_newer_era_cannot_be_asked_and_the_desk_learns_it() -> None:
    async def story() -> None:
        async with over_http("2026-07-28", ToolDesk()) as client:
            with pytest.raises(MCPError, match="servers never ask"):
                await client.call_tool("ask", {})

    run(story())


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_the_client_gives_up_is_cancelled_at_the_desk(era: str) -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with over_http(era, desk) as client:
            calling = asyncio.ensure_future(client.call_tool("wait", {}))
            await until(lambda: desk.waiting == 1)
            calling.cancel()
            await until(lambda: desk.cancelled == 1)
            assert said(await client.call_tool("echo", {"text": "still here"})) == "still here"

    run(story())


def test_a_session_hears_of_changes_without_listening() -> None:
    async def story() -> None:
        heard: list[object] = []

        async def hear(message: IncomingMessage) -> None:
            heard.append(message)

        desk = ToolDesk()
        async with over_http("legacy", desk, message_handler=hear):
            (client,) = desk.clients
            session = client._outlet  # type: ignore[attr-defined]
            await until(lambda: session.aside is not None)
            desk.change()
            await until(lambda: any(isinstance(each, ToolListChangedNotification) for each in heard))

    run(story())


def test_a_client_of_the_newer_era_hears_of_changes_when_it_listens() -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with over_http("2026-07-28", desk) as client, client.listen(tools_list_changed=True) as listening:
            desk.change()
            assert await anext(listening) == ToolsListChanged()
        await until(lambda: desk.clients == [])

    run(story())


def test_a_client_that_leaves_is_gone_for_the_desk() -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with over_http("legacy", desk) as client:
            await client.list_tools()
            assert len(desk.clients) == 1
        await until(lambda: desk.clients == [])

    run(story())
