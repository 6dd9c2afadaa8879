"""What may be spent and what was: the values of the ledger, and their arithmetic. All of it in whole numbers.

An account stands over an agent with all that it spawns (`agent:ada`), over what an agent spends itself (`own:ada`),
over a task with its parts (`task:t-1`), or over everything (`project`). It has limits in up to four measures. What an
agent was given is taken out of what its parent has: remaining = allocated - spent - delegated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

PROJECT = "project"

# What a token is taken to cost where nobody knows the price: as much as the dearest there are. A budget in dollars
# then still ends, and says so; it never counts an unknown price as nothing.
ASSUMED_NANOUSD = 75_000


class Measure(StrEnum):
    TOKENS = "tokens"
    NANOUSD = "nanousd"
    TURNS = "turns"
    MILLISECONDS = "milliseconds"


class Spend(NamedTuple):
    tokens: int = 0  # all of them: input, output, from the cache and into it
    nanousd: int = 0
    turns: int = 0
    milliseconds: int = 0  # in turns


class Limits(NamedTuple):
    """None: this measure is not limited here. 0: nothing of it may be spent."""

    tokens: int | None = None
    nanousd: int | None = None
    turns: int | None = None
    milliseconds: int | None = None


UNLIMITED = Limits()


class Account(NamedTuple):
    scope: str
    limits: Limits
    spent: Spend = Spend()
    reserved: Spend = Spend()  # by calls that are under way
    assumed_nanousd: int = 0  # the part of what was spent whose price nobody knows
    warned: int = 0  # per cent


class Reservation(NamedTuple):
    """A call that is under way, and what it may use at most."""

    agent: str
    turn: int
    scopes: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    nanousd: int
    priced: bool  # the money is by a price that is known

    @property
    def spend(self) -> Spend:
        return Spend(self.input_tokens + self.output_tokens, self.nanousd)


@dataclass(frozen=True, slots=True)
class Ledger:
    accounts: dict[str, Account] = field(default_factory=dict)
    open: dict[str, Reservation] = field(default_factory=dict)  # by `call_key`


def call_key(agent: str, epoch: int, call: int) -> str:
    return f"{agent}/{epoch}/{call}"


def plus(one: Spend, other: Spend) -> Spend:
    return Spend(*(a + b for a, b in zip(one, other, strict=True)))


def minus(one: Spend, other: Spend) -> Spend:
    return Spend(*(a - b for a, b in zip(one, other, strict=True)))


def limited(limits: Limits) -> Iterator[tuple[int, int]]:
    """Which measures are limited, and how far."""
    return ((index, limit) for index, limit in enumerate(limits) if limit is not None)


def percent(account: Account) -> int:
    """Of the measure that is nearest to its end."""
    parts = (account.spent[index] * 100 // limit if limit else 100 for index, limit in limited(account.limits))
    return max(parts, default=0)
