"""The hands: rests and answers are done beside what is done to the process, and what is hopeless is not tried again."""

import asyncio
from collections.abc import Callable

import pytest

from domain.drive import WORKER, Project
from domain.owed import whose
from fakes import breathe, within
from remuda.domain.commands import (
    PauseAgent,
    Report,
    ReportAnswerGiven,
    ReportRested,
    ReportSessionEnded,
    ReportSessionFailed,
    RetireAgent,
)
from remuda.domain.effects import Effect, EndSession, GiveAnswer, KeepWork, Rest, RunTurn, StartSession
from remuda.domain.errors import AgentFault, EffectFailed
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.trigger_commands import ReportWorkKept
from scenarios.test_hands import Bench, fails, told


def asked(bench: Bench) -> None:
    """A worker in turn 1 with an answer to its question."""
    bench.project.ready()
    bench.project.send()
    bench.owe()
    bench.project.asks()
    bench.project.says()


def limited(bench: Bench) -> None:
    bench.project.ready()
    bench.project.send()
    bench.project.limited(retry_after=20)


# --- beside ---


def test_an_answer_is_given_while_the_turn_goes_on() -> None:
    async def story(bench: Bench) -> None:
        asked(bench)
        bench.owe()
        await breathe()
        assert bench.kinds() == [RunTurn, GiveAnswer]

    told(story)


def test_a_rest_is_taken_while_the_old_process_is_ended() -> None:
    async def story(bench: Bench) -> None:
        limited(bench)
        bench.owe()
        await breathe()
        assert bench.kinds() == [EndSession, Rest]

    told(story)


def test_an_answer_is_given_once_however_often_it_is_owed() -> None:
    async def story(bench: Bench) -> None:
        asked(bench)
        bench.reports.set_result(ReportAnswerGiven(WORKER, 1, "q1", 1))
        for _ in range(3):
            bench.owe()
            await breathe()
        assert bench.kinds().count(GiveAnswer) == 1

    told(story)


def test_the_same_question_asked_again_is_answered_again_also_when_nobody_looked_in_between() -> None:
    async def story(bench: Bench) -> None:
        asked(bench)
        bench.owe()
        await breathe()
        bench.project.given()
        bench.project.asks()  # in the same batch: the hands see only what is owed after both
        bench.owe()
        await breathe()
        assert [effect.asking for effect in bench.begun if isinstance(effect, GiveAnswer)] == [1, 2]

    told(story)


def test_an_answer_for_which_nobody_waits_any_more_is_left_off() -> None:
    async def story(bench: Bench) -> None:
        left: list[type[Effect]] = []

        async def lingering(effect: Effect) -> Report | None:
            try:
                return await asyncio.shield(bench.reports)
            except asyncio.CancelledError:
                left.append(type(effect))
                raise

        bench.do = lingering
        asked(bench)
        bench.owe()
        await breathe()
        bench.project.do(PauseAgent(WORKER))
        bench.owe()
        await breathe()
        assert set(left) == {RunTurn, GiveAnswer}

    told(story)


def test_the_rest_of_one_that_is_retired_is_left_off() -> None:
    async def story(bench: Bench) -> None:
        limited(bench)
        bench.project.ended()
        bench.owe()
        await breathe()
        bench.project.do(RetireAgent(WORKER))
        bench.project.kept()
        bench.owe()
        bench.reports.set_result(ReportRested(WORKER, 1))
        await breathe()
        assert bench.told == []

    told(story)


def test_work_that_cannot_be_kept_is_tried_again_and_then_given_up_with_the_reason() -> None:
    async def story(bench: Bench) -> None:
        bench.do = fails(4, None)
        bench.project.ready()
        bench.project.do(RetireAgent(WORKER))
        bench.project.ended()
        bench.owe()
        await within(bench.heard.wait())
        assert bench.told == [ReportWorkKept(WORKER, 1, "", "no such program", 0)]
        assert bench.kinds() == [KeepWork] * 4

    told(story)


def test_one_that_rests_holds_nobody_up() -> None:
    async def story(bench: Bench) -> None:
        limited(bench)
        bench.project.ended()
        bench.owe()
        await breathe()
        other = bench.project.spawn()
        bench.owe()
        await breathe()
        assert [(type(effect), whose(effect)) for effect in bench.begun] == [(Rest, WORKER), (StartSession, other)]

    told(story)


@pytest.mark.parametrize(
    ("begin", "report"),
    [(asked, ReportAnswerGiven(WORKER, 1, "q1", 1)), (limited, ReportRested(WORKER, 1))],
)
def test_a_rest_or_an_answer_is_tried_until_it_works(begin: Callable[[Bench], None], report: Report) -> None:
    async def story(bench: Bench) -> None:
        failing = fails(20, report)

        async def do(effect: Effect) -> Report | None:
            return await (bench.wait(effect) if isinstance(effect, RunTurn | EndSession) else failing(effect))

        bench.do = do
        begin(bench)
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 600)
        assert bench.told == [report]

    told(story)


# --- hopeless ---


@pytest.mark.parametrize("failure", list(Failure))
def test_a_start_is_tried_again_unless_that_is_hopeless(failure: Failure) -> None:
    async def story(bench: Bench) -> None:
        async def do(_: Effect) -> Report | None:
            raise AgentFault("it will not", failure)

        bench.do = do
        bench.project.spawn()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.kinds() == [StartSession] * (1 if REMEDY[failure].hopeless else 3)
        assert bench.told == [ReportSessionFailed(WORKER, 1, "it will not", failure)]

    told(story)


def test_an_end_is_never_hopeless() -> None:
    """A process that is there does not go away because nobody is logged in."""

    async def story(bench: Bench) -> None:
        tries = 0

        async def do(_: Effect) -> Report | None:
            nonlocal tries
            tries += 1
            if tries < 5:
                raise AgentFault("no such program", Failure.NOT_INSTALLED)
            return ReportSessionEnded(WORKER, 1, "gone", 0)

        bench.do = do
        bench.project.ready()
        bench.project.do(PauseAgent(WORKER))
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.told == [ReportSessionEnded(WORKER, 1, "gone", 0)]
        assert bench.kinds() == [EndSession] * 5

    told(story)


@pytest.mark.parametrize(
    ("error", "failure"),
    [(AgentFault("nonsense", Failure.MALFORMED), Failure.MALFORMED), (EffectFailed("nonsense"), None)],
)
def test_a_turn_that_is_given_up_tells_what_kind_of_failure_it_was(error: Exception, failure: Failure | None) -> None:
    async def story(bench: Bench) -> None:
        async def do(effect: Effect) -> Report | None:
            if isinstance(effect, RunTurn):
                raise error
            return ReportSessionEnded(WORKER, 1, "killed", -9)

        bench.do = do
        bench.project.ready()
        bench.project.send()
        bench.owe()
        await asyncio.wait_for(bench.heard.wait(), 60)
        assert bench.told == [ReportSessionEnded(WORKER, 1, "nonsense", None, failure)]

    told(story)


def test_what_the_hands_tell_of_a_hopeless_start_fails_the_agent_at_once() -> None:
    project = Project()
    project.spawn()
    project.do(ReportSessionFailed(WORKER, 1, "no key", Failure.NOT_LOGGED_IN))
    assert (project.agent().status, project.agent().why) == ("failed", "no key")
