"""A trigger: a reason to fish or cut bait. It has fired on evidence, and somebody is to decide what follows."""

from dataclasses import dataclass
from enum import StrEnum


class Trigger(StrEnum):
    BUDGET = "budget"  # what it may spend is spent
    STALL = "stall"  # nothing comes from it any more
    SPIN = "spin"  # it goes round in circles
    CHANGESET = "changeset"  # what it makes is beyond repair
    GANG = "gang"  # it and all that it spawned are on the wrong path


@dataclass(frozen=True, slots=True)
class Fired:
    trigger: Trigger
    turn: int  # in which it fired; 0: between turns
    at: float
    evidence: str  # for people
    numbers: tuple[tuple[str, int | float], ...] = ()  # for programs
    rule: str = ""  # which of the trigger's rules it was


class Course(StrEnum):
    """What follows from a trigger."""

    REAP = "reap"  # cut bait
    RESTART = "restart"  # a successor tries in another way
    CONTINUE = "continue"  # fish: it was right after all
    WAIT = "wait"  # only where nobody answers: until somebody does


class Strategy(StrEnum):
    ONE = "restart-one"
    ALL = "restart-all"  # and its siblings with it
    REVERT = "revert"  # to a checkpoint


@dataclass(frozen=True, slots=True)
class Sought:
    """A verdict is asked for."""

    judge: str  # the agent that was asked, or "user"
    until: float  # then it is as `otherwise` says; 0: for as long as it takes
    otherwise: Course
    most: int  # restarts,
    within: float  # in so many seconds; more is giving up
    seconds: float  # that there were to answer


@dataclass(frozen=True, slots=True)
class Override:
    """Somebody has said that it may go on: the trigger does not fire again before."""

    trigger: Trigger
    by: str
    until: float
