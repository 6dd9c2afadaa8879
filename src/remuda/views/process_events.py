"""What subscribers see: the log in the vocabulary of processes. One event of the log may be several of these."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, assert_never, get_args

import msgspec

from remuda.domain.events import (
    AgentEvent,
    AgentSpawned,
    AnswerGiven,
    BudgetReserved,
    BudgetSet,
    BudgetWarned,
    CompletionSignalled,
    ErrorReported,
    FolderChanged,
    MailWithdrawn,
    MessageQueued,
    OutputAppended,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    Reminded,
    ReportIgnored,
    RestBegan,
    RestEnded,
    RuntimeStarted,
    RuntimeStopped,
    SessionEnded,
    SessionEndRequested,
    SessionRequested,
    SessionStarted,
    StaffChanged,
    StatusChanged,
    ToolCalled,
    ToolUsed,
    TriggerFired,
    TurnEnded,
    TurnLetThrough,
    TurnStarted,
    UsageRecorded,
    UserNotified,
)
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import DEAD, Phase, Status, TaskStatus
from remuda.domain.state import Outcome, Usage
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_events import TriggerEvent
from remuda.views import task_events, trigger_events
from remuda.views.budget import limits_text
from remuda.views.task_events import TaskType
from remuda.views.text import first_line, moment, neutral

AgentType = Literal[
    "spawned",
    "output",
    "status_changed",
    "phase_changed",
    "token_usage",
    "incoming",
    "error",
    "queue_changed",
    "ready",
    "working",
    "turn_started",
    "turn_ended",
    "died",
    "session_requested",
    "session_started",
    "session_end_requested",
    "session_ended",
    "rest_began",
    "rest_ended",
    "tool_called",
    "question_asked",
    "question_answered",
    "answer_given",
    "report_ignored",
    "folder_changed",
    "tool_used",
    "reminded",
    "turn_let_through",
    "user_notified",
    "completion_signalled",
    "budget_reserved",
    "budget_warned",
    "trigger_fired",
]

Type = (
    AgentType
    | trigger_events.TriggerType
    | TaskType
    | Literal["runtime_started", "runtime_stopped", "staff_changed", "budget_set"]
)


class ProcessEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that do not apply to a type are left out."""

    type: Type
    seq: int  # of the log's event; several that come from one share it
    at: float
    agent: str = ""
    role: str = ""
    backend: str = ""
    parent: str = ""
    status: Status | None = None
    was: str = ""
    phase: Phase | None = None
    task: str = ""
    task_status: TaskStatus | None = None
    step: int = 0
    commit: str = ""
    path: str = ""  # of a file or a folder, from the project's root
    why: str = ""
    scope: str = ""  # whose budget: project, agent:NAME, own:NAME or task:ID
    percent: int = 0
    trigger: Trigger | None = None
    numbers: dict[str, int | float] = {}
    epoch: int = 0
    turn: int = 0
    outcome: Outcome | None = None
    usage: Usage | None = None
    message: str = ""
    message_id: str = ""
    author: str = ""
    error: str = ""
    failure: Failure | None = None
    next_step: str = ""
    tool: str = ""
    ok: bool | None = None
    seconds: float | None = None
    question: str = ""
    until: float | None = None
    returncode: int | None = None
    queue_count: int | None = None
    offset: int | None = None  # where new output stands in the session's transcript
    size: int = 0
    lines: int = 0
    instance: str = ""


TASK_TYPES = frozenset(get_args(TaskType))

Roles = Callable[[str], str]
_Told = tuple[AgentType | trigger_events.TriggerType, dict[str, Any]]
_OfProject = RuntimeStarted | RuntimeStopped | StaffChanged | BudgetSet


def process_events(recorded: Recorded, roles: Roles) -> list[ProcessEvent]:
    event = recorded.event
    if isinstance(event, _OfProject):
        return [_of_project(event, recorded)]
    if not isinstance(event, AgentSpawned | AgentEvent):
        about, more = task_events.told(event)
        return [ProcessEvent(about, recorded.seq, recorded.at, **more)]
    role = event.role if isinstance(event, AgentSpawned) else roles(event.agent)
    return [
        ProcessEvent(kind, recorded.seq, recorded.at, agent=event.agent, role=role, **fields)
        for kind, fields in _told(event)
    ]


def _of_project(event: _OfProject, recorded: Recorded) -> ProcessEvent:
    place = (recorded.seq, recorded.at)
    match event:
        case RuntimeStarted():
            return ProcessEvent("runtime_started", *place, instance=event.instance)
        case RuntimeStopped():
            return ProcessEvent("runtime_stopped", *place, instance=event.instance)
        case StaffChanged():
            workers = f"{event.staff.workers} workers while there is work"
            return ProcessEvent("staff_changed", *place, backend=event.staff.backend, why=workers)
        case BudgetSet():
            limits = limits_text(Limits(event.tokens, event.nanousd, event.turns, event.milliseconds))
            return ProcessEvent("budget_set", *place, scope=event.scope, author=event.by, message=limits, why=event.why)
        case _:
            assert_never(event)


def _told(event: AgentSpawned | AgentEvent) -> Iterator[_Told]:
    if isinstance(event, TriggerEvent):
        return (yield trigger_events.told(event))
    match event:
        case AgentSpawned() | StatusChanged() | PhaseChanged():
            yield from _standing(event)
        case MessageQueued():
            message = event.message
            yield "incoming", {"message": message.text, "message_id": message.id, "author": message.author}
            yield "queue_changed", {"queue_count": event.queue_count}
        case (
            MailWithdrawn()
            | FolderChanged()
            | ToolUsed()
            | Reminded()
            | TurnLetThrough()
            | UserNotified()
            | CompletionSignalled()
        ):
            yield from _at_work(event)
        case TurnStarted() | TurnEnded():
            yield from _turn(event)
        case SessionRequested() | SessionStarted() | SessionEndRequested() | SessionEnded():
            yield from _session(event)
        case RestBegan() | RestEnded() | QuestionAsked() | QuestionAnswered() | AnswerGiven():
            yield _waiting(event)
        case OutputAppended() | UsageRecorded() | ErrorReported() | ReportIgnored() | ToolCalled():
            yield _report(event)
        case BudgetReserved() | BudgetWarned() | TriggerFired():
            yield trigger_events.bounds(event)
        case _:
            assert_never(event)


def _standing(event: AgentSpawned | StatusChanged | PhaseChanged) -> Iterator[_Told]:
    match event:
        case AgentSpawned():
            yield "spawned", {"backend": event.backend, "parent": event.parent, "status": Status.PENDING}
        case StatusChanged():
            yield from _status(event)
        case PhaseChanged():
            yield "phase_changed", {"was": event.was, "phase": event.now, "task": event.task}
        case _:
            assert_never(event)


def _at_work(
    event: MailWithdrawn | FolderChanged | ToolUsed | Reminded | TurnLetThrough | UserNotified | CompletionSignalled,
) -> Iterator[_Told]:
    match event:
        case MailWithdrawn():
            yield "queue_changed", {"queue_count": event.queue_count, "task": event.task}
        case FolderChanged():
            yield "folder_changed", {"path": event.folder}
        case ToolUsed():
            yield "tool_used", {"epoch": event.epoch, "turn": event.turn, "tool": event.tool}
        case Reminded():
            yield "reminded", {"epoch": event.epoch, "turn": event.turn, "message": event.message.text}
            yield "queue_changed", {"queue_count": event.queue_count}
        case TurnLetThrough():
            why = f"it was reminded {event.reminders} times and did not say where its work stands"
            yield "turn_let_through", {"epoch": event.epoch, "turn": event.turn, "why": why}
        case UserNotified():
            yield "user_notified", {"message": event.text}
        case CompletionSignalled():
            yield "completion_signalled", {"message": event.summary}
        case _:
            assert_never(event)


def _status(event: StatusChanged) -> Iterator[_Told]:
    fields = {"status": event.now, "why": event.why}
    yield "status_changed", {"was": event.was, **fields}
    if event.now is Status.READY:
        yield "ready", fields
    if event.now is Status.WORKING:
        yield "working", fields
    if event.now in DEAD:
        yield "died", fields


def _turn(event: TurnStarted | TurnEnded) -> Iterator[_Told]:
    place = {"epoch": event.epoch, "turn": event.turn}
    if isinstance(event, TurnStarted):
        yield "turn_started", {**place, "message_id": event.message_id}
        yield "queue_changed", {"queue_count": event.queue_count}
        return
    yield "turn_ended", {**place, "message_id": event.message_id, "outcome": event.outcome, "why": event.stop_reason}
    if event.outcome in (Outcome.FAILED, Outcome.LIMITED):
        yield "error", {**place, "error": event.error or "the turn failed", **_failed(event.failure)}
    if not event.outcome.answered:
        # Its message waits again. How many wait then is not in this event; whoever needs the number asks for it.
        yield "queue_changed", {}


def _failed(failure: Failure | None) -> dict[str, Any]:
    """What it was, and what to do about it."""
    return {} if failure is None else {"failure": failure, "next_step": REMEDY[failure].next_step}


def _waiting(event: RestBegan | RestEnded | QuestionAsked | QuestionAnswered | AnswerGiven) -> _Told:
    match event:
        case RestBegan():
            return "rest_began", {"until": event.until, **_failed(event.failure)}
        case RestEnded():
            return "rest_ended", {}
        case QuestionAsked():
            asked = event.question
            place = {"epoch": event.epoch, "turn": event.turn}
            return "question_asked", {**place, "question": asked.id, "tool": asked.tool, "message": asked.arguments}
        case QuestionAnswered():
            fields = {"question": event.question_id, "ok": event.allow, "author": event.by, "why": event.why}
            return "question_answered", fields
        case AnswerGiven():
            return "answer_given", {"epoch": event.epoch, "question": event.question_id}
        case _:
            assert_never(event)


def _session(event: SessionRequested | SessionStarted | SessionEndRequested | SessionEnded) -> Iterator[_Told]:
    place = {"epoch": event.epoch}
    match event:
        case SessionRequested():
            yield "session_requested", place
        case SessionStarted():
            yield "session_started", place
        case SessionEnded():
            yield "session_ended", {**place, "why": event.detail, "returncode": event.returncode}
            if event.crashed:
                yield "error", {**place, "error": event.detail, **_failed(event.failure)}
        case SessionEndRequested():
            yield "session_end_requested", {**place, "why": event.why}
        case _:
            assert_never(event)


def _report(event: OutputAppended | UsageRecorded | ErrorReported | ReportIgnored | ToolCalled) -> _Told:
    place = {"epoch": event.epoch, "turn": event.turn}
    match event:
        case OutputAppended():
            return "output", {**place, "offset": event.offset, "size": event.size, "lines": event.lines}
        case UsageRecorded():
            return "token_usage", {**place, "usage": event.usage}
        case ErrorReported():
            return "error", {**place, "error": event.error, **_failed(event.failure)}
        case ToolCalled():
            return "tool_called", {**place, "tool": event.name, "ok": event.ok, "seconds": round(event.seconds, 3)}
        case ReportIgnored():
            return "report_ignored", {**place, "why": f"{event.report}: {event.why}"}
        case _:
            assert_never(event)


# --- as text ---


def event_text(event: ProcessEvent) -> str:
    """One line for people."""
    task = event.task if event.type in TASK_TYPES else ""
    parts = [f"{event.seq:>6}", moment(event.at), f"{event.type:<17}", task, event.agent, _words(event)]
    return neutral("  ".join(part for part in parts if part).rstrip())


def _words(event: ProcessEvent) -> str:
    match event.type:
        case "status_changed" | "phase_changed" | "task_status_changed":
            moved = f"{event.was} → {event.status or event.phase or event.task_status}"
            reason = first_line(event.why) or (event.task if event.phase else "")
            return moved + (f" ({reason})" if reason else "")
        case "incoming":
            return f"from {event.author}: {first_line(event.message, 100)}"
        case "queue_changed":
            return "" if event.queue_count is None else f"{event.queue_count} waiting"
        case "output":
            return f"{event.lines} lines, {event.size} bytes"
        case "token_usage" if event.usage:
            return f"{event.usage.input_tokens} in, {event.usage.output_tokens} out"
        case "turn_started" | "turn_ended":
            return f"turn {event.turn} {event.outcome or ''}".rstrip()
        case "spawned":
            return f"{event.role} on {event.backend}" + (f", child of {event.parent}" if event.parent else "")
        case "session_requested" | "session_started" | "session_end_requested" | "session_ended":
            return f"session {event.epoch}" + (f": {first_line(event.why)}" if event.why else "")
        case "rest_began" | "tool_called" | "question_asked" | "question_answered" | "answer_given":
            return _waiting_words(event)
        case _:
            said = task_events.words(event.type, event.ok)
            rest = first_line(event.error or event.why or event.message or event.path or event.tool)
            return f"{said}: {rest}" if said and rest else said or rest


def _waiting_words(event: ProcessEvent) -> str:
    match event.type:
        case "rest_began":
            return f"until {moment(event.until or 0.0)}: {event.failure}"
        case "tool_called":
            return f"{event.tool} {'done' if event.ok else 'failed'} in {event.seconds} s"
        case "question_asked":
            wish = f": {first_line(event.message, 100)}" if event.message else ""
            return f"{event.question} may it use {event.tool}?{wish}"
        case "question_answered":
            said = f"{event.question} {'allowed' if event.ok else 'denied'} by {event.author}"
            return said + (f": {first_line(event.why)}" if event.why else "")
        case _:
            return event.question
