"""A worker with a task ends its turns with a word on where it stands: reminded twice, then let through."""

import pytest

from domain.crew import ADA, BOB, Crew
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import (
    CompletionSignalled,
    Event,
    Reminded,
    ToolUsed,
    TurnLetThrough,
    TurnStarted,
    UserNotified,
)
from remuda.domain.lifecycle import Status
from remuda.domain.speaking import MOST_REMINDERS
from remuda.domain.state import Outcome, Sender
from remuda.domain.task_commands import (
    CloseTask,
    NoteToolUse,
    NotifyUser,
    ReportReviewVerdict,
    SignalComplete,
    SignalReady,
)
from remuda.domain.tools import ENDS_A_TURN, Tool


@pytest.fixture
def crew() -> Crew:
    """A worker at its task, and not in its first turn."""
    crew = Crew()
    crew.add()
    crew.send("hello")
    crew.answered()
    crew.at_work()
    return crew


def has(events: tuple[Event, ...], kind: type[Event]) -> bool:
    return any(isinstance(event, kind) for event in events)


def test_a_turn_without_a_word_is_followed_by_a_reminder_of_the_systems(crew: Crew) -> None:
    events = crew.answered()
    assert has(events, Reminded)
    turn = crew.agent().turn
    assert turn is not None
    assert (turn.message.sender, turn.message.author) == (Sender.SYSTEM, "remuda")
    assert "reminder 1 of 2" in turn.message.text


def test_it_is_reminded_twice_and_then_let_through_with_a_warning(crew: Crew) -> None:
    for _ in range(MOST_REMINDERS):
        assert has(crew.answered(), Reminded)
    events = crew.answered()
    assert has(events, TurnLetThrough)
    assert (crew.agent().status, crew.agent().queue) == (Status.READY, ())


def test_a_reminder_goes_before_other_mail_so_that_nothing_starts_a_new_account_between(crew: Crew) -> None:
    crew.send("and by the way")
    crew.answered()
    turn = crew.agent().turn
    assert turn is not None
    assert turn.message.sender is Sender.SYSTEM
    assert crew.agent().reminders == 1
    assert [message.text for message in crew.agent().queue] == ["and by the way"]


@pytest.mark.parametrize("sender", [Sender.USER, Sender.COORDINATOR, Sender.AGENT])
def test_a_message_of_anybody_else_begins_a_new_account(crew: Crew, sender: Sender) -> None:
    for _ in range(MOST_REMINDERS + 1):
        crew.answered()
    crew.send("go on", sender=sender)
    assert crew.agent().reminders == 0
    assert has(crew.answered(), Reminded)


def test_a_message_of_the_system_does_not(crew: Crew) -> None:
    for _ in range(MOST_REMINDERS + 1):
        crew.answered()
    crew.send("something has died", sender=Sender.SYSTEM)
    assert has(crew.answered(), TurnLetThrough)


@pytest.mark.parametrize("tool", sorted(ENDS_A_TURN))
def test_any_of_the_tools_is_word_enough(crew: Crew, tool: Tool) -> None:
    crew.do(NoteToolUse(ADA, crew.epoch(), tool))
    events = crew.answered()
    assert not has(events, Reminded)
    assert not has(events, TurnLetThrough)


def test_a_tool_of_an_earlier_turn_does_not_count_for_a_later_one(crew: Crew) -> None:
    crew.do(NoteToolUse(ADA, crew.epoch(), Tool.POST_MESSAGE))
    crew.answered()
    crew.send("and?")
    assert has(crew.answered(), Reminded)


def test_a_turn_that_failed_is_not_reminded(crew: Crew) -> None:
    assert not has(crew.answered(outcome=Outcome.FAILED), Reminded)


def test_the_first_turn_after_a_spawn_is_not(crew: Crew) -> None:
    crew.add()
    crew.at_work("t2", BOB)
    assert not has(crew.answered(BOB), Reminded)


def test_one_without_a_task_is_not(crew: Crew) -> None:
    crew.send("hello", BOB)
    crew.answered(BOB)
    crew.send("hello", BOB)
    assert not has(crew.answered(BOB), Reminded)


def test_one_that_has_not_heard_of_its_task_yet_is_not() -> None:
    crew = Crew()
    crew.add()
    crew.send("hello")
    crew.answered()
    crew.send("hello again")
    crew.assign()
    assert not has(crew.answered(), Reminded)
    crew.send("and again")
    crew.do(crew.answer_to("t1") or SignalReady(ADA, 1))
    assert not has(crew.answered(), Reminded)


def test_a_reviewer_is_reminded_too(crew: Crew) -> None:
    crew.send("hello", BOB)
    crew.answered(BOB)
    crew.reports()
    crew.ends_turn()
    crew.accepted()
    crew.review()
    assert has(crew.answered(BOB), Reminded)
    crew.do(ReportReviewVerdict(BOB, crew.epoch(BOB), approved=True, comments=""))
    assert not has(crew.answered(BOB), Reminded)


def test_what_an_agent_says_by_its_tools_is_known_as_their_use(crew: Crew) -> None:
    crew.do(SignalReady(BOB, crew.epoch(BOB)))
    crew.reports()
    used = [(event.agent, event.tool, event.turn) for event in crew.all(ToolUsed) if isinstance(event, ToolUsed)]
    turns = [event.turn for event in crew.all(TurnStarted) if isinstance(event, TurnStarted)]
    assert used == [(BOB, "signal_ready", 0), (ADA, "report_implementation_complete", turns[-1])]


def test_only_tools_that_end_a_turn_can_be_noted(crew: Crew) -> None:
    with pytest.raises(Invalid, match="'bash' is not a tool that ends a turn"):
        crew.do(NoteToolUse(ADA, crew.epoch(), "bash"))


def test_a_denial_without_comments_is_invalid(crew: Crew) -> None:
    crew.reports()
    crew.ends_turn()
    crew.accepted()
    crew.review()
    with pytest.raises(Invalid, match="the comments cannot be empty"):
        crew.do(ReportReviewVerdict(BOB, crew.epoch(BOB), approved=False, comments=""))


def test_the_end_can_be_declared_only_when_all_is_finished(crew: Crew) -> None:
    crew.ready("coordinator")
    with pytest.raises(Refused, match="1 tasks are not finished"):
        crew.do(SignalComplete("coordinator", 1, "done"))
    crew.reports()
    crew.do(CloseTask("t1"))
    assert has(crew.do(SignalComplete("coordinator", 1, "done")), CompletionSignalled)


def test_an_agent_may_tell_the_user_something(crew: Crew) -> None:
    assert has(crew.do(NotifyUser(ADA, crew.epoch(), "look at t1")), UserNotified)
    with pytest.raises(Invalid):
        crew.do(NotifyUser(ADA, crew.epoch(), ""))
