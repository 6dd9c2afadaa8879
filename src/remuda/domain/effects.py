"""What is owed to the world. Plain data with all that is needed to do it, here or on another host.

An effect may be performed more than once (a crash between doing and reporting); its `key` names the result, and
performers make sure that one key has one result.
"""

from dataclasses import dataclass

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
    turn = effect.turn if isinstance(effect, RunTurn) else 0
    return type(effect).__name__, effect.agent, effect.epoch, turn
