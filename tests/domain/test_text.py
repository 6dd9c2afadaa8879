"""What people may write is checked and explained; what the world says is tidied, because it cannot be asked again."""

from collections.abc import Callable

import pytest

from domain.drive import WORKER, Project, replay
from remuda.domain.commands import (
    Command,
    PauseAgent,
    ReapAgent,
    ReportError,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
    RetireAgent,
    SendMessage,
    SpawnAgent,
)
from remuda.domain.errors import Invalid
from remuda.domain.events import ErrorReported
from remuda.domain.state import Outcome, Sender
from remuda.domain.text import LONGEST_REASON, LONGEST_TEXT

HALF = "half of a pair: \ud83d"


@pytest.fixture
def project() -> Project:
    project = Project()
    project.ready()
    project.send()
    return project


def message(text: str) -> SendMessage:
    return SendMessage(WORKER, "m", Sender.USER, "user", text)


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_an_empty_message_is_invalid(project: Project, text: str) -> None:
    with pytest.raises(Invalid, match="a message cannot be empty"):
        project.do(message(text))


def test_the_longest_text_is_taken_and_one_character_more_is_not(project: Project) -> None:
    project.do(message("x" * LONGEST_TEXT))
    with pytest.raises(Invalid, match=f"of {LONGEST_TEXT + 1} characters is too long.*put it in a file"):
        project.do(SendMessage(WORKER, "m2", Sender.USER, "user", "x" * (LONGEST_TEXT + 1)))


@pytest.mark.parametrize("ask", [PauseAgent, RetireAgent, ReapAgent])
def test_a_reason_may_not_be_a_book(project: Project, ask: Callable[[str, str], Command]) -> None:
    with pytest.raises(Invalid, match=r"the reason of .* is too long"):
        project.do(ask(WORKER, "x" * (LONGEST_REASON + 1)))


@pytest.mark.parametrize(
    "command",
    [
        SpawnAgent("worker", "scripted", instructions=HALF),
        SpawnAgent("worker", HALF),
        SpawnAgent("worker", "scripted", model=HALF),
        SpawnAgent("worker", "scripted", options=((HALF, "x"),)),
        SpawnAgent("worker", "scripted", options=(("x", HALF),)),
        message(HALF),
        SendMessage(WORKER, HALF, Sender.USER, "user", "hello"),
        SendMessage(WORKER, "m", Sender.USER, HALF, "hello"),
        PauseAgent(WORKER, HALF),
        ReapAgent(WORKER, HALF),
    ],
)
def test_text_that_no_file_could_hold_is_invalid_wherever_it_stands(project: Project, command: Command) -> None:
    length = len(project.log)
    with pytest.raises(Invalid, match="is not valid UTF-8 text"):
        project.do(command)
    assert len(project.log) == length


def test_an_option_of_the_backend_may_be_empty_or_long(project: Project) -> None:
    project.do(SpawnAgent("worker", "scripted", name="ada", options=(("quiet", ""), ("play", "x" * LONGEST_TEXT))))
    assert project.agent("ada").options[0] == ("quiet", "")


@pytest.mark.parametrize(
    "report",
    [
        ReportSessionEnded(WORKER, 1, HALF),
        ReportTurnEnded(WORKER, 1, 1, Outcome.FAILED, HALF, HALF),
        ReportError(WORKER, 1, 1, HALF),
    ],
)
def test_what_an_agent_says_is_made_text_that_a_log_can_hold(project: Project, report: Command) -> None:
    project.do(report)
    assert replay(project.log) == project.state


def test_also_what_a_session_says_when_it_starts_or_fails_to() -> None:
    for report in (ReportSessionStarted(WORKER, 1, HALF), ReportSessionFailed(WORKER, 1, HALF)):
        project = Project()
        project.spawn()
        project.do(report)
        assert replay(project.log) == project.state


def test_an_endless_error_is_cut(project: Project) -> None:
    (event,) = project.do(ReportError(WORKER, 1, 1, "é" * 100_000))
    assert isinstance(event, ErrorReported)
    assert event.error == "é" * LONGEST_REASON


def test_what_can_be_kept_is_kept_as_it_was_said(project: Project) -> None:
    (event,) = project.do(ReportError(WORKER, 1, 1, "Füße 🐎 \x00 \u2028"))
    assert isinstance(event, ErrorReported)
    assert event.error == "Füße 🐎 \x00 \u2028"
