"""An independent witness: the official SDK on the other end of the pipe, once as client and once as agent."""

# ruff: noqa: ARG002 - the signatures are the SDK's

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import acp
import pytest
from acp.schema import AgentMessageChunk, RequestPermissionResponse, ToolCallProgress, ToolCallStart, UsageUpdate

from adapters.agent_kit import WITHIN, Recorder, allow_all, launch_in, scripted_options, steps
from remuda.agents.acp import AcpSession, open_session
from remuda.agents.catalog import CATALOG, command
from remuda.domain.state import Outcome, Usage
from waiting import until

PARROT = (sys.executable, str(Path(__file__).parent / "sdk_agent.py"))


class Editor:
    """The SDK's client, which has parsed every update by its own schema before we see it."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, *args: Any, **kwargs: Any) -> RequestPermissionResponse:
        raise AssertionError("the scripted agent asks for no permission")

    def text(self) -> str:
        return "".join(each.content.text for each in self.updates if isinstance(each, AgentMessageChunk))


@asynccontextmanager
async def driven_by_the_sdk(folder: Path) -> AsyncIterator[tuple[Any, Editor]]:
    editor = Editor()
    argv = command(CATALOG["scripted"], scripted_options(folder))
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stdin
    connection = acp.connect_to_agent(cast(Any, editor), process.stdin, process.stdout, use_unstable_protocol=True)
    try:
        async with asyncio.timeout(WITHIN):
            welcome = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
            assert welcome.agent_capabilities
            assert welcome.agent_capabilities.load_session
            yield connection, editor
    finally:
        await connection.close()
        process.stdin.close()
        await process.wait()


def test_the_sdks_client_understands_every_update_of_the_scripted_agent(tmp_path: Path) -> None:
    async def story() -> None:
        async with driven_by_the_sdk(tmp_path) as (connection, editor):
            session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
            prompt = steps(
                {"think": "hm"},
                {"say": "hello"},
                {"run": ["echo", "ran"]},
                {"write": {"path": "a.txt", "text": "b"}},
                {"use": {"input": 3, "output": 4, "cost_usd": 0.5}},
            )
            reply = await connection.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
            assert reply.stop_reason == "end_turn"
            assert reply.usage.total_tokens == 7
            await until(lambda: len(editor.updates) == 7)
            assert editor.text() == "hello"
            assert [each.title for each in editor.updates if isinstance(each, ToolCallStart)] == ["echo ran", "write"]
            done = [each.status for each in editor.updates if isinstance(each, ToolCallProgress)]
            assert done == ["completed", "completed"]
            (usage,) = [each for each in editor.updates if isinstance(each, UsageUpdate)]
            assert usage.cost
            assert (usage.used, usage.cost.amount) == (7, 0.5)

    asyncio.run(story())


def test_the_sdks_client_cancels_loads_and_resumes_the_scripted_agent(tmp_path: Path) -> None:
    async def story() -> None:
        async with driven_by_the_sdk(tmp_path) as (connection, editor):
            session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
            turn = asyncio.create_task(
                connection.prompt(
                    session_id=session.session_id, prompt=[acp.text_block(steps({"say": "here"}, {"hang": True}))]
                )
            )
            await until(lambda: editor.text() == "here")
            await connection.cancel(session_id=session.session_id)
            assert (await turn).stop_reason == "cancelled"
        async with driven_by_the_sdk(tmp_path) as (connection, editor):
            await connection.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            await until(lambda: editor.text() == "here")
            await connection.resume_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            with pytest.raises(acp.RequestError, match="no conversation unknown"):
                await connection.load_session(cwd=str(tmp_path), session_id="unknown", mcp_servers=[])

    asyncio.run(story())


@asynccontextmanager
async def parrot(folder: Path, heard: Recorder, **fields: Any) -> AsyncIterator[AcpSession]:
    session = await open_session(PARROT, launch_in(folder, **fields), heard, allow_all)
    try:
        async with asyncio.timeout(WITHIN):
            yield session
    finally:
        await session.end(gentle=True)


def test_our_client_takes_a_turn_with_an_agent_on_the_sdk(tmp_path: Path) -> None:
    heard = Recorder()

    async def story() -> None:
        async with parrot(tmp_path, heard) as session:
            assert session.ref == "parrot-1"
            assert (await session.prompt("tool")).outcome is Outcome.COMPLETED
            failed = await session.prompt("fail")
            assert (failed.outcome, failed.error) == (Outcome.FAILED, "the parrot is asleep")

    asyncio.run(story())
    assert (heard.text(), heard.thoughts()) == ("tool", "hm")
    assert [(tool.name, tool.status, tool.result) for tool in heard.tools()] == [
        ("peck", "started", ""),
        ("peck", "completed", "pecked"),
    ]
    assert [call.usage for call in heard.calls()] == [Usage(4, 2, 1, 0, 70, 100, 250_000_000)]


def test_our_client_cancels_and_loads_with_an_agent_on_the_sdk(tmp_path: Path) -> None:
    heard = Recorder()

    async def story() -> None:
        async with parrot(tmp_path, heard, resume="parrot-0") as session:
            assert session.ref == "parrot-0"
            turn = asyncio.create_task(session.prompt("wait"))
            await until(lambda: heard.text() == "wait")
            await session.cancel()
            assert (await turn).stop_reason == "cancelled"

    asyncio.run(story())
    assert "answer from before" not in heard.text()
