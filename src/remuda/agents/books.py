"""Books that an agent keeps of its own and does not show in its protocol, for the agents whose protocol tells too
little: which model calls there were, what they used, and whether it is trying a failed one again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from remuda.agents import Retry
from remuda.agents.failures import Cause
from remuda.domain.state import Usage


@dataclass(frozen=True, slots=True)
class Kept:
    """A model call as it stands in the agent's books."""

    id: str
    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    calls: Sequence[Kept] = ()
    error: str = ""  # what the last call failed of, if it did
    cause: Cause | None = None


class Books(Protocol):
    """One session's. Both reads give nothing when the books cannot be read: a turn never fails for want of them."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the program must be started with so that its books can be read."""

    @property
    def env(self) -> Mapping[str, str]: ...

    async def page(self, ref: str, known: frozenset[str]) -> Page:
        """The calls of a conversation, at least all that are not `known`, oldest first."""

    async def retry(self, ref: str) -> Retry | None:
        """The failed call that it is about to try again, if it is."""
