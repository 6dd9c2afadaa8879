"""What is owed to the world. Plain data with all that is needed to do it, here or on another host.

An effect may be performed more than once (a crash between doing and reporting); its `key` names the result, and
performers make sure that one key has one result.
"""

from dataclasses import dataclass
from typing import assert_never

from remuda.domain.state import Message


@dataclass(frozen=True, slots=True)
class StartSession:
    agent: str
    epoch: int
    backend: str
    role: str
    model: str
    instructions: str
    options: tuple[tuple[str, str], ...]
    resumes: str


@dataclass(frozen=True, slots=True)
class RunTurn:
    agent: str
    epoch: int
    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class EndSession:
    agent: str
    epoch: int
    gentle: bool


Effect = StartSession | RunTurn | EndSession

Key = tuple[str, str, int, int]


def key(effect: Effect) -> Key:
    """To end a session at once is another thing than to end it gently: the one must be able to overtake the other."""
    match effect:
        case StartSession():
            part = 0
        case RunTurn():
            part = effect.turn
        case EndSession():
            part = int(effect.gentle)
        case _:
            assert_never(effect)
    return type(effect).__name__, effect.agent, effect.epoch, part
