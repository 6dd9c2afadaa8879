"""The loopback model proxy that counts and stops.

An agent's program is pointed at it by its own base-URL setting and speaks to it as to the model's service, with its
session's token for a key. The real address and key stay here. Before a call is passed on, what it may cost at most is
reserved; afterwards what it did cost is settled. What comes back is passed through byte for byte; only a copy is read.
"""

from dataclasses import dataclass
from typing import Protocol

from remuda.domain.state import Usage


@dataclass(frozen=True, slots=True)
class Seat:
    """Whose call it is: the session that the token was given to."""

    agent: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call may use at most, before it is made."""

    model: str
    input_tokens: int
    output_tokens: int  # as the caller limits it, or as much as the model can give
    floor: int = 1  # less output than this is of no use: then it is better refused


@dataclass(frozen=True, slots=True)
class Grant:
    seat: Seat
    call: int  # counts up within the session
    model: str
    output_tokens: int | None = None  # at most so many; None: nothing limits this agent


@dataclass(frozen=True, slots=True)
class Refusal:
    why: str


class Ledger(Protocol):
    """Who knows what is left. Reserve before spend, settle after, each grant once."""

    def limited(self, seat: Seat) -> bool:
        """Whether any budget stands over this agent. If not, nobody need read its calls before they are made."""

    async def reserve(self, seat: Seat, estimate: Estimate) -> Grant | Refusal:
        """What may be used, when that is certain and kept."""

    def settle(self, grant: Grant, usage: Usage | None) -> None:
        """What the call used. None: nobody will ever know, and all that was reserved counts as spent."""
