"""What may be asked about budgets, by people and agents, by the meter, and by the watch over them."""

from dataclasses import dataclass

from remuda.domain.ledger import Limits, Measure
from remuda.domain.state import Usage


@dataclass(frozen=True, slots=True)
class SetBudget:
    """Limits as they are to be from now on. Measures that are not named stay as they are."""

    scope: str
    limits: Limits
    lift: tuple[Measure, ...] = ()  # these are not limited any more
    by: str = "user"
    why: str = ""


@dataclass(frozen=True, slots=True)
class GrantBudget:
    """So much more of what is limited already."""

    scope: str
    more: Limits
    by: str = "user"
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReserveBudget:
    """A call that is to be made. Conflict: not now, because of other calls that are under way."""

    agent: str
    epoch: int
    call: int  # counts up within the session
    input_tokens: int  # at most
    output_tokens: int  # as many as are wanted
    floor: int = 1  # as many as are of any use
    input_nanousd: int | None = None  # for all the input, at most; None: nobody knows the price
    output_nanousd: int = 0  # for each token of output


@dataclass(frozen=True, slots=True)
class SettleBudget:
    """The call is over. None: nobody will know what it used, and all that was reserved counts as spent."""

    agent: str
    epoch: int
    call: int
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class CheckBudget:
    """Whether the agent may go on: what it tells of its own calls may have passed the limit, or its time may be up."""

    agent: str


BudgetCommand = SetBudget | GrantBudget | ReserveBudget | SettleBudget | CheckBudget
