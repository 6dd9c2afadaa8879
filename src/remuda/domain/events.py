"""What has happened. Events are the truth; everything else is worked out from them."""

from dataclasses import dataclass

from remuda.domain.failure import Failure
from remuda.domain.lifecycle import Phase, Status
from remuda.domain.state import Message, Outcome, Question, Usage


@dataclass(frozen=True, slots=True)
class RuntimeStarted:
    instance: str


@dataclass(frozen=True, slots=True)
class RuntimeStopped:
    instance: str


@dataclass(frozen=True, slots=True)
class AgentSpawned:
    agent: str
    role: str
    backend: str
    parent: str
    model: str
    instructions: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatusChanged:
    agent: str
    was: Status
    now: Status
    why: str


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    agent: str
    was: Phase
    now: Phase
    task: str


@dataclass(frozen=True, slots=True)
class SessionRequested:
    agent: str
    epoch: int
    resumes: str  # the conversation to go on with; empty starts a new one


@dataclass(frozen=True, slots=True)
class SessionStarted:
    agent: str
    epoch: int
    ref: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    agent: str
    epoch: int
    detail: str
    returncode: int | None
    crashed: bool  # it died by itself; nobody ended it
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class SessionEndRequested:
    """The agent stays as it is and its process goes; the next turn gets a fresh one."""

    agent: str
    epoch: int
    why: str


@dataclass(frozen=True, slots=True)
class MessageQueued:
    agent: str
    message: Message
    queue_count: int


@dataclass(frozen=True, slots=True)
class TurnStarted:
    agent: str
    epoch: int
    turn: int
    message_id: str
    queue_count: int


@dataclass(frozen=True, slots=True)
class TurnEnded:
    agent: str
    epoch: int
    turn: int
    message_id: str
    outcome: Outcome
    stop_reason: str
    error: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class RestBegan:
    """The model's service asked for patience."""

    agent: str
    until: float
    failure: Failure


@dataclass(frozen=True, slots=True)
class RestEnded:
    agent: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool the agent used, when it was done. What is too long is cut; the transcript has it all."""

    agent: str
    epoch: int
    turn: int
    id: str
    name: str
    ok: bool
    seconds: float
    arguments: str
    result: str


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    agent: str
    epoch: int
    turn: int
    question: Question


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    agent: str
    question_id: str
    allow: bool
    why: str
    by: str


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    agent: str
    epoch: int
    question_id: str


@dataclass(frozen=True, slots=True)
class OutputAppended:
    agent: str
    epoch: int
    turn: int
    offset: int
    size: int
    lines: int


@dataclass(frozen=True, slots=True)
class UsageRecorded:
    agent: str
    epoch: int
    turn: int
    call: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class ErrorReported:
    agent: str
    epoch: int
    turn: int
    error: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ReportIgnored:
    """A report that came too late, twice, or with numbers that cannot be. Kept as evidence, never applied."""

    agent: str
    epoch: int
    turn: int
    report: str
    why: str


AgentEvent = (
    StatusChanged
    | PhaseChanged
    | SessionRequested
    | SessionStarted
    | SessionEndRequested
    | SessionEnded
    | MessageQueued
    | TurnStarted
    | TurnEnded
    | RestBegan
    | RestEnded
    | ToolCalled
    | QuestionAsked
    | QuestionAnswered
    | AnswerGiven
    | OutputAppended
    | UsageRecorded
    | ErrorReported
    | ReportIgnored
)

Event = RuntimeStarted | RuntimeStopped | AgentSpawned | AgentEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event in its place in the log."""

    seq: int
    at: float
    cause: str  # the id of the command that led to it
    event: Event
