"""Silence: an agent that gives no sign of life is given up, and one that waits for a tool or a person is not."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from fakes import breathe
from remuda.agents import Answered, Asked, Retry, Text, ToolCall, TurnResult
from remuda.domain.commands import (
    ReportAnswerGiven,
    ReportQuestion,
    ReportSessionEnded,
    ReportToolCall,
    ReportTurnEnded,
)
from remuda.domain.effects import EndSession, GiveAnswer
from remuda.domain.failure import Failure
from remuda.effects import perform
from scenarios.session_kit import DONE, SILENCE, Acted, Script, Stage
from simulation.virtual import run_virtually, time_passes

WISH = Asked("call-1", "bash", '{"command":"ls"}')


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., None]:
    def play(story: Callable[[Stage], Coroutine[Any, Any, None]], *scripts: Script) -> None:
        async def told() -> None:
            stage = Stage(tmp_path, *scripts)
            await stage.start()
            await story(stage)
            await stage.world.close()

        run_virtually(told())

    return play


async def hang(_: Acted) -> TurnResult:
    await asyncio.Event().wait()
    return DONE


async def given_up(stage: Stage, turn: int = 1) -> ReportSessionEnded:
    """The turn ends without an answer; what is told instead."""
    assert await stage.turn(turn) is None
    await breathe()
    (ended,) = stage.reports(ReportSessionEnded)
    assert isinstance(ended, ReportSessionEnded)
    return ended


Played = Callable[..., None]


def test_an_agent_that_says_nothing_is_given_up_and_killed_and_that_is_told_once_with_evidence(played: Played) -> None:
    async def speak_and_hang(session: Acted) -> TurnResult:
        session.listen(Text("I have begun"))
        return await hang(session)

    async def story(stage: Stage) -> None:
        ended = await given_up(stage)
        assert now() == SILENCE
        assert ended.failure is Failure.SILENT
        assert ended.detail.startswith("it has said and done nothing for 60 s")
        assert ended.detail.endswith("I have begun")
        assert stage.sessions[0].ends[0] is False
        assert stage.world.live == {}

    played(story, speak_and_hang)


def test_whoever_keeps_talking_is_not_silent(played: Played) -> None:
    async def talk(session: Acted) -> TurnResult:
        for _ in range(10):
            await time_passes(SILENCE - 1)
            session.listen(Text("still here"))
        return DONE

    async def story(stage: Stage) -> None:
        assert isinstance(await stage.turn(), ReportTurnEnded)
        assert now() == 10 * (SILENCE - 1)

    played(story, talk)


def test_a_program_that_tries_its_model_again_by_itself_is_not_silent(played: Played) -> None:
    async def retry(session: Acted) -> TurnResult:
        for attempt in range(3):
            await time_passes(SILENCE - 1)
            session.listen(Retry(attempt, Failure.OVERLOADED))
        return DONE

    async def story(stage: Stage) -> None:
        assert isinstance(await stage.turn(), ReportTurnEnded)

    played(story, retry)


def test_a_tool_may_take_as_long_as_it_takes_and_its_time_is_told(played: Played) -> None:
    async def use(session: Acted) -> TurnResult:
        session.listen(ToolCall("call-1", "bash", "started", "{}"))
        await time_passes(5)
        session.listen(ToolCall("call-1", "bash", "started", "{}"))  # some tell again that they are at it
        await time_passes(20 * SILENCE)
        session.listen(ToolCall("call-1", "bash", "completed", "{}", "done"))
        await time_passes(SILENCE - 1)
        return DONE

    async def story(stage: Stage) -> None:
        assert isinstance(await stage.turn(), ReportTurnEnded)
        (call,) = stage.reports(ReportToolCall)
        assert isinstance(call, ReportToolCall)
        assert call.reading is not None
        expected = ReportToolCall("ada", 1, 1, "call-1", "bash", True, 20 * SILENCE + 5, "{}", "done", call.reading)
        assert call == expected

    played(story, use)


def test_after_a_long_tool_its_own_silence_begins(played: Played) -> None:
    async def use(session: Acted) -> TurnResult:
        session.listen(ToolCall("call-1", "bash", "started"))
        await time_passes(3 * SILENCE)
        session.listen(ToolCall("call-1", "bash", "failed", result="no"))
        return await hang(session)

    async def story(stage: Stage) -> None:
        ended = await given_up(stage)
        assert ended.failure is Failure.SILENT
        assert 4 * SILENCE <= now() <= 5 * SILENCE

    played(story, use)


def test_a_tool_of_an_earlier_turn_does_not_excuse_a_later_one(played: Played) -> None:
    async def leave_one(session: Acted) -> TurnResult:
        session.listen(ToolCall("call-1", "bash", "started"))
        return DONE

    async def story(stage: Stage) -> None:
        await stage.turn(1)
        assert (await given_up(stage, 2)).failure is Failure.SILENT
        assert now() == SILENCE

    played(story, leave_one, hang)


# --- questions ---


async def answer(stage: Stage, allow: bool) -> None:
    """As the hands do when a person has answered."""
    asked = stage.reports(ReportQuestion)[-1]
    assert isinstance(asked, ReportQuestion)
    given = await perform(stage.world, GiveAnswer("ada", 1, asked.question_id, 1, allow, "so be it"))
    assert given == ReportAnswerGiven("ada", 1, asked.question_id, 1)


def test_a_person_may_take_as_long_as_they_take_and_then_the_agents_own_silence_begins(played: Played) -> None:
    heard: list[Answered] = []

    async def ask(session: Acted) -> TurnResult:
        heard.append(await session.ask(WISH))
        await time_passes(SILENCE - 1)  # it thinks about the answer
        return DONE

    async def story(stage: Stage) -> None:
        turn = asyncio.ensure_future(stage.turn())
        await time_passes(20 * SILENCE - 1)  # a moment before it is looked at again
        assert not turn.done()
        await answer(stage, allow=True)
        assert isinstance(await turn, ReportTurnEnded)
        assert heard == [Answered(True, "so be it")]

    played(story, ask)


def test_one_that_has_its_answer_and_then_says_nothing_is_given_up(played: Played) -> None:
    async def ask(session: Acted) -> TurnResult:
        await session.ask(WISH)
        return await hang(session)

    async def story(stage: Stage) -> None:
        turn = asyncio.ensure_future(given_up(stage))
        await time_passes(5 * SILENCE)
        await answer(stage, allow=False)
        assert (await turn).failure is Failure.SILENT
        assert 6 * SILENCE <= now() <= 7 * SILENCE

    played(story, ask)


def test_a_question_that_its_own_agent_did_not_wait_for_is_answered_no_and_excuses_no_later_silence(
    played: Played,
) -> None:
    heard: list[Answered] = []

    async def ask_and_leave(session: Acted) -> TurnResult:
        async def ask() -> None:
            heard.append(await session.ask(WISH))

        asyncio.ensure_future(ask())  # noqa: RUF006 - nobody waits for it: that is the point
        await breathe()
        return DONE

    async def story(stage: Stage) -> None:
        assert isinstance(await stage.turn(1), ReportTurnEnded)
        await breathe()
        assert heard == [Answered(False, "the turn has ended")]
        assert (await given_up(stage, 2)).failure is Failure.SILENT
        assert now() == SILENCE

    played(story, ask_and_leave, hang)


def test_nobody_is_asked_outside_of_a_turn(played: Played) -> None:
    async def story(stage: Stage) -> None:
        assert await stage.sessions[0].ask(WISH) == Answered(False, "nobody can be asked outside of a turn")
        assert stage.reports(ReportQuestion) == []

    played(story)


def test_when_a_session_is_ended_nobody_waits_for_its_answers_any_more(played: Played) -> None:
    asking: list[asyncio.Future[Answered]] = []

    async def ask(session: Acted) -> TurnResult:
        asking.append(asyncio.ensure_future(session.ask(WISH)))
        return await hang(session)

    async def story(stage: Stage) -> None:
        turn = asyncio.ensure_future(stage.turn())
        await breathe()
        turn.cancel()
        await asyncio.wait({turn})
        assert not asking[0].done(), "it is not told no when its turn is only cut"
        await perform(stage.world, EndSession("ada", 1, gentle=True))
        await breathe()
        assert asking[0].cancelled()

    played(story, ask)


def test_an_answer_for_a_session_that_is_gone_is_given_to_nobody(played: Played) -> None:
    async def story(stage: Stage) -> None:
        assert await perform(stage.world, GiveAnswer("ada", 7, "q1", 1, True, "")) is None
        assert await perform(stage.world, GiveAnswer("bob", 1, "q1", 1, True, "")) is None

    played(story)
