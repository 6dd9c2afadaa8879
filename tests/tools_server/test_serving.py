"""The tools as agents reach them: over HTTP, with the token of their session."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from adapters.git_kit import sh
from remuda.domain.commands import StopAgent
from remuda.domain.events import MessageQueued, ToolUsed, UserNotified
from remuda.domain.state import Sender
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks
from remuda.domain.tools import Tool
from remuda.tools_server.tools import tools_of
from tools_server.kit import House, house


def run(story: Any) -> Any:
    return asyncio.run(story)


async def _running(there: House, role: str) -> tuple[str, str]:
    """An agent with a session, and the session's token."""
    name = await there.spawn(role)
    await there.runtime.send(name, "good morning")
    await there.until(lambda: there.runtime.agent(name).turns == 1)
    return name, there.runtime.world.live[name].token


def test_a_client_of_the_official_kit_sees_the_tools_of_the_tokens_owner(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as there:
            for role in ("worker", "coordinator"):
                _, token = await _running(there, role)
                client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
                async with client, Client(streamable_http_client(there.address, http_client=client)) as session:
                    listed = await session.list_tools()
                assert [each.name for each in listed.tools] == list(tools_of(role))

    run(story())


def test_who_calls_is_known_from_the_token_and_what_it_does_is_kept_under_its_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as there:
            lead = await there.spawn("coordinator")
            worker = await there.spawn("worker", parent=lead)
            said = await there.call(worker, Tool.POST_MESSAGE, text="half of it is done")
            assert lead in said
            queued = [each.event for each in await there.events() if isinstance(each.event, MessageQueued)]
            mail = next(event.message for event in queued if event.agent == lead)
            assert (mail.sender, mail.author, mail.text) == (Sender.AGENT, worker, "half of it is done")
            used = [each.event for each in await there.events() if isinstance(each.event, ToolUsed)]
            assert [(event.agent, event.tool) for event in used] == [(worker, Tool.POST_MESSAGE)]

    run(story())


def test_without_a_coordinator_a_message_is_for_the_user(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as there:
            worker = await there.spawn("worker")
            await there.call(worker, Tool.POST_MESSAGE, text="I wait for the key")
            told = [each.event for each in await there.events() if isinstance(each.event, UserNotified)]
            assert told == [UserNotified(worker, "I wait for the key")]

    run(story())


def test_a_coordinator_plans_and_gets_workers(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as there:
            await there.runtime.submit(AddTasks((NewTask(Brief("the whole", accept=("make test",))),)))
            lead = await there.spawn("coordinator")
            said = await there.call(lead, Tool.SPAWN_WORKER)
            assert said.startswith("worker-1 ")
            assert there.runtime.agent("worker-1").parent == lead
            parts = [{"title": "one", "key": "a"}, {"title": "two", "needs": ["a"]}]
            said = await there.call(lead, Tool.SPLIT_TASK, task="t1", parts=parts)
            assert "t2: one" in said
            tasks = there.runtime.loop.shown.tasks
            assert tasks["t3"].brief.needs == ("t2",)
            assert tasks["t2"].brief.accept == ("make test",), "a part is accepted as its whole is"
            assert "t2" in await there.call(lead, Tool.LIST_TASKS, which="ready")
            assert "idle" in await there.call(lead, Tool.LIST_WORKERS)

    run(story())


def test_every_error_says_what_to_do_next(tmp_path: Path) -> None:
    async def story() -> None:
        async with house(tmp_path) as there:
            lead = await there.spawn("coordinator")
            worker = await there.spawn("worker")
            said = await there.call(lead, Tool.ASSIGN_TASK, task="t9", worker=worker)
            assert Tool.LIST_TASKS in said
            said = await there.call(lead, Tool.RETIRE_WORKER, worker="worker-9")
            assert Tool.LIST_WORKERS in said
            assert worker in said
            said = await there.call(lead, Tool.RETIRE_WORKER, worker=lead)
            assert "only workers" in said
            said = await there.call(worker, Tool.REPORT_IMPLEMENTATION_COMPLETE, summary="done")
            assert "end the turn" in said
            said = await there.call(worker, Tool.REPORT_REVIEW_VERDICT, verdict="MAYBE")
            assert "verdict" in said
            assert "call it again" in said
            said = await there.call(worker, Tool.COMPLETE_STEP, step=1, colour="red")
            assert "colour" in said
            said = await there.call(worker, Tool.SPAWN_WORKER)
            assert "you have no tool" in said
            assert Tool.ESCALATE in said

    run(story())


def test_a_wrong_token_an_old_one_and_none_open_nothing(tmp_path: Path) -> None:
    def post(address: str, token: str | None) -> int:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            with urlopen(Request(address, json.dumps(body).encode(), headers)) as answer:  # noqa: S310
                return int(answer.status)
        except HTTPError as error:
            error.close()
            return error.code

    async def story() -> None:
        async with house(tmp_path) as there:
            name, token = await _running(there, "worker")
            assert await asyncio.to_thread(post, there.address, token) == 400, "known, but it has not begun a session"
            for wrong in (None, "", "x" * 32, token[:-1], "ü"):
                assert await asyncio.to_thread(post, there.address, wrong) == 401
            await there.runtime.submit(StopAgent(name))
            await there.until(lambda: name not in there.runtime.world.live)
            assert await asyncio.to_thread(post, there.address, token) == 401

    run(story())


def test_a_decision_goes_to_the_record_of_the_turn(tmp_path: Path) -> None:
    async def story() -> tuple[str, str]:
        sh(tmp_path, "git", "init", "-q")
        async with house(tmp_path) as there:
            worker = await there.spawn("worker")
            why = {"title": "Keep it in SQLite", "context": "It must survive a kill.", "decision": "SQLite."}
            said = await there.call(worker, Tool.RECORD_DECISION, **why, rationale=["one file"])
        adr = sh(tmp_path, "git", "show", "turn/1:ai/agentic-pipeline/turns/turn-1/adr.md")
        return said, adr

    said, adr = run(story())
    assert "turn 1" in said
    assert "Keep it in SQLite" in adr
    assert "one file" in adr


def test_without_a_repository_a_decision_is_refused_with_another_way(tmp_path: Path) -> None:
    async def story() -> str:
        async with house(tmp_path) as there:
            worker = await there.spawn("worker")
            why = {"title": "Keep it in SQLite", "context": "It must survive a kill.", "decision": "SQLite."}
            return await there.call(worker, Tool.RECORD_DECISION, **why)

    assert "a note on your task" in run(story())
