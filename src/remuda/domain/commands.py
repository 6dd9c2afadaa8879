"""What may be asked: by people, by agents, by watches, and by effects that report what the world did."""

from dataclasses import dataclass

from remuda.domain.budget_commands import BudgetCommand
from remuda.domain.failure import Failure
from remuda.domain.ledger import UNLIMITED, Limits
from remuda.domain.spin_reading import Reading
from remuda.domain.state import Outcome, Sender, Usage
from remuda.domain.task_commands import TaskCommand, TaskReport, ToolCommand
from remuda.domain.trigger_commands import TriggerCommand, TriggerReport

# --- asked by people, agents and watches ---


@dataclass(frozen=True, slots=True)
class SpawnAgent:
    role: str
    backend: str
    name: str = ""  # empty: the role's next free name
    parent: str = ""
    model: str = ""
    instructions: str = ""
    options: tuple[tuple[str, str], ...] = ()
    hold: bool = False  # stay pending until resumed
    works: bool = False  # takes tasks, as every agent of role worker does
    budget: Limits = UNLIMITED  # for it and all that it spawns, out of its parent's


@dataclass(frozen=True, slots=True)
class SendMessage:
    agent: str
    message_id: str
    sender: Sender
    author: str
    text: str
    about: str = ""  # the task it is about; taken back with the task


@dataclass(frozen=True, slots=True)
class PauseAgent:
    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ResumeAgent:
    agent: str


@dataclass(frozen=True, slots=True)
class StopAgent:
    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class HibernateAgent:
    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class RetireAgent:
    agent: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReapAgent:
    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    agent: str
    question_id: str
    allow: bool
    by: str
    why: str = ""


# --- said by the runtime about itself ---


@dataclass(frozen=True, slots=True)
class StartRuntime:
    """A new runtime has taken the project. Whatever process an earlier one had is gone or will be swept."""

    instance: str


@dataclass(frozen=True, slots=True)
class StopRuntime:
    instance: str


# --- reported by effects; fenced by epoch and turn ---


@dataclass(frozen=True, slots=True)
class ReportSessionStarted:
    agent: str
    epoch: int
    ref: str
    metered: bool = False
    tree: str = ""  # what it found there, in git; empty where that was known, or nobody could tell


@dataclass(frozen=True, slots=True)
class ReportSessionEnded:
    """The session's process is gone, asked for or not."""

    agent: str
    epoch: int
    detail: str
    returncode: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ReportSessionFailed:
    """The session could not be started, after all retries."""

    agent: str
    epoch: int
    error: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ReportTurnEnded:
    agent: str
    epoch: int
    turn: int
    outcome: Outcome
    stop_reason: str = ""
    error: str = ""
    failure: Failure | None = None
    retry_after: float | None = None  # seconds, where the model's service said so


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """Where in the session's transcript new output stands."""

    agent: str
    epoch: int
    turn: int
    offset: int
    size: int
    lines: int


@dataclass(frozen=True, slots=True)
class ReportUsage:
    agent: str
    epoch: int
    turn: int
    call: int  # counts up within the session, so that a repeated report is known
    usage: Usage


@dataclass(frozen=True, slots=True)
class ReportError:
    """Something went wrong that did not end the turn."""

    agent: str
    epoch: int
    turn: int
    error: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ReportToolCall:
    agent: str
    epoch: int
    turn: int
    id: str
    name: str
    ok: bool
    seconds: float
    arguments: str = ""
    result: str = ""
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class ReportRested:
    agent: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    agent: str
    epoch: int
    turn: int
    question_id: str
    tool: str
    arguments: str = ""
    paths: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class ReportAnswerGiven:
    agent: str
    epoch: int
    question_id: str
    asking: int


AgentReport = (
    ReportSessionStarted
    | ReportSessionEnded
    | ReportSessionFailed
    | ReportTurnEnded
    | ReportOutput
    | ReportUsage
    | ReportError
    | ReportToolCall
    | ReportRested
    | ReportQuestion
    | ReportAnswerGiven
)

Report = AgentReport | TaskReport | TriggerReport

AgentCommand = (
    SendMessage
    | PauseAgent
    | ResumeAgent
    | StopAgent
    | HibernateAgent
    | RetireAgent
    | ReapAgent
    | AnswerQuestion
    | AgentReport
)

Command = (
    SpawnAgent
    | AgentCommand
    | ToolCommand
    | TaskCommand
    | BudgetCommand
    | StartRuntime
    | StopRuntime
    | TaskReport
    | TriggerCommand
    | TriggerReport
)
