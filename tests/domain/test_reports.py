"""The fence: a report of another session or turn is kept, never applied."""

import pytest

from domain.drive import WORKER, Project
from remuda.domain.commands import (
    PauseAgent,
    Report,
    ReportError,
    ReportOutput,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
)
from remuda.domain.events import ErrorReported, OutputAppended, ReportIgnored
from remuda.domain.lifecycle import Status
from remuda.domain.state import Outcome


@pytest.fixture
def project() -> Project:
    """A worker in its second session, in turn 2."""
    project = Project()
    project.ready()
    project.send()
    project.ended()
    project.started()
    return project


def ignored(project: Project, report: Report) -> str:
    """Why it was ignored; nothing else about the agent may have changed."""
    before = project.agent()
    (event,) = project.do(report)
    assert isinstance(event, ReportIgnored)
    assert event.report == type(report).__name__
    assert project.agent() == before
    return event.why


@pytest.mark.parametrize(
    "report",
    [
        ReportSessionStarted(WORKER, 1, "ref"),
        ReportSessionEnded(WORKER, 1, "gone"),
        ReportSessionFailed(WORKER, 1, "gone"),
        ReportTurnEnded(WORKER, 1, 2, Outcome.COMPLETED),
        ReportOutput(WORKER, 1, 2, 0, 1, 1),
        ReportError(WORKER, 1, 2, "oops"),
    ],
)
def test_a_report_of_an_earlier_session_is_recorded_and_not_applied(project: Project, report: Report) -> None:
    assert ignored(project, report) == "it is of session 1, the present one is 2"


@pytest.mark.parametrize(
    "report",
    [
        ReportTurnEnded(WORKER, 2, 1, Outcome.COMPLETED),
        ReportOutput(WORKER, 2, 1, 0, 1, 1),
        ReportError(WORKER, 2, 1, "oops"),
    ],
)
def test_a_report_of_an_earlier_turn_is_recorded_and_not_applied(project: Project, report: Report) -> None:
    assert ignored(project, report) == "it is of turn 1, the present one is 2"


def test_a_turn_that_is_reported_ended_twice_ends_once(project: Project) -> None:
    project.answered()
    assert ignored(project, ReportTurnEnded(WORKER, 2, 2, Outcome.COMPLETED)) == (
        "it is of turn 2, the present one is none"
    )
    assert project.agent().turns == 2


def test_a_session_that_is_reported_started_twice_starts_once(project: Project) -> None:
    assert ignored(project, ReportSessionStarted(WORKER, 2, "other")) == "session 2 is started"


def test_a_session_that_runs_cannot_be_reported_as_never_started(project: Project) -> None:
    assert ignored(project, ReportSessionFailed(WORKER, 2, "no such program")) == "session 2 is started"


def test_a_session_that_is_reported_ended_twice_ends_once(project: Project) -> None:
    project.do(PauseAgent(WORKER))
    project.ended()
    assert ignored(project, ReportSessionEnded(WORKER, 2, "gone")) == "session 2 is ended"


def test_a_report_of_an_agent_without_any_session_is_recorded() -> None:
    project = Project()
    project.spawn(hold=True)
    assert ignored(project, ReportSessionStarted(WORKER, 1, "ref")) == "it is of session 1, the present one is none"


@pytest.mark.parametrize("outcome", [Outcome.INTERRUPTED, Outcome.LOST])
def test_an_agent_cannot_say_that_its_turn_was_cut(project: Project, outcome: Outcome) -> None:
    assert ignored(project, ReportTurnEnded(WORKER, 2, 2, outcome)) == f"only the runtime may call a turn {outcome}"
    assert project.agent().status is Status.WORKING


def test_output_is_recorded_by_where_it_stands_not_by_what_it_says(project: Project) -> None:
    assert project.do(ReportOutput(WORKER, 2, 2, 4096, 80, 3)) == (OutputAppended(WORKER, 2, 2, 4096, 80, 3),)
    assert project.agent().active_at == project.now


def test_output_between_turns_belongs_to_the_session(project: Project) -> None:
    project.answered()
    assert project.do(ReportOutput(WORKER, 2, 0, 0, 80, 3)) == (OutputAppended(WORKER, 2, 0, 0, 80, 3),)
    project.do(PauseAgent(WORKER))
    project.ended()
    assert ignored(project, ReportOutput(WORKER, 2, 0, 80, 1, 1)) == "session 2 is ended"


def test_an_error_that_did_not_end_the_turn_is_told_and_changes_nothing_else(project: Project) -> None:
    assert project.do(ReportError(WORKER, 2, 2, "a tool failed")) == (ErrorReported(WORKER, 2, 2, "a tool failed"),)
    assert project.agent().status is Status.WORKING
