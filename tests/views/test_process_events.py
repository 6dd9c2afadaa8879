"""The log in the vocabulary of subscribers."""

from dataclasses import replace
from typing import get_args

import msgspec
import pytest

from remuda.domain import events as log
from remuda.domain import task_events as work
from remuda.domain import trigger_events as cut
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.lifecycle import Phase, Status, TaskStatus
from remuda.domain.spin_reading import Step, read
from remuda.domain.state import Message, Outcome, Question, Sender, Usage
from remuda.domain.task import Brief, Check, Kind, Merge, Note, Refusal, Staff, Verdict
from remuda.domain.trigger import Course, Sought, Trigger
from remuda.views.process_events import ProcessEvent, Type, event_text, process_events
from remuda.views.text import moment

MAIL = Message("m1", Sender.USER, "user", "hello\nthere", 1.0)
LIMIT = Failure.RATE_LIMITED
BRIEF = Brief("Parse dates")
QUESTION = Question("q1", "bash", '{"command":\n"ls"}', ("/a",), "List files", 1.0, 1)

SAMPLES: list[tuple[log.Event, list[str]]] = [
    (log.RuntimeStarted("r1"), ["runtime_started"]),
    (log.RuntimeStopped("r1"), ["runtime_stopped"]),
    (log.AgentSpawned("ada", "worker", "scripted", "", "", "", ()), ["spawned"]),
    (log.StatusChanged("ada", Status.STARTING, Status.READY, ""), ["status_changed", "ready"]),
    (log.StatusChanged("ada", Status.READY, Status.WORKING, ""), ["status_changed", "working"]),
    (log.StatusChanged("ada", Status.WORKING, Status.FAILED, "x"), ["status_changed", "died"]),
    (log.StatusChanged("ada", Status.READY, Status.PAUSED, ""), ["status_changed"]),
    (log.PhaseChanged("ada", Phase.IDLE, Phase.IMPLEMENTING, "t1"), ["phase_changed"]),
    (log.SessionRequested("ada", 1, ""), ["session_requested"]),
    (log.SessionStarted("ada", 1, "ref"), ["session_started"]),
    (log.SessionEnded("ada", 1, "gone", 0, crashed=False), ["session_ended"]),
    (log.SessionEnded("ada", 1, "gone", 1, crashed=True), ["session_ended", "error"]),
    (log.MessageQueued("ada", MAIL, 3), ["incoming", "queue_changed"]),
    (log.TurnStarted("ada", 1, 5, "m1", 2), ["turn_started", "queue_changed"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.COMPLETED, "end_turn", ""), ["turn_ended"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.FAILED, "", "no"), ["turn_ended", "error"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.LOST, "", ""), ["turn_ended", "queue_changed"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.LIMITED, "", "slow", LIMIT), ["turn_ended", "error", "queue_changed"]),
    (log.SessionEndRequested("ada", 1, "rate_limited"), ["session_end_requested"]),
    (log.RestBegan("ada", 60.0, LIMIT), ["rest_began"]),
    (log.RestEnded("ada"), ["rest_ended"]),
    (log.ToolCalled("ada", 1, 5, "c1", "bash", True, 1.23456, "{}", "ok\nok"), ["tool_called"]),
    (log.QuestionAsked("ada", 1, 5, QUESTION), ["question_asked"]),
    (log.QuestionAnswered("ada", "q1", False, "no\nway", "user"), ["question_answered"]),
    (log.AnswerGiven("ada", 1, "q1"), ["answer_given"]),
    (log.OutputAppended("ada", 1, 5, 0, 10, 1), ["output"]),
    (log.UsageRecorded("ada", 1, 5, 1, Usage(1, 2)), ["token_usage"]),
    (log.ErrorReported("ada", 1, 5, "oh"), ["error"]),
    (log.ReportIgnored("ada", 1, 5, "ReportOutput", "late"), ["report_ignored"]),
    (log.BudgetSet("agent:ada", 5_000, None, 3, None, "user", ""), ["budget_set"]),
    (log.BudgetReserved("ada", 1, 5, 1, ("agent:ada",), 100, 200, 0, priced=False), ["budget_reserved"]),
    (log.BudgetWarned("ada", "agent:ada", 80, "4,000 tokens", "5,000 tokens"), ["budget_warned"]),
    (log.TriggerFired("ada", 1, 5, Trigger.BUDGET, "it is spent", (("tokens_spent", 9),)), ["trigger_fired"]),
    (cut.AgentNudged("ada", 1, 5, "cycle", "again", MAIL, 1), ["nudged"]),
    (cut.SaidAgain("ada", 1, 5, read(Step(text="so\nbe it"))), ["said_again"]),
    (cut.VerdictSought("ada", Trigger.SPIN, Sought("bob", 60.0, Course.REAP, 3, 60.0, 60.0)), ["verdict_sought"]),
    (cut.VerdictReached("ada", Trigger.SPIN, Course.RESTART, "bob", "so", successor="eve"), ["verdict_reached"]),
    (cut.AgentSucceeded("ada", "eve", (1.0,)), ["succeeded"]),
    (cut.WorkKept("ada", 2, "c0ffee", "", 10), ["work_kept"]),
    (cut.AgentBuried("ada", "user"), ["buried"]),
    (cut.BodyRemoved("ada", 2), ["body_removed"]),
    (log.MailWithdrawn("ada", "t1", ("m1",), 0), ["queue_changed"]),
    (log.FolderChanged("ada", ".remuda/worktrees/t1"), ["folder_changed"]),
    (log.ToolUsed("ada", 1, 5, "post_message"), ["tool_used"]),
    (log.Reminded("ada", 1, 5, MAIL, 1, 1), ["reminded", "queue_changed"]),
    (log.TurnLetThrough("ada", 1, 5, 2), ["turn_let_through"]),
    (log.UserNotified("ada", "look\nhere"), ["user_notified"]),
    (log.CompletionSignalled("ada", "all\ndone"), ["completion_signalled"]),
    (log.StaffChanged(Staff(2)), ["staff_changed"]),
    (work.TaskAdded("t1", Kind.TASK, BRIEF, "", "user"), ["task_added"]),
    (work.TaskEdited("t1", BRIEF, "user"), ["task_edited"]),
    (work.TaskNoted("t1", Note(1.0, "user", "mind\nthis")), ["task_noted"]),
    (work.StepCompleted("t1", 1, "user"), ["step_completed"]),
    (work.TaskStatusChanged("t1", TaskStatus.OPEN, TaskStatus.DONE, "so\nbe it"), ["task_status_changed"]),
    (work.TaskAssigned("t1", "ada", 1, "remuda/t1", "user", ""), ["task_assigned"]),
    (work.TaskReleased("t1", "ada", "gone"), ["task_released"]),
    (work.WorktreeReady("t1", 1, "w/t1"), ["worktree_ready"]),
    (work.WorkFailed("t1", 1, "no\ndisk"), ["work_failed"]),
    (work.ImplementationReported("t1", "ada", 2, "did\nit"), ["implementation_reported"]),
    (work.AcceptanceRun("t1", 2, Check(False, "c", "log", "red\nred")), ["acceptance_run"]),
    (work.AcceptanceRun("t1", 2, Check(True, "c", "log", "")), ["acceptance_run"]),
    (work.ReviewAssigned("t1", "bob", "remuda"), ["review_assigned"]),
    (work.ReviewReleased("t1", "bob", "gone"), ["review_released"]),
    (work.VerdictGiven("t1", Verdict("bob", True, "fine\nwork", "c")), ["verdict_given"]),
    (work.VerdictGiven("t1", Verdict("bob", False, "no", "c")), ["verdict_given"]),
    (work.WorkReturned("t1", "denied", True), ["work_returned"]),
    (work.MergeRequested("t1", 3, "Title\n\nbody", "remuda"), ["merge_requested"]),
    (work.TaskMerged("t1", 4, Merge("c", "main", "git\nlog")), ["task_merged"]),
    (work.MergeRefused("t1", 3, Refusal.CONFLICT, "log", "<<<\n>>>"), ["merge_refused"]),
    (work.WorktreeGivenUp("t1", 3), ["worktree_given_up"]),
    (work.WorktreeCleared("t1", 4, "dirty"), ["worktree_cleared"]),
    (work.TaskReportIgnored("t1", 1, "ReportMerged", "late"), ["task_report_ignored"]),
]


def told(event: log.Event) -> list[ProcessEvent]:
    return process_events(log.Recorded(9, 1.0, "c", event), lambda _: "worker")


@pytest.mark.parametrize(("event", "types"), SAMPLES, ids=[f"{type(e).__name__}-{t[-1]}" for e, t in SAMPLES])
def test_an_event_is_told_in_these_words(event: log.Event, types: list[str]) -> None:
    events = told(event)
    assert [each.type for each in events] == types
    assert all(each.seq == 9 for each in events)
    if hasattr(event, "task"):
        assert events[0].task == event.task
    if hasattr(event, "agent"):
        assert all(each.agent == "ada" and each.role == "worker" for each in events)
    assert all("\n" not in event_text(each) for each in events)


def test_the_samples_cover_every_event_and_every_word() -> None:
    assert {type(event) for event, _ in SAMPLES} == set(get_args(log.Event))
    types = {word for part in get_args(Type) for word in get_args(part)}
    assert {word for _, words in SAMPLES for word in words} == types


def test_what_does_not_apply_is_left_out() -> None:
    incoming, queue = (
        msgspec.json.decode(msgspec.json.encode(each)) for each in told(log.MessageQueued("ada", MAIL, 3))
    )
    assert incoming["message"] == "hello\nthere"
    assert incoming["author"] == "user"
    assert queue["queue_count"] == 3
    assert "usage" not in incoming
    assert "message" not in queue


def line(event: log.Event) -> str:
    """As `remuda events` prints the last of what it is told as, without number and time."""
    text = event_text(told(event)[-1])
    return text[text.index("ada") :]


def test_people_read_what_is_asked_and_what_was_said() -> None:
    assert line(log.QuestionAsked("ada", 1, 5, QUESTION)) == 'ada  q1 may it use bash?: {"command":…'
    assert line(log.QuestionAsked("ada", 1, 5, replace(QUESTION, arguments=""))) == "ada  q1 may it use bash?"
    assert line(log.QuestionAnswered("ada", "q1", False, "not now", "user")) == "ada  q1 denied by user: not now"
    assert line(log.QuestionAnswered("ada", "q1", True, "", "boss")) == "ada  q1 allowed by boss"
    assert line(log.AnswerGiven("ada", 1, "q1")) == "ada  q1"


def test_people_read_what_a_tool_did_and_how_long_a_rest_is() -> None:
    assert line(log.ToolCalled("ada", 1, 5, "c1", "bash", True, 1.23456, "", "")) == "ada  bash done in 1.235 s"
    assert line(log.ToolCalled("ada", 1, 5, "c1", "bash", False, 2.0, "", "")) == "ada  bash failed in 2.0 s"
    assert line(log.RestBegan("ada", 60.0, LIMIT)) == f"ada  until {moment(60.0)}: rate_limited"


@pytest.mark.parametrize("failure", list(Failure))
def test_a_failure_is_told_with_what_to_do_about_it(failure: Failure) -> None:
    for event in (
        log.TurnEnded("ada", 1, 5, "m1", Outcome.FAILED, "error", "no", failure),
        log.SessionEnded("ada", 1, "no", 1, crashed=True, failure=failure),
        log.ErrorReported("ada", 1, 5, "no", failure),
    ):
        error = told(event)[-1]
        assert (error.type, error.failure, error.next_step) == ("error", failure, REMEDY[failure].next_step)


def test_an_error_of_no_known_kind_promises_no_remedy() -> None:
    (error,) = told(log.ErrorReported("ada", 1, 5, "no"))
    assert (error.failure, error.next_step) == (None, "")
