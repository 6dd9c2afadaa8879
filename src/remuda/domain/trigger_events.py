"""What has happened about triggers, verdicts and bodies."""

from dataclasses import dataclass

from remuda.domain.spin_reading import Reading
from remuda.domain.state import Message
from remuda.domain.trigger import Course, Sought, Strategy, Trigger


@dataclass(frozen=True, slots=True)
class AgentNudged:
    """A word before the trigger fires. It is read before all other mail."""

    agent: str
    epoch: int
    turn: int
    rule: str
    evidence: str
    message: Message
    queue_count: int


@dataclass(frozen=True, slots=True)
class SaidAgain:
    agent: str
    epoch: int
    turn: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class VerdictSought:
    agent: str
    trigger: Trigger
    sought: Sought


@dataclass(frozen=True, slots=True)
class VerdictReached:
    agent: str
    trigger: Trigger
    course: Course
    by: str
    why: str
    until: float = 0.0  # that a continue holds
    strategy: Strategy = Strategy.ONE
    successor: str = ""


@dataclass(frozen=True, slots=True)
class AgentSucceeded:
    """A new agent takes the place of one that was cut."""

    agent: str
    after: str
    restarts: tuple[float, ...]  # when it and those before it were restarted, the last few


@dataclass(frozen=True, slots=True)
class WorkKept:
    """What the agent had made when its session was over is safe from whatever others change."""

    agent: str
    epoch: int
    commit: str
    note: str
    size: int


@dataclass(frozen=True, slots=True)
class AgentBuried:
    agent: str
    by: str


@dataclass(frozen=True, slots=True)
class BodyRemoved:
    agent: str
    files: int


TriggerEvent = (
    AgentNudged | SaidAgain | VerdictSought | VerdictReached | AgentSucceeded | WorkKept | AgentBuried | BodyRemoved
)
