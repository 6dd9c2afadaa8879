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


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait, and say when it is over."""

    agent: str
    epoch: int
    until: float


@dataclass(frozen=True, slots=True)
class GiveAnswer:
    """Tell the session that asks what was decided."""

    agent: str
    epoch: int
    question_id: str
    asking: int
    allow: bool
    why: str


Effect = StartSession | RunTurn | EndSession | Rest | GiveAnswer

Key = tuple[str, str, int, int | float | str]


def key(effect: Effect) -> Key:
    """To end a session at once is another thing than to end it gently: the one must be able to overtake the other."""
    match effect:
        case StartSession():
            part: int | float | str = 0
        case RunTurn():
            part = effect.turn
        case EndSession():
            part = int(effect.gentle)
        case Rest():
            part = effect.until
        case GiveAnswer():
            part = f"{effect.question_id} {effect.asking}"
        case _:
            assert_never(effect)
    return type(effect).__name__, effect.agent, effect.epoch, part
