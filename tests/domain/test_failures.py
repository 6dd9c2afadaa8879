"""Failures told apart: what each calls for, and that it is kept where it happened."""

from typing import get_args

import pytest

from domain.drive import WORKER, Project
from remuda.domain import evolve, reports, task_evolve, task_reports
from remuda.domain.commands import (
    AgentReport,
    ReportError,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportToolCall,
    ReportTurnEnded,
)
from remuda.domain.errors import AgentFault
from remuda.domain.events import AgentEvent, ErrorReported, ReportIgnored, SessionEnded, ToolCalled, TurnEnded
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.lifecycle import Status
from remuda.domain.state import Outcome
from remuda.domain.task_commands import TaskReport
from remuda.domain.task_events import TaskAdded, TaskEvent
from remuda.domain.text import LONGEST_REASON
from remuda.views.task_events import TOLD

PASSING = {Failure.RATE_LIMITED, Failure.OVERLOADED}


@pytest.fixture
def project() -> Project:
    """A worker in turn 1."""
    project = Project()
    project.ready()
    project.send()
    return project


# --- the tables are complete ---


def test_every_failure_has_a_remedy_that_says_what_to_do() -> None:
    assert set(REMEDY) == set(Failure)
    assert all(len(remedy.next_step.split()) >= 3 for remedy in REMEDY.values())
    assert not any(remedy.passes and remedy.hopeless for remedy in REMEDY.values())


def test_only_what_the_models_service_asks_for_passes_and_only_what_a_person_must_mend_is_hopeless() -> None:
    assert {failure for failure, remedy in REMEDY.items() if remedy.passes} == PASSING
    hopeless = {failure for failure, remedy in REMEDY.items() if remedy.hopeless}
    assert hopeless == {Failure.NOT_INSTALLED, Failure.NOT_LOGGED_IN}


def test_every_report_has_a_rule() -> None:
    assert set(reports.RULES) == set(get_args(AgentReport))
    assert set(task_reports.ANSWERS) == set(get_args(TaskReport))


def test_every_event_of_an_agent_has_a_rule() -> None:
    assert set(evolve.RULES) == set(get_args(AgentEvent))
    assert set(task_evolve.RULES) == set(get_args(TaskEvent))
    assert set(TOLD) == {TaskAdded, *get_args(TaskEvent)}


def test_a_fault_of_an_agent_is_a_crash_unless_it_says_what_else() -> None:
    assert AgentFault("it died").failure is Failure.CRASHED
    assert AgentFault("it hangs", Failure.SILENT).failure is Failure.SILENT


# --- turns ---


@pytest.mark.parametrize("failure", sorted(set(Failure) - PASSING))
def test_any_other_failure_answers_the_message_and_is_kept_with_the_turn(project: Project, failure: Failure) -> None:
    place = (WORKER, 1, 1)
    ended, _ = project.do(ReportTurnEnded(*place, Outcome.FAILED, "error", "it went wrong", failure, 60.0))
    assert ended == TurnEnded(WORKER, 1, 1, "m1", Outcome.FAILED, "error", "it went wrong", failure)
    agent = project.agent()
    assert (agent.status, agent.queue, agent.rest_until, agent.limits) == (Status.READY, (), 0.0, 0)
    assert agent.session is not None
    assert agent.session.epoch == 1


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_a_turn_that_the_service_would_not_serve_is_limited_whatever_its_program_calls_it(
    project: Project, outcome: Outcome
) -> None:
    """Several report a failed model call as a turn that ended well."""
    ended, *_ = project.do(ReportTurnEnded(WORKER, 1, 1, outcome, "end_turn", "", Failure.OVERLOADED))
    assert isinstance(ended, TurnEnded)
    assert ended.outcome is Outcome.LIMITED


def test_an_agent_cannot_call_its_turn_limited_by_itself(project: Project) -> None:
    (event,) = project.do(ReportTurnEnded(WORKER, 1, 1, Outcome.LIMITED))
    assert isinstance(event, ReportIgnored)
    assert event.why == "only the runtime may call a turn limited"


# --- sessions ---


def test_a_session_that_could_not_start_or_died_keeps_why(project: Project) -> None:
    ended, *_ = project.do(ReportSessionEnded(WORKER, 1, "it hangs", -9, Failure.SILENT))
    assert ended == SessionEnded(WORKER, 1, "it hangs", -9, crashed=True, failure=Failure.SILENT)
    ended, *_ = project.do(ReportSessionFailed(WORKER, 2, "no key", Failure.NOT_LOGGED_IN))
    assert ended == SessionEnded(WORKER, 2, "no key", None, crashed=True, failure=Failure.NOT_LOGGED_IN)
    assert project.agent().status is Status.FAILED


def test_an_error_that_the_program_gets_over_by_itself_keeps_what_it_was(project: Project) -> None:
    (event,) = project.do(ReportError(WORKER, 1, 1, "tried again", Failure.OVERLOADED))
    assert event == ErrorReported(WORKER, 1, 1, "tried again", Failure.OVERLOADED)
    assert project.agent().rest_until == 0


# --- tools ---


def tool_call(turn: int = 1, epoch: int = 1, result: str = "3 files", call: str = "call-1") -> ReportToolCall:
    return ReportToolCall(WORKER, epoch, turn, call, "bash", True, 1.5, '{"command":"ls"}', result)


def test_a_tool_call_is_recorded_as_it_was(project: Project) -> None:
    assert project.do(tool_call()) == (
        ToolCalled(WORKER, 1, 1, "call-1", "bash", True, 1.5, '{"command":"ls"}', "3 files"),
    )
    assert project.agent().active_at == project.now


def test_what_a_tool_said_is_cut_and_tidied_so_that_it_can_be_written_down(project: Project) -> None:
    (event,) = project.do(tool_call(result="\ud800" + "x" * 10_000, call="\udfff"))
    assert isinstance(event, ToolCalled)
    assert event.result == "?" + "x" * (LONGEST_REASON - 1)
    assert event.id == "?"


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (tool_call(turn=0), "it is of turn 0, the present one is 1"),
        (tool_call(turn=7), "it is of turn 7, the present one is 1"),
        (tool_call(epoch=9), "it is of session 9, the present one is 1"),
    ],
)
def test_a_tool_call_of_another_turn_or_session_is_kept_and_not_applied(
    project: Project, report: ReportToolCall, why: str
) -> None:
    before = project.agent()
    (event,) = project.do(report)
    assert event == ReportIgnored(WORKER, report.epoch, report.turn, "ReportToolCall", why)
    assert project.agent() == before


def test_a_tool_that_is_done_after_its_turn_is_kept_and_not_applied(project: Project) -> None:
    project.answered()
    (event,) = project.do(tool_call())
    assert isinstance(event, ReportIgnored)
    assert event.why == "it is of turn 1, the present one is none"
