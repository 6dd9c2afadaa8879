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
