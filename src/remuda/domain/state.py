"""The nouns, as immutable values, and the one container that holds them.

`State` is owned by the loop and updated only by `evolve`. What it holds is immutable, so anyone may keep an
`Agent` they were handed: it will not change under them. The three that change with nearly every event are named
tuples, because a copy of one with a field replaced costs an eighth of that of a frozen dataclass.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from remuda.domain.body import Begun, Left
from remuda.domain.ledger import Ledger
from remuda.domain.lifecycle import Phase, Stage, Status
from remuda.domain.spin import Trail
from remuda.domain.task import Staff, Task
from remuda.domain.trigger import Fired, Override, Sought


class Sender(StrEnum):
    """Who speaks. User and coordinator messages begin a new turn account; the system's do not."""

    USER = "user"
    COORDINATOR = "coordinator"
    AGENT = "agent"
    SYSTEM = "system"


class Outcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"  # the agent said so
    FAILED = "failed"  # the agent answered with an error
    INTERRUPTED = "interrupted"  # someone paused, stopped or ended the agent
    LOST = "lost"  # the process or the runtime died under it
    LIMITED = "limited"  # the model's service would not serve it now

    @property
    def answered(self) -> bool:
        """Whether the message was dealt with; if not, it goes back to the head of the queue."""
        return self in (Outcome.COMPLETED, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    sender: Sender
    author: str  # the agent's name, or "user", or "remuda"
    text: str
    at: float
    attempts: int = 0  # turns that were begun with it and cut short
    about: str = ""  # the task that it gives the agent to do; taken back with the task


@dataclass(frozen=True, slots=True)
class Question:
    """May the agent use a tool? It has the same id when it is asked again after a crash, and so keeps its answer."""

    id: str
    tool: str
    arguments: str  # JSON, shortened
    paths: tuple[str, ...]
    title: str
    asked_at: float
    epoch: int  # of the session that asks, or asked last
    allow: bool | None = None  # None: nobody has answered
    why: str = ""
    answered_by: str = ""
    given: bool = False  # the session that asks has the answer
    asking: int = 1  # how often it was asked: each time is owed its answer


@dataclass(frozen=True, slots=True)
class Turn:
    number: int  # on the project's one clock
    message: Message
    started_at: float


class Session(NamedTuple):
    epoch: int
    stage: Stage
    ref: str = ""  # the backend's id of the conversation
    resumes: str = ""  # the ref it was asked to go on from
    calls: int = 0  # the last model call that was counted
    errand: int = 0  # of the agent, that it was started for
    metered: bool = False  # its calls go through the meter, which counts them; what it tells itself is not added


@dataclass(frozen=True, slots=True)
class Usage:
    """One call to a model, as reported. Money is in whole billionths of a dollar, so that sums are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    context_tokens: int = 0
    context_window: int = 0
    cost_nanousd: int | None = None  # None: nobody knows the price


class Metrics(NamedTuple):
    """Token use of one agent over its whole life; the costs also of its present turn and session."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    context_tokens: int = 0  # in the window now
    context_window: int = 0
    turn_cost_nanousd: int = 0
    total_cost_nanousd: int = 0  # this session
    cumulative_cost_nanousd: int = 0  # all sessions
    unpriced_calls: int = 0  # calls whose cost nobody knows; the sums above leave them out
    updated_at: float = 0.0
    unpriced_tokens: int = 0  # in the unpriced calls


class Agent(NamedTuple):
    name: str
    role: str
    backend: str
    created_at: float
    active_at: float
    status: Status = Status.PENDING
    why: str = ""  # the reason of the present status
    parent: str = ""
    model: str = ""
    instructions: str = ""
    options: tuple[tuple[str, str], ...] = ()
    phase: Phase | None = None  # workers only
    task: str = ""
    session: Session | None = None
    turn: Turn | None = None
    queue: tuple[Message, ...] = ()
    turns: int = 0  # ended ones
    milliseconds: int = 0  # in those
    crashes: int = 0  # sessions lost since a turn was last answered
    limits: int = 0  # turns that the model's service would not serve since one was last answered
    rest_until: float = 0.0  # no turn is begun before; 0 for one that need not rest
    questions: tuple[Question, ...] = ()
    metrics: Metrics = Metrics()
    folder: str = ""  # where it works, from the project's root
    errand: int = 0  # counts the changes of folder: a session and its conversation belong to one
    tool: str = ""  # the one that ends a turn, if it was used in this turn
    reminders: int = 0  # in the present account
    idled: int = 0  # answered turns since its phase last changed
    trigger: Fired | None = None  # what stopped it, until it is let go on
    sought: Sought | None = None  # the verdict on that, until there is one
    override: Override | None = None  # the last verdict that let it go on
    trail: Trail = Trail()  # what tells work from going in circles
    after: str = ""  # the agent whose place it took
    restarts: tuple[float, ...] = ()  # when that happened, to it and to those before it
    begun: Begun | None = None  # what it found where its sessions run
    left: Left | None = None  # what there was after the last of them, where that is kept
    buried_at: float = 0.0  # 0 while its body lies there
    body_removed: bool = False
    ended_at: float = 0.0  # 0 while alive


@dataclass(slots=True)
class State:
    seq: int = 0  # the last event that is in it
    clock: int = 0  # the last turn's number, over all agents
    agents: dict[str, Agent] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    staff: Staff = field(default_factory=Staff)
    ledger: Ledger = field(default_factory=Ledger)
    recent: dict[str, int] = field(default_factory=dict)  # ids of the last commands -> seq of their first event
    runtime: str = ""  # the instance that is, or was last, up
    stopped_cleanly: bool = True
