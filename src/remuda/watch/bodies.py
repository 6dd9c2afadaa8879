"""Says whose body is to go, where the settings limit how many may lie there, how old and how large they may get.

What is over a limit is only known by the clock, so this is asked from time to time (runtime/upkeep.py) and not by an
event. Whom it names is buried through the door, like by hand.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remuda.domain.burial import unkept
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent


@dataclass(frozen=True, slots=True)
class Room:
    """0: no limit of that kind."""

    seconds: float = 0.0  # that a body may lie there
    bodies: int = 0
    bytes: int = 0  # of transcripts

    @property
    def limited(self) -> bool:
        return self != Room()


def to_bury(agents: Iterable[Agent], room: Room, now: float) -> list[str]:
    """Those that have no room any more, the oldest first. Who has just died counts, and goes when it is kept."""
    dead = [agent for agent in agents if agent.status in DEAD and not agent.buried_at]
    dead.sort(key=lambda agent: (agent.ended_at, agent.name))
    left, size, going = len(dead), sum(map(_size, dead)), []
    for agent in dead:
        old = 0 < room.seconds <= now - agent.ended_at
        if not (old or 0 < room.bodies < left or 0 < room.bytes < size):
            break
        left, size = left - 1, size - _size(agent)
        if not unkept(agent):
            going.append(agent.name)
    return going


def _size(agent: Agent) -> int:
    return agent.left.size if agent.left else 0
