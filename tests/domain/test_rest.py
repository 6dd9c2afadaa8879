"""When the model's service asks for patience: the message waits, the session ends, and it is tried again in a while."""

from itertools import pairwise

import pytest

from domain.drive import WORKER, Project, replay
from remuda.domain.commands import (
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    ReportRested,
    ReportSessionEnded,
    ResumeAgent,
    RetireAgent,
    StartRuntime,
    StopAgent,
)
from remuda.domain.due import due
from remuda.domain.effects import EndSession, KeepWork, Rest, StartSession
from remuda.domain.events import (
    ReportIgnored,
    RestBegan,
    RestEnded,
    SessionEnded,
    SessionEndRequested,
    StatusChanged,
    TurnEnded,
    TurnStarted,
)
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import Status
from remuda.domain.reports import CRASHES_ALLOWED, FIRST_REST, LONGEST_REST, SHORTEST_REST
from remuda.domain.state import Outcome

PASSING = [Failure.RATE_LIMITED, Failure.OVERLOADED]


@pytest.fixture
def project() -> Project:
    """A worker in turn 1 with m1, and m2 waiting."""
    project = Project()
    project.ready()
    project.send("first")
    project.send("second")
    return project


def rest_of(project: Project) -> float:
    """How long the agent rests, in seconds, as it was decided just now."""
    return project.agent().rest_until - project.now


def try_again(project: Project) -> None:
    """The rest is over, the old process is gone and the next one is there."""
    project.rested()
    project.ended()
    project.started()


@pytest.mark.parametrize("failure", PASSING)
def test_a_turn_that_is_not_served_gives_its_message_back_ends_its_session_and_begins_a_rest(
    project: Project, failure: Failure
) -> None:
    events = project.limited(failure=failure, retry_after=30)
    assert events == (
        TurnEnded(WORKER, 1, 1, "m1", Outcome.LIMITED, "error", "slow down", failure),
        RestBegan(WORKER, project.now + 30, failure),
        SessionEndRequested(WORKER, 1, failure),
        StatusChanged(WORKER, Status.WORKING, Status.READY, "turn 1 limited"),
    )
    agent = project.agent()
    assert [(message.id, message.attempts) for message in agent.queue] == [("m1", 1), ("m2", 0)]
    assert due(agent) == (EndSession(WORKER, 1, gentle=True), Rest(WORKER, 1, agent.rest_until))
    assert agent.crashes == 0


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        (30.0, 30.0),
        (0.0, SHORTEST_REST),
        (-5.0, SHORTEST_REST),
        (86_400.0, LONGEST_REST),
        (float("inf"), LONGEST_REST),
        (float("-inf"), SHORTEST_REST),
        (float("nan"), FIRST_REST),
        (None, FIRST_REST),
    ],
)
def test_it_rests_as_long_as_it_is_told_to_within_bounds(project: Project, said: float | None, rest: float) -> None:
    project.limited(retry_after=said)
    assert rest_of(project) == rest
    assert replay(project.log) == project.state, "what was decided can be read again"


def test_without_a_word_how_long_each_rest_is_twice_the_last_up_to_a_bound(project: Project) -> None:
    rests = []
    for _ in range(10):
        project.limited()
        rests.append(rest_of(project))
        try_again(project)
    assert rests[0] == FIRST_REST
    assert rests[-1] == LONGEST_REST
    assert all(after == min(2 * before, LONGEST_REST) for before, after in pairwise(rests))


def test_the_thousandth_rest_in_a_row_is_as_long_as_the_longest(project: Project) -> None:
    for _ in range(1100):
        project.limited()
        try_again(project)
    project.limited()
    assert rest_of(project) == LONGEST_REST
    assert project.agent().status is Status.READY


def test_a_turn_that_is_answered_ends_the_doubling(project: Project) -> None:
    for _ in range(3):
        project.limited()
        try_again(project)
    assert project.agent().limits == 3
    project.answered()
    assert project.agent().limits == 0
    project.limited()
    assert rest_of(project) == FIRST_REST


def test_after_the_rest_the_messages_are_given_in_their_order_and_in_a_fresh_session(project: Project) -> None:
    project.limited()
    project.ended()
    assert project.epoch() == 1
    project.rested()
    (start,) = due(project.agent())
    assert isinstance(start, StartSession)
    assert (start.epoch, start.resumes) == (2, "ref-1")
    project.started()
    project.answered()
    project.answered()
    starts = [(event.epoch, event.message_id) for event in project.all(TurnStarted) if isinstance(event, TurnStarted)]
    assert starts == [(1, "m1"), (2, "m1"), (2, "m2")]


def test_a_rest_that_is_over_before_the_old_process_is_gone_waits_for_it(project: Project) -> None:
    project.limited()
    project.rested()
    assert due(project.agent()) == (EndSession(WORKER, 1, gentle=True),)
    project.ended()
    assert [type(effect) for effect in due(project.agent())] == [StartSession]


def test_mail_that_comes_during_a_rest_waits_behind_what_waits(project: Project) -> None:
    project.limited()
    project.ended()
    project.send("third")
    assert project.agent().status is Status.READY
    assert [type(effect) for effect in due(project.agent())] == [Rest]
    project.rested()
    project.started()
    for _ in range(3):
        project.answered()
    answered = [event for event in project.all(TurnEnded) if isinstance(event, TurnEnded) and event.outcome.answered]
    assert [event.message_id for event in answered] == ["m1", "m2", "m3"]


def test_a_rest_ends_once(project: Project) -> None:
    project.limited()
    (ended, *_) = project.rested()
    assert ended == RestEnded(WORKER)
    (again,) = project.rested()
    assert isinstance(again, ReportIgnored)
    assert again.why == "the agent does not rest"


def test_the_end_of_an_earlier_sessions_rest_does_not_end_the_present_one(project: Project) -> None:
    project.limited()
    try_again(project)
    project.limited()
    (event,) = project.do(ReportRested(WORKER, 1))
    assert isinstance(event, ReportIgnored)
    assert project.agent().rest_until


@pytest.mark.parametrize("process_gone", [True, False])
def test_a_rest_survives_a_restart_of_the_runtime(project: Project, process_gone: bool) -> None:
    project.limited(retry_after=100)
    if process_gone:
        project.ended()
    until = project.agent().rest_until
    project.state = replay(project.log)
    project.do(StartRuntime("the next"))
    assert due(project.agent()) == (Rest(WORKER, 1, until),)
    project.send("not yet")
    assert due(project.agent()) == (Rest(WORKER, 1, until),)
    project.rested()
    assert [type(effect) for effect in due(project.agent())] == [StartSession]


def test_a_rest_that_was_over_while_no_runtime_was_up_is_still_owed_its_end(project: Project) -> None:
    """Whoever performs it finds that its time has passed, and says so at once."""
    project.limited(retry_after=10)
    project.ended()
    project.now += 1000
    project.do(StartRuntime("the next"))
    (rest,) = due(project.agent())
    assert isinstance(rest, Rest)
    assert rest.until < project.now
    project.rested()
    project.started()
    assert project.agent().status is Status.WORKING


@pytest.mark.parametrize("ask", [PauseAgent, StopAgent])
def test_one_that_is_paused_while_it_rests_has_its_rest_and_works_when_it_is_resumed(
    project: Project, ask: type[PauseAgent | StopAgent]
) -> None:
    project.limited()
    project.ended()
    project.do(ask(WORKER))
    assert [type(effect) for effect in due(project.agent())] == [Rest, KeepWork]
    project.rested()
    project.kept()
    assert due(project.agent()) == ()
    project.do(ResumeAgent(WORKER))
    assert [type(effect) for effect in due(project.agent())] == [StartSession]


@pytest.mark.parametrize("ask", [PauseAgent, StopAgent])
def test_one_that_is_resumed_before_its_rest_is_over_goes_on_resting(
    project: Project, ask: type[PauseAgent | StopAgent]
) -> None:
    project.limited()
    project.ended()
    project.do(ask(WORKER))
    project.do(ResumeAgent(WORKER))
    assert [type(effect) for effect in due(project.agent())] == [Rest]


def test_one_that_hibernates_while_it_rests_wakes_for_its_mail_when_the_rest_is_over(project: Project) -> None:
    project.limited()
    project.ended()
    project.do(HibernateAgent(WORKER))
    project.send("wake up")
    assert project.agent().status is Status.HIBERNATING
    project.rested()
    assert project.agent().status is Status.STARTING


@pytest.mark.parametrize("end", [RetireAgent(WORKER), ReapAgent(WORKER, "it spins")])
def test_the_dead_do_not_rest(project: Project, end: RetireAgent | ReapAgent) -> None:
    project.limited()
    project.ended()
    project.do(end)
    assert project.agent().rest_until == 0
    project.kept()
    assert due(project.agent()) == ()
    (event,) = project.rested()
    assert isinstance(event, ReportIgnored)


@pytest.mark.parametrize("failure", PASSING)
def test_a_session_that_dies_of_a_limit_has_not_crashed_and_its_agent_rests_before_the_next(
    project: Project, failure: Failure
) -> None:
    for times in range(1, 2 * CRASHES_ALLOWED):
        epoch = project.epoch(WORKER)
        events = project.do(ReportSessionEnded(WORKER, epoch, "slow down", 1, failure))
        assert SessionEnded(WORKER, epoch, "slow down", 1, crashed=False, failure=failure) in events
        agent = project.agent()
        assert (agent.status, agent.crashes, agent.limits) == (Status.READY, 0, times)
        assert [(message.id, message.attempts) for message in agent.queue] == [("m1", times), ("m2", 0)]
        assert due(agent) == (Rest(WORKER, epoch, agent.rest_until),)
        project.rested()
        project.started()
    assert replay(project.log) == project.state


@pytest.mark.parametrize("failure", PASSING)
def test_a_session_that_dies_with_nothing_to_do_has_crashed_whatever_it_says(failure: Failure) -> None:
    project = Project()
    project.ready()
    project.do(ReportSessionEnded(WORKER, 1, "slow down", 1, failure))
    assert (project.agent().crashes, project.agent().rest_until) == (1, 0.0)
