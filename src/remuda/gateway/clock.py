"""The turn clock and the idle rule. Pure: what happened comes in, who has to leave comes out.

One clock counts for all servers, because turns of different clocks cannot be compared: a server is idle when others
have been used in the meantime, not when time has passed. What a turn is depends on who counts:

    calls    a bare client, of which only its calls are seen: each of them is a turn
    told     the runtime knows the turns of the agent that it supervises; some clients send the id of theirs

A server leaves when it was last used `N` or more turns ago, unless it is pinned, has a call in flight, or was used less
than so many seconds ago.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

Counting = Literal["calls", "told"]


class Happening(StrEnum):
    INTENT = "intent"  # an intent was resolved, and starts a server where one is meant
    LOOK = "look"  # a server is started to see whether it has the tool that is called
    STARTED = "started"  # either is over, however it ended
    CALL = "call"  # a call was routed to a server
    ANSWER = "answer"  # and is over, however it ended
    TURN = "turn"  # whoever knows says that a turn is over


class Rule(NamedTuple):
    advances: bool
    marks: bool  # the server as used in this turn
    flies: int  # what is under way with it, more or less
    sweeps: bool


TABLE: Mapping[Counting, Mapping[Happening, Rule]] = {
    "calls": {
        Happening.INTENT: Rule(advances=True, marks=True, flies=1, sweeps=False),
        Happening.LOOK: Rule(advances=False, marks=True, flies=1, sweeps=False),
        Happening.STARTED: Rule(advances=False, marks=True, flies=-1, sweeps=False),
        Happening.CALL: Rule(advances=True, marks=True, flies=1, sweeps=False),
        Happening.ANSWER: Rule(advances=False, marks=True, flies=-1, sweeps=True),
        Happening.TURN: Rule(advances=True, marks=False, flies=0, sweeps=True),
    },
    "told": {
        Happening.INTENT: Rule(advances=False, marks=True, flies=1, sweeps=False),
        Happening.LOOK: Rule(advances=False, marks=True, flies=1, sweeps=False),
        Happening.STARTED: Rule(advances=False, marks=True, flies=-1, sweeps=False),
        Happening.CALL: Rule(advances=False, marks=True, flies=1, sweeps=False),
        Happening.ANSWER: Rule(advances=False, marks=True, flies=-1, sweeps=False),
        Happening.TURN: Rule(advances=True, marks=False, flies=0, sweeps=True),
    },
}


class Idle(NamedTuple):
    """When a server has to leave."""

    turns: int
    seconds: float = 0.0
    pinned: bool = False


class Use(NamedTuple):
    turn: int
    at: float  # seconds, on any clock that only goes forward
    flying: int = 0


class Clock(NamedTuple):
    turn: int = 0
    uses: Mapping[str, Use] = {}  # the last of each server, until it leaves


NOBODY: Mapping[str, int] = {}


class Ticked(NamedTuple):
    clock: Clock
    leaving: Mapping[str, int]  # servers, and for how many turns each was idle


def tick(
    clock: Clock, counting: Counting, happening: Happening, rules: Mapping[str, Idle], server: str, now: float
) -> Ticked:
    """What a happening makes of the clock, and which servers leave for it. `server` is empty where none is meant."""
    rule = TABLE[counting][happening]
    turn, uses = clock.turn + rule.advances, clock.uses
    if server and rule.marks and (server in uses or rule.flies >= 0):
        flying = uses[server].flying if server in uses else 0
        uses = {**uses, server: Use(turn, now, max(0, flying + rule.flies))}
    ticked = Clock(turn, uses)
    if not rule.sweeps:
        return Ticked(ticked, NOBODY)
    leaving = {name: turn - use.turn for name, use in uses.items() if _leaves(use, rules.get(name), turn, now)}
    return Ticked(forget(ticked, leaving), leaving) if leaving else Ticked(ticked, NOBODY)


def _leaves(use: Use, rule: Idle | None, turn: int, now: float) -> bool:
    if use.flying or rule is None or rule.pinned:
        return False
    return turn - use.turn >= rule.turns and now - use.at >= rule.seconds


def forget(clock: Clock, servers: Iterable[str]) -> Clock:
    """These no longer run, whyever."""
    gone = set(servers)
    return Clock(clock.turn, {server: use for server, use in clock.uses.items() if server not in gone})
