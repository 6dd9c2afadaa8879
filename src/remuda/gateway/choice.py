"""What an intent comes to: which servers were meant, and how sure we are."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from remuda.runtime.tool_servers import ServerSettings


class Tier(StrEnum):
    CLEAR = "clear"  # one is meant: it is started
    CLOSE = "close"  # one of a few is meant: the model chooses
    WEAK = "weak"  # perhaps one of these
    NONE = "none"


class Offered(NamedTuple):
    server: str
    score: float
    why: str  # for the model


class Choice(NamedTuple):
    tier: Tier
    offered: tuple[Offered, ...] = ()


class Candidate(NamedTuple):
    """A server that may be chosen, and the tools that are known of it."""

    name: str
    settings: ServerSettings
    tools: Sequence[Mapping[str, Any]] = ()


Choose = Callable[[str, Sequence[Candidate]], Choice]
