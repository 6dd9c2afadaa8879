"""Sessions: how they start, how they die, and what a crash costs."""

import pytest

from domain.drive import WORKER, Project
from remuda.domain.commands import HibernateAgent, PauseAgent, ReapAgent, ReportSessionEnded, ResumeAgent
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import SessionEnded, SessionRequested, StatusChanged
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.reports import CRASHES_ALLOWED


@pytest.fixture
def project() -> Project:
    project = Project()
    project.ready()
    return project


def test_an_agent_is_ready_when_its_session_has_started(project: Project) -> None:
    session = project.agent().session
    assert session is not None
    assert (project.agent().status, session.stage, session.ref) == (Status.READY, Stage.STARTED, "ref-1")


def test_a_session_that_cannot_be_started_fails_the_agent_with_the_reason() -> None:
    project = Project()
    project.spawn()
    project.could_not_start()
    assert project.agent().status is Status.FAILED
    assert project.agent().why == "no such program"
    assert project.agent().ended_at == project.now


def test_a_session_that_dies_before_it_started_is_asked_for_again() -> None:
    project = Project()
    project.spawn()
    events = project.ended(detail="killed", code=-9)
    assert events == (SessionEnded(WORKER, 1, "killed", -9, crashed=True), SessionRequested(WORKER, 2, ""))
    assert project.agent().status is Status.STARTING


def test_a_crash_of_an_idle_agent_leaves_it_ready_without_a_process(project: Project) -> None:
    events = project.ended(detail="killed", code=-9)
    assert events == (SessionEnded(WORKER, 1, "killed", -9, crashed=True),)
    assert project.agent().status is Status.READY
    assert project.agent().crashes == 1


def test_a_session_that_was_asked_to_end_has_not_crashed(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    events = project.ended(code=-15)
    assert events == (SessionEnded(WORKER, 1, "it is gone", -15, crashed=False),)
    assert project.agent().crashes == 0


def test_an_agent_whose_sessions_keep_dying_in_its_work_fails_and_says_how_often(project: Project) -> None:
    project.send()
    for _ in range(CRASHES_ALLOWED - 1):
        project.ended(detail="segfault")
        assert project.agent().status is Status.STARTING
        project.started()
    project.ended(detail="segfault")
    assert project.agent().status is Status.FAILED
    assert project.agent().why == f"its session died {CRASHES_ALLOWED} times in a row; the last time: segfault"
    assert [message.id for message in project.agent().queue] == ["m1"]


def test_an_answered_turn_forgives_earlier_crashes(project: Project) -> None:
    project.send()
    for _ in range(CRASHES_ALLOWED - 1):
        project.ended()
        project.started()
    project.answered()
    assert project.agent().crashes == 0
    project.send()
    project.ended()
    assert project.agent().status is Status.STARTING


def test_a_ready_agent_fails_too_when_it_is_the_last_crash_it_may_have() -> None:
    project = Project()
    project.spawn()
    for _ in range(CRASHES_ALLOWED - 1):
        project.ended()
    project.started()
    events = project.ended()
    assert isinstance(events[-1], StatusChanged)
    assert (events[-1].was, events[-1].now) == (Status.READY, Status.FAILED)


def test_a_fresh_session_goes_on_with_the_last_conversation(project: Project) -> None:
    project.send()
    project.ended()
    assert project.log[-2].event == SessionRequested(WORKER, 2, "ref-1")
    project.ended(detail="it never started")
    assert project.log[-1].event == SessionRequested(WORKER, 3, "ref-1")
    project.started(ref="ref-3")
    project.answered()
    project.ended()
    project.send()
    assert project.log[-2].event == SessionRequested(WORKER, 4, "ref-3")


def test_reaping_needs_a_reason(project: Project) -> None:
    with pytest.raises(Invalid, match="reaping needs a reason"):
        project.do(ReapAgent(WORKER, ""))
    assert project.agent().status is Status.READY


def test_a_starting_agent_can_be_reaped_and_its_process_is_still_to_end() -> None:
    project = Project()
    project.spawn()
    project.do(ReapAgent(WORKER, "too many of them"))
    session = project.agent().session
    assert session is not None
    assert (project.agent().status, session.stage) == (Status.REAPED, Stage.ENDING)
    project.do(ReportSessionEnded(WORKER, 1, "ended", 0))
    assert project.agent().status is Status.REAPED


@pytest.mark.parametrize("asleep", [False, True])
def test_what_is_neither_held_nor_resting_cannot_be_resumed(project: Project, asleep: bool) -> None:
    if asleep:
        project.do(HibernateAgent(WORKER))
    else:
        project.send()
    with pytest.raises(Refused, match="cannot be resumed, only what is pending, paused, stopped can; possible: "):
        project.do(ResumeAgent(WORKER))


def test_pausing_twice_is_refused_and_the_first_reason_stands(project: Project) -> None:
    project.do(PauseAgent(WORKER, "lunch"))
    with pytest.raises(Refused, match="worker-1 is paused and cannot become paused; possible: ready, stopped"):
        project.do(PauseAgent(WORKER, "dinner"))
    assert project.agent().why == "lunch"


def test_a_reason_is_kept_with_the_status_and_gone_with_the_next(project: Project) -> None:
    project.do(PauseAgent(WORKER, "lunch"))
    project.do(ResumeAgent(WORKER))
    assert project.agent().why == "resumed"
