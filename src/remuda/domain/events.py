"""What has happened. Events are the truth; everything else is worked out from them."""

from dataclasses import dataclass

from remuda.domain.failure import Failure
from remuda.domain.lifecycle import Phase, Status
from remuda.domain.spin_reading import Reading
from remuda.domain.state import Message, Outcome, Question, Usage
from remuda.domain.task import Staff
from remuda.domain.task_events import TaskAdded, TaskEvent
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_events import TriggerEvent


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
    works: bool = False


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
    metered: bool = False  # its calls to the model go through the meter
    tree: str = ""  # what it found where it works


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
class MailWithdrawn:
    """What the agent was to do for a task that it no longer has."""

    agent: str
    task: str
    message_ids: tuple[str, ...]
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
    reading: Reading | None = None  # what it says of the agent's progress


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
class FolderChanged:
    """The agent works elsewhere from now on, in a fresh session and a conversation of its own."""

    agent: str
    folder: str  # from the project's root


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """One of the tools that end a turn was used, with success: known from the tool itself, never from the words."""

    agent: str
    epoch: int
    turn: int
    tool: str


@dataclass(frozen=True, slots=True)
class Reminded:
    """The turn ended without a word on where the work stands. The reminder is at the head of the queue: whatever
    waited there would otherwise begin a new account."""

    agent: str
    epoch: int
    turn: int
    message: Message
    count: int  # of reminders in this account
    queue_count: int


@dataclass(frozen=True, slots=True)
class TurnLetThrough:
    """A warning: the agent was reminded as often as is sensible and still has not said where its work stands."""

    agent: str
    epoch: int
    turn: int
    reminders: int


@dataclass(frozen=True, slots=True)
class UserNotified:
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class CompletionSignalled:
    agent: str
    summary: str


@dataclass(frozen=True, slots=True)
class StaffChanged:
    staff: Staff


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
    metered: bool = False  # counted by the meter, and settles what was reserved for the call


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


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """None: this measure is not limited here."""

    scope: str  # project, agent:NAME, own:NAME or task:ID
    tokens: int | None
    nanousd: int | None
    turns: int | None
    milliseconds: int | None
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class BudgetReserved:
    """A call to a model is about to be made, and this is what it may use at most."""

    agent: str
    epoch: int
    turn: int
    call: int
    scopes: tuple[str, ...]  # the accounts that bear it
    input_tokens: int
    output_tokens: int
    nanousd: int
    priced: bool


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    agent: str  # whose spending it was that passed the mark
    scope: str
    percent: int
    spent: str  # in words
    limit: str


@dataclass(frozen=True, slots=True)
class TriggerFired:
    agent: str
    epoch: int
    turn: int
    trigger: Trigger
    evidence: str
    numbers: tuple[tuple[str, int | float], ...] = ()
    rule: str = ""


AgentEvent = (
    StatusChanged
    | PhaseChanged
    | SessionRequested
    | SessionStarted
    | SessionEndRequested
    | SessionEnded
    | MessageQueued
    | MailWithdrawn
    | TurnStarted
    | TurnEnded
    | RestBegan
    | RestEnded
    | ToolCalled
    | QuestionAsked
    | QuestionAnswered
    | AnswerGiven
    | FolderChanged
    | ToolUsed
    | Reminded
    | TurnLetThrough
    | UserNotified
    | CompletionSignalled
    | OutputAppended
    | UsageRecorded
    | BudgetReserved
    | BudgetWarned
    | TriggerFired
    | TriggerEvent
    | ErrorReported
    | ReportIgnored
)

ProjectEvent = RuntimeStarted | RuntimeStopped | StaffChanged | BudgetSet

Event = ProjectEvent | AgentSpawned | AgentEvent | TaskAdded | TaskEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event in its place in the log."""

    seq: int
    at: float
    cause: str  # the id of the command that led to it
    event: Event
