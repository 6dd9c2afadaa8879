"""What every backend promises, whatever program is behind it. A new row of the catalog joins by its name here.

`REQUESTS` says how to make that backend do a thing: the scripted agent by its playbook, the real programs by a script
for the model that they speak to.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.agent_kit import WITHIN, Recorder, alive, allow_all, fresh_mark, launch_in, scripted_options, steps
from live.native_kit import NATIVE, script
from remuda.agents import Launch, Session, Text, TurnResult, Wire
from remuda.agents.catalog import backend
from remuda.agents.strays import marked
from remuda.domain.errors import AgentFault
from remuda.domain.state import Outcome
from remuda.scripted_model import ScriptedModel
from waiting import until

OF_THE_MODEL = {
    "speak": script({"say": "Good morning to you."}),
    "use a tool": script({"shell": "echo hello"}, {"say": "Done."}),
    "work for ever": script({"say": "Working. "}, {"hang": True}),
    "remember": script({"recall": True}),
}
REQUESTS: dict[str, dict[str, str]] = {
    "scripted": {
        "speak": steps({"say": "Good morning to you."}, {"use": {"input": 10, "output": 5, "cost_usd": 0.001}}),
        "use a tool": steps({"run": ["echo", "hello"]}),
        "work for ever": steps({"say": "Working."}, {"hang": True}),
        "remember": steps({"recall": True}),
    },
    **dict.fromkeys(NATIVE, OF_THE_MODEL),
}

Launcher = Callable[..., Launch]
Story = Callable[[Session, Recorder], Awaitable[None]]


@pytest.fixture(params=[pytest.param(each, marks=[pytest.mark.live] * (each in NATIVE)) for each in sorted(REQUESTS)])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def launcher(name: str, folder: Path) -> AsyncIterator[Launcher]:
    """How to start that backend in this folder; with the model that it speaks to, if it speaks to one."""
    if name not in NATIVE:
        yield lambda **fields: launch_in(folder, backend=name, options=scripted_options(folder), **fields)
        return
    async with ScriptedModel() as model:
        yield lambda **fields: NATIVE[name].launch(folder, model.url, **fields)


def tell(name: str, folder: Path, story: Story, **fields: object) -> Recorder:
    """Run a story with a fresh session, and see to it that nothing of it stays."""
    heard = Recorder()

    async def with_session() -> str:
        async with launcher(name, folder) as launch_with:
            launch = launch_with(**fields)
            session = await backend(name)(launch, heard, allow_all)
            try:
                async with asyncio.timeout(WITHIN):
                    await story(session, heard)
            finally:
                await session.end(gentle=False)
            return launch.mark

    assert asyncio.run(with_session()) not in dict(marked()).values()
    return heard


def test_a_turn_completes_and_its_text_and_usage_are_heard(name: str, tmp_path: Path) -> None:
    async def story(session: Session, _: Recorder) -> None:
        assert (await session.prompt(REQUESTS[name]["speak"])).outcome is Outcome.COMPLETED

    heard = tell(name, tmp_path, story)
    assert heard.text()
    assert [call.number for call in heard.calls()] == list(range(1, len(heard.calls()) + 1))
    assert sum(call.usage.output_tokens for call in heard.calls()) > 0


def test_every_meaning_follows_the_line_it_was_read_from(name: str, tmp_path: Path) -> None:
    async def story(session: Session, _: Recorder) -> None:
        await session.prompt(REQUESTS[name]["speak"])

    line = ""
    for update in tell(name, tmp_path, story).updates:
        match update:
            case Wire("agent", line):
                pass
            case Text(text):
                assert json.dumps(text) in line


def test_a_tool_is_heard_when_it_starts_and_when_it_is_done(name: str, tmp_path: Path) -> None:
    async def story(session: Session, _: Recorder) -> None:
        await session.prompt(REQUESTS[name]["use a tool"])

    tools = tell(name, tmp_path, story).tools()
    assert [tool.status for tool in tools] == ["started", "completed"]
    assert len({tool.id for tool in tools}) == 1


def test_a_cancelled_turn_ends_as_failed_and_the_session_lives(name: str, tmp_path: Path) -> None:
    async def story(session: Session, heard: Recorder) -> None:
        turn = asyncio.create_task(session.prompt(REQUESTS[name]["work for ever"]))
        await until(lambda: bool(heard.text()))
        await session.cancel()
        result = await turn
        assert (result.outcome, result.stop_reason) == (Outcome.FAILED, "cancelled")
        assert (await session.prompt(REQUESTS[name]["speak"])).outcome is Outcome.COMPLETED

    tell(name, tmp_path, story)


def test_a_cancel_between_turns_does_nothing(name: str, tmp_path: Path) -> None:
    async def story(session: Session, _: Recorder) -> None:
        await session.cancel()
        assert (await session.prompt(REQUESTS[name]["speak"])).outcome is Outcome.COMPLETED

    tell(name, tmp_path, story)


@pytest.mark.parametrize("gentle", [True, False])
def test_ending_in_the_middle_of_a_turn_is_told_to_who_waits(name: str, tmp_path: Path, gentle: bool) -> None:
    async def story(session: Session, heard: Recorder) -> None:
        turn = asyncio.create_task(session.prompt(REQUESTS[name]["work for ever"]))
        await until(lambda: bool(heard.text()))
        ended = await session.end(gentle=gentle)
        (told,) = await asyncio.gather(turn, return_exceptions=True)
        # Asked first, an agent may still say that it stopped; ended hard, it cannot.
        stopped = gentle and isinstance(told, TurnResult) and told.stop_reason == "cancelled"
        assert stopped or isinstance(told, AgentFault)
        asked_first = [line for line in heard.lines("remuda") if "session/cancel" in line or "interrupt" in line]
        assert len(asked_first) == gentle
        assert (await session.gone()).returncode == ended.returncode

    tell(name, tmp_path, story)


def test_a_session_that_is_over_says_so_and_ends_again_without_harm(name: str, tmp_path: Path) -> None:
    async def story(session: Session, _: Recorder) -> None:
        first = await session.end(gentle=True)
        assert await session.end(gentle=False) == first
        await session.cancel()
        with pytest.raises(AgentFault):
            await session.prompt(REQUESTS[name]["speak"])

    tell(name, tmp_path, story)


def test_killed_from_outside_the_session_is_gone_and_its_turn_a_fault(name: str, tmp_path: Path) -> None:
    async def story(session: Session, heard: Recorder) -> None:
        turn = asyncio.create_task(session.prompt(REQUESTS[name]["work for ever"]))
        await until(lambda: bool(heard.text()))
        pids = [pid for pid, mark in marked() if mark == our_mark]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(AgentFault):
            await turn
        assert (await session.gone()).returncode not in (0, None)
        assert not any(alive(pid) for pid in pids)

    our_mark = fresh_mark()
    tell(name, tmp_path, story, mark=our_mark)


def test_a_conversation_goes_on_in_a_new_process(name: str, tmp_path: Path) -> None:
    refs = []

    async def first(session: Session, _: Recorder) -> None:
        await session.prompt(REQUESTS[name]["speak"])
        refs.append(session.ref)

    async def second(session: Session, _: Recorder) -> None:
        assert session.ref == refs[0]
        await session.prompt(REQUESTS[name]["remember"])

    tell(name, tmp_path, first)
    heard = tell(name, tmp_path, second, resume=refs[0])
    assert "2" in heard.text()
    assert "Good morning" not in heard.text()


def test_two_sessions_do_not_mix(name: str, tmp_path: Path) -> None:
    async def story(session: Session, heard: Recorder) -> None:
        other_heard = Recorder()
        async with launcher(name, tmp_path) as launch_with:
            other = await backend(name)(launch_with(), other_heard, allow_all)
            try:
                await asyncio.gather(*(each.prompt(REQUESTS[name]["speak"]) for each in (session, other)))
                assert session.ref != other.ref
                assert heard.text() == other_heard.text()
            finally:
                await other.end(gentle=False)

    tell(name, tmp_path, story)
