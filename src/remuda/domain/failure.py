"""Why an agent could not go on, told apart, because each calls for something else.

An exit code or a stop reason says little: several programs report a failed model call as a turn that ended well. A
backend finds out what it was from what its program really says; what follows from it stands here, as a table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Failure(StrEnum):
    NOT_INSTALLED = "not_installed"
    NOT_LOGGED_IN = "not_logged_in"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CONTEXT_EXCEEDED = "context_exceeded"
    REFUSED = "refused"  # the model would not do it
    MALFORMED = "malformed"  # the program wrote what nobody can read
    SILENT = "silent"  # nothing at all for too long
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    BUDGET_SPENT = "budget_spent"  # Remuda would not pass the call on
    MODEL_ERROR = "model_error"  # the model's service said no, for a reason of its own


@dataclass(frozen=True, slots=True)
class Remedy:
    next_step: str
    passes: bool = False  # goes away by itself: wait and try again, it is not the agent's fault
    hopeless: bool = False  # trying again changes nothing until a person does something


REMEDY: Mapping[Failure, Remedy] = {
    Failure.NOT_INSTALLED: Remedy("install the program; `remuda agents` says how", hopeless=True),
    Failure.NOT_LOGGED_IN: Remedy("log the program in, or give it a key that is valid, then try again", hopeless=True),
    Failure.RATE_LIMITED: Remedy("nothing to do: it is tried again when the limit allows", passes=True),
    Failure.OVERLOADED: Remedy("nothing to do: it is tried again in a while", passes=True),
    Failure.CONTEXT_EXCEEDED: Remedy("give the work to a fresh session; this conversation is full"),
    Failure.REFUSED: Remedy("ask in another way, or give it to another model"),
    Failure.MALFORMED: Remedy("look at the wire transcript; the program and Remuda may be of different versions"),
    Failure.SILENT: Remedy("look at its last output; raise turns.silence_seconds if it is only slow"),
    Failure.CRASHED: Remedy("look at what it last wrote to stderr; a fresh session takes over"),
    Failure.CANCELLED: Remedy("send the message again if it should be done after all"),
    Failure.BUDGET_SPENT: Remedy("grant it more (`remuda budget grant`), or retire it"),
    Failure.MODEL_ERROR: Remedy("read the error: the model's service tells what it did not like"),
}
