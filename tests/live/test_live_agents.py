"""Every real agent, through the same stories, on the scripted model. A new row of the catalog joins by its name."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder
from live.http_tools import TOKEN, http_tools
from live.kit import NAMES, PINGER, WITHIN, Stage, counted, script, told
from remuda.agents import Answered, Asked, McpServer, Session
from remuda.agents.catalog import CATALOG
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from remuda.scripted_model import ScriptedModel
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]

# Not in a time that a test can wait for: qwen tries a failed call again for minutes, and its settings do not end that.
fails_soon = pytest.mark.parametrize("name", [*(each for each in NAMES if each != "qwen"), "copilot"], indirect=True)
# In ACP it does not start tool servers, it only calls those at an address.
with_copilot = pytest.mark.parametrize("name", [*NAMES, "copilot"], indirect=True)

Story = Callable[[Stage], Awaitable[None]]


def tell(name: str, folder: Path, story: Story) -> None:
    async def whole() -> None:
        async with asyncio.timeout(WITHIN), ScriptedModel() as model:
            await story(Stage(name, folder, model))

    asyncio.run(whole())


FIVE_CALLS = script(
    {"say": "First a command."},
    {"use": {"input": 1000, "cached": 100, "output": 11}},
    {"shell": "echo shell-ok > shell.txt"},
    {"use": {"input": 2000, "cached": 1000, "output": 22}},
    {"write": {"path": "notes.txt", "text": "alpha\nbeta\n"}},
    {"use": {"input": 3000, "cached": 2000, "output": 33}},
    {"tool": {"name": "ping", "arguments": {"text": "are you there"}}},
    {"use": {"input": 4000, "cached": 3000, "output": 44}},
    {"read": "notes.txt"},
    {"use": {"input": 5000, "cached": 4000, "output": 55}},
    {"say": "All is done."},
)


def test_it_runs_a_command_writes_a_file_and_calls_a_tool_server_and_every_token_is_counted(
    name: str, tmp_path: Path
) -> None:
    async def story(stage: Stage) -> None:
        heard = Recorder()
        async with stage.session(heard, mcp_servers=(PINGER,)) as session:
            result = await session.prompt(FIVE_CALLS)
        assert (result.outcome, result.error) == (Outcome.COMPLETED, "")
        assert "All is done." in heard.text()
        assert (stage.work / "shell.txt").read_text() == "shell-ok\n"
        assert (stage.work / "notes.txt").read_text() == "alpha\nbeta\n"
        done = [each for each in heard.tools() if each.status == "completed"]
        assert len(done) == 4
        assert "pong: are you there" in "".join(each.result for each in done)
        assert {each.id for each in done} <= {each.id for each in heard.tools() if each.status == "started"}
        scripted = [each for each in stage.model.calls if not each.side]
        assert len(scripted) == 5
        check_count(name, heard, stage)

    tell(name, tmp_path, story)


@with_copilot
def test_a_tool_server_at_an_address_is_called_with_its_header_which_nobody_else_sees(
    name: str, tmp_path: Path
) -> None:
    async def story(stage: Stage) -> None:
        heard = Recorder()
        async with http_tools() as tools:
            server = McpServer("pinger", url=tools.url, headers=(("Authorization", f"Bearer {TOKEN}"),))
            async with stage.session(heard, mcp_servers=(server,)) as session:
                if name == "qwen":  # it looks for tools beside its first turn, and would not have them yet
                    await until(lambda: "tools/list" in tools.called)
                call = {"tool": {"name": "ping", "arguments": {"text": "are you there"}}}
                result = await session.prompt(script(call, {"say": "All is done."}))
                seen = [*stage.command_lines(), *heard.lines("remuda"), *heard.lines("agent")]
        assert result.outcome is Outcome.COMPLETED, result.error
        (done,) = [each for each in heard.tools() if each.status == "completed"]
        assert "pong: are you there" in done.result
        assert (tools.called.count("tools/call"), tools.refused) == (1, 0)
        assert len(seen) > 3
        assert not [line for line in seen if TOKEN in line]

    tell(name, tmp_path, story)


def check_count(name: str, heard: Recorder, stage: Stage) -> None:
    """Five calls add up to the token, or the catalog says what the agent cannot tell."""
    real, seen = told(stage.model.calls), counted(heard)
    counting = CATALOG[name].counting
    assert counting.exact
    assert seen.output_tokens == real.output_tokens == 165
    assert seen.input_tokens + seen.cache_read_tokens == real.input_tokens + real.cache_read_tokens == 15_000
    if CATALOG[name].can.cache:
        assert seen.cache_read_tokens == real.cache_read_tokens == 10_100
    else:
        assert seen.cache_read_tokens == 0


@with_copilot
def test_killed_it_goes_on_in_a_new_process_and_a_fork_goes_its_own_way(name: str, tmp_path: Path) -> None:
    recall = script({"recall": True})

    async def story(stage: Stage) -> None:
        async with stage.session(Recorder()) as session:
            assert (await session.prompt(script({"say": "I am here."}))).outcome is Outcome.COMPLETED
            ref = session.ref
            for pid in stage.pids():
                os.kill(pid, signal.SIGKILL)
            await session.gone()
        stage.grow_old()
        heard = Recorder()
        async with stage.session(heard, resume=ref) as session:
            assert session.ref == ref
            assert (await session.prompt(recall)).outcome is Outcome.COMPLETED
        assert "I remember 2 scripted prompts" in heard.text()
        assert "I am here." not in heard.text()
        assert counted(heard).output_tokens == 34
        if CATALOG[name].can.fork:
            await fork(stage, ref)

    async def fork(stage: Stage, ref: str) -> None:
        heard = Recorder()
        async with stage.session(heard, resume=ref, fork=True) as session:
            assert session.ref != ref
            assert (await session.prompt(recall)).outcome is Outcome.COMPLETED
        assert "I remember 3 scripted prompts" in heard.text()
        assert counted(heard).output_tokens == 34

    tell(name, tmp_path, story)


FAULTS: tuple[tuple[dict[str, object], Failure], ...] = (
    ({"error": 500, "message": "something broke", "retry_after": 0}, Failure.MODEL_ERROR),
    ({"error": 429, "message": "slow down", "retry_after": 0}, Failure.RATE_LIMITED),
    ({"error": 401, "message": "the key is not valid"}, Failure.NOT_LOGGED_IN),
)
FULL: tuple[dict[str, object], Failure] = ({"context_exceeded": True}, Failure.CONTEXT_EXCEEDED)


@fails_soon
def test_a_failed_model_call_is_a_failed_turn_that_tells_why_and_a_busy_model_is_asked_again(
    name: str, tmp_path: Path
) -> None:
    busy_once = script({"error": 429, "message": "slow down", "retry_after": 0, "times": 1}, {"say": "Here I am."})

    async def story(stage: Stage) -> None:
        heard = Recorder()
        async with stage.session(heard) as session:
            assert (await session.prompt(busy_once)).outcome is Outcome.COMPLETED
            assert "Here I am." in heard.text()
            for fault in FAULTS:
                await fail(session, *fault)
        # By itself, because an agent that makes room then sends the whole conversation again, and other faults with it.
        async with stage.session(heard) as session:
            await fail(session, *FULL)
        # A failed call is not counted; agents that make room in a full context do use the model for it.
        assert counted(heard) == told(stage.model.calls)

    async def fail(session: Session, fault: dict[str, object], failure: Failure) -> None:
        result = await session.prompt(script(fault))
        assert (result.outcome, result.failure) == (Outcome.FAILED, failure), result
        assert result.error

    tell(name, tmp_path, story)


@with_copilot
def test_interrupted_in_the_middle_it_lives_on_and_a_tool_that_is_refused_is_not_used(
    name: str, tmp_path: Path
) -> None:
    async def refuse_writing(asked: Asked) -> Answered:
        questions.append(asked)
        return Answered(allow=False, why="not this file")

    questions: list[Asked] = []

    async def story(stage: Stage) -> None:
        heard = Recorder()
        async with stage.session(heard, refuse_writing) as session:
            turn = asyncio.create_task(session.prompt(script({"slow": 0.05}, {"say": "word ", "repeat": 1000})))
            await until(lambda: "word" in heard.text())
            await session.cancel()
            result = await turn
            assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.CANCELLED)
            await session.prompt(script({"write": {"path": "no.txt", "text": "no"}}, {"say": "It was refused."}))
            assert not (stage.work / "no.txt").exists()
            assert len(questions) == 1
            assert [each.status for each in heard.tools()][:1] == ["started"]
            assert "completed" not in [each.status for each in heard.tools()]
            assert (await session.prompt(script({"say": "Still here."}))).outcome is Outcome.COMPLETED
            assert "Still here." in heard.text()

    tell(name, tmp_path, story)


@pytest.mark.parametrize("name", ["qwen"], indirect=True)
def test_qwen_too_asks_a_busy_model_again_and_tells_of_a_key_that_is_not_valid(name: str, tmp_path: Path) -> None:
    busy_once = script({"error": 429, "retry_after": 0, "times": 1}, {"say": "Here I am."})

    async def story(stage: Stage) -> None:
        heard = Recorder()
        async with stage.session(heard) as session:
            assert (await session.prompt(busy_once)).outcome is Outcome.COMPLETED
            result = await session.prompt(script({"error": 401, "message": "the key is not valid"}))
        assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.NOT_LOGGED_IN), result
        assert counted(heard) == told(stage.model.calls)

    tell(name, tmp_path, story)
