"""What may be asked about triggers, verdicts and bodies."""

from dataclasses import dataclass

from remuda.domain.ledger import UNLIMITED, Limits
from remuda.domain.spin_reading import Reading
from remuda.domain.trigger import Course, Strategy, Trigger

AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class NudgeAgent:
    """Tell it that it goes in circles. A turn that is under way is cut: nobody reads mail in the middle of one."""

    agent: str
    rule: str
    evidence: str


@dataclass(frozen=True, slots=True)
class FireTrigger:
    agent: str
    trigger: Trigger
    evidence: str
    rule: str = ""
    numbers: tuple[tuple[str, int | float], ...] = ()


@dataclass(frozen=True, slots=True)
class SeekVerdict:
    """Ask whoever is responsible for the agent what is to become of it."""

    agent: str
    seconds: float  # to wait for an answer
    otherwise: Course  # what follows without one
    most: int = 3  # restarts,
    within: float = AN_HOUR  # in so many seconds


@dataclass(frozen=True, slots=True)
class GiveVerdict:
    agent: str
    course: Course
    by: str
    why: str = ""
    seconds: float = AN_HOUR  # that a continue holds for
    strategy: Strategy = Strategy.ONE
    backend: str = ""  # of the successor; empty: as before
    model: str = ""
    instructions: str = ""
    words: str = ""  # the first that the successor reads
    budget: Limits = UNLIMITED  # of the successor


@dataclass(frozen=True, slots=True)
class BuryAgent:
    """Let go of what a dead agent has left. Its name stays taken, and the log keeps its story."""

    agent: str
    by: str


@dataclass(frozen=True, slots=True)
class ReportSaidAgain:
    """The agent has said what it had said before."""

    agent: str
    epoch: int
    turn: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class ReportVerdictOverdue:
    agent: str
    epoch: int
    until: float


@dataclass(frozen=True, slots=True)
class ReportWorkKept:
    agent: str
    epoch: int
    commit: str
    note: str
    size: int


@dataclass(frozen=True, slots=True)
class ReportBodyRemoved:
    agent: str
    epoch: int
    files: int


TriggerCommand = NudgeAgent | FireTrigger | SeekVerdict | GiveVerdict | BuryAgent
TriggerReport = ReportSaidAgain | ReportVerdictOverdue | ReportWorkKept | ReportBodyRemoved
