"""Whether an agent goes in circles.

Repetition alone does not tell: to run the tests after each edit is work. Novelty alone does not either: an agent that
looks for a compiler that is not there always finds a new place to look in. So each step is read as one sign of
getting on or of not getting on (`WEIGHT`), and the signs since the last fresh change are added up. A fresh change of
the working tree ends the count: repetition with progress is work. Beside it, calls that go round with the same
outcome are counted as rounds, because that is certain sooner.

It is a fold: `follow(trail, reading)` gives the trail after one more step. A trail is small, immutable and bounded, so
that it can live in an agent's state, outlast a restart, and be tested on recorded runs (`remuda dev spin`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from remuda.domain.spin_reading import Reading
from remuda.domain.spin_tools import Kind

MEMORY = 40  # steps that are remembered; what was longer ago is new again
PLACES = 80  # files that are known to have been looked at
LONGEST_CYCLE = 5  # steps


class Sign(StrEnum):
    CHANGE = "change"  # the working tree is as it never was before
    NEWS = "news"  # something that it did not know
    NEITHER = "neither"  # a failure that explains itself, a job that is still running, a thing done in silence
    FAILURE = "failure"
    OLD_GROUND = "old_ground"  # more of a file that it has looked at before
    EMPTY = "empty"  # a search that found nothing
    ECHO = "echo"  # a look that shows what another has shown
    REDONE = "redone"  # a change that was made before, or that changed nothing
    FAILED_AGAIN = "failed_again"
    AGAIN = "again"  # the same call with the same outcome
    SAID_AGAIN = "said_again"


WEIGHT: Mapping[Sign, float] = {
    Sign.CHANGE: 0.0,  # ends the count
    Sign.NEWS: -0.5,
    Sign.NEITHER: 0.0,
    Sign.FAILURE: 0.5,
    Sign.OLD_GROUND: 0.5,
    Sign.EMPTY: 1.0,
    Sign.ECHO: 1.0,
    Sign.REDONE: 1.0,
    Sign.FAILED_AGAIN: 1.0,
    Sign.AGAIN: 1.0,
    Sign.SAID_AGAIN: 1.0,
}


class Rule(StrEnum):
    CYCLE = "cycle"
    SAME_ERROR = "same_error"
    REREADING = "rereading"
    REPETITION = "repetition"
    LOOPING_MESSAGE = "looping_message"


# What the signs that weigh most are called. The order settles a tie.
_RULE: Mapping[Rule, frozenset[Sign]] = {
    Rule.SAME_ERROR: frozenset({Sign.FAILURE, Sign.FAILED_AGAIN}),
    Rule.REREADING: frozenset({Sign.OLD_GROUND, Sign.EMPTY, Sign.ECHO}),
    Rule.REPETITION: frozenset({Sign.AGAIN, Sign.REDONE}),
    Rule.LOOPING_MESSAGE: frozenset({Sign.SAID_AGAIN}),
}


class Print(NamedTuple):
    """What is remembered of a step."""

    exact: int
    call: int
    outcome: int
    gist: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    nudge: float = 6.0  # points since the last fresh change
    fire: float = 14.0
    nudge_rounds: int = 3  # of the same calls with the same outcome
    fire_rounds: int = 6


class Level(StrEnum):
    NUDGE = "nudge"
    FIRE = "fire"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    rule: Rule
    evidence: str
    numbers: tuple[tuple[str, float], ...]


class Trail(NamedTuple):
    steps: int = 0
    points: float = 0.0
    since: tuple[Sign, ...] = ()  # the signs since the last fresh change
    prints: tuple[Print, ...] = ()
    places: tuple[int, ...] = ()
    reach: tuple[tuple[int, int], ...] = ()  # the last line that was asked for, of each of those places
    trees: tuple[str, ...] = ()
    level: Level | None = None  # what has been said of it, until the agent gets on
    last: str = ""


def follow(trail: Trail, reading: Reading) -> Trail:
    """The trail after one more step."""
    sign = sign_of(trail, reading)
    fresh = sign is Sign.CHANGE
    points = 0.0 if fresh else max(0.0, trail.points + WEIGHT[sign])
    named = reading.places
    return Trail(
        steps=trail.steps + 1,
        points=points,
        since=() if fresh else (*trail.since, sign)[-MEMORY:],
        prints=(*trail.prints, Print(reading.exact, reading.call, reading.outcome, reading.gist))[-MEMORY:],
        places=(*(each for each in trail.places if each not in named), *named)[-PLACES:],
        reach=_reach(trail, reading),
        trees=trail.trees if _known_tree(trail, reading) else (*trail.trees, reading.tree)[-MEMORY:],
        level=trail.level if points else None,
        last=reading.shown,
    )


def told(trail: Trail, level: Level) -> Trail:
    """Each level is said once, until the agent gets on."""
    return trail._replace(level=level)


# --- one step ---


def sign_of(trail: Trail, reading: Reading) -> Sign:
    if trail.trees and not _known_tree(trail, reading):
        return Sign.CHANGE
    match reading.kind:
        case Kind.WAIT:
            return Sign.NEITHER
        case Kind.CHANT:
            return Sign.SAID_AGAIN
        case Kind.SAY:
            return Sign.SAID_AGAIN if _exactly_again(trail, reading) else Sign.NEITHER
        case Kind.NOTE:  # to note that one goes on is not to go on, nor to stand still
            return Sign.AGAIN if _exactly_again(trail, reading) else Sign.NEITHER
        case _:
            return _sign_of_failure(trail, reading) if reading.failed else _sign_of_success(trail, reading)


def _known_tree(trail: Trail, reading: Reading) -> bool:
    return not reading.tree or reading.tree in trail.trees


def _exactly_again(trail: Trail, reading: Reading) -> bool:
    return any(each.exact == reading.exact and each.outcome == reading.outcome for each in trail.prints)


def _again(trail: Trail, reading: Reading) -> bool:
    return any(each.call == reading.call and each.outcome == reading.outcome for each in trail.prints)


def _shown_before(trail: Trail, reading: Reading) -> bool:
    return any(each.outcome == reading.outcome for each in trail.prints)


def _in_other_words(trail: Trail, reading: Reading) -> bool:
    """Whether it looks for something else in the same way as just before, and fails in the same way."""
    return bool(reading.gist and trail.prints) and trail.prints[-1].gist == reading.gist


def _sign_of_failure(trail: Trail, reading: Reading) -> Sign:
    if _again(trail, reading):
        return Sign.AGAIN
    same = _shown_before(trail, reading) or _in_other_words(trail, reading)
    if reading.tests and not same:
        return Sign.NEWS  # tests that fail in another way than before
    if reading.telling and not same:
        return Sign.NEITHER
    return Sign.FAILED_AGAIN if same or any(each.call == reading.call for each in trail.prints) else Sign.FAILURE


def _sign_of_success(trail: Trail, reading: Reading) -> Sign:
    look = reading.kind == Kind.LOOK
    if reading.kind == Kind.WRITE:
        # Where the tree is measured, it has just been found to be as it was before; else a new call is trusted.
        measured = bool(reading.tree and trail.trees)
        done = measured or any(each.exact == reading.exact for each in trail.prints)
        return Sign.REDONE if done else Sign.CHANGE
    if _again(trail, reading):
        return Sign.AGAIN
    if reading.empty:
        return Sign.EMPTY if look else Sign.NEITHER
    if look and not reading.untold and _shown_before(trail, reading):
        return Sign.ECHO
    known = look and all(place in trail.places for place in reading.places)
    return Sign.OLD_GROUND if known and not _onward(trail, reading) else Sign.NEWS


def _onward(trail: Trail, reading: Reading) -> bool:
    """Whether it reads on in a long file, from beyond all that it has asked for so far."""
    reached = [line for place, line in trail.reach if place in reading.places]
    return bool(reached) and reading.lines[0] > max(reached)


def _reach(trail: Trail, reading: Reading) -> tuple[tuple[int, int], ...]:
    if not reading.lines[1] or len(reading.places) != 1:
        return trail.reach
    (place,) = reading.places
    last = max([reading.lines[1], *(line for known, line in trail.reach if known == place)])
    return (*(each for each in trail.reach if each[0] != place), (place, last))[-PLACES:]


# --- all of them ---


def judge(trail: Trail, limits: Limits) -> Finding | None:
    """What is to be said of the trail now, and has not been said yet."""
    length, rounds = _rounds(trail)
    numbers: tuple[tuple[str, float], ...]
    if rounds >= limits.nudge_rounds and trail.points:
        level = Level.FIRE if rounds >= limits.fire_rounds else Level.NUDGE
        rule, numbers = Rule.CYCLE, (("rounds", rounds), ("steps", length))
        evidence = f"{_steps(length)} with the same outcome, {rounds} times in a row; the last: {trail.last}"
        if not _known(trail, level):
            return Finding(level, rule, evidence, numbers)
    if trail.points < limits.nudge:
        return None
    level = Level.FIRE if trail.points >= limits.fire else Level.NUDGE
    if _known(trail, level):
        return None
    rule = max(_RULE, key=lambda each: sum(WEIGHT[sign] for sign in trail.since if sign in _RULE[each]))
    numbers = (("points", trail.points), ("steps", len(trail.since)))
    return Finding(level, rule, f"{_told(trail)}; the last: {trail.last}", numbers)


def _known(trail: Trail, level: Level) -> bool:
    return trail.level is Level.FIRE or trail.level is level


def _rounds(trail: Trail) -> tuple[int, int]:
    """The shortest cycle that the last steps go round in, and how often they have, since the last fresh change."""
    prints = trail.prints[-len(trail.since) :] if trail.since else ()
    best = (0, 0)
    for length in range(1, LONGEST_CYCLE + 1):
        same = 0
        while same < len(prints) - length and _alike(prints[-1 - same], prints[-1 - same - length]):
            same += 1
        rounds = same // length + 1
        if rounds > best[1]:
            best = (length, rounds)
    return best


def _alike(one: Print, other: Print) -> bool:
    return one.exact == other.exact and one.outcome == other.outcome


def _steps(length: int) -> str:
    return "the same call" if length == 1 else f"the same {length} calls"


def _told(trail: Trail) -> str:
    counts = {sign: trail.since.count(sign) for sign in Sign if WEIGHT[sign] > 0 and sign in trail.since}
    what = ", ".join(f"{number} {_WORDS[sign]}" for sign, number in counts.items())
    return f"in {len(trail.since)} steps without a fresh change: {what}"


_WORDS: Mapping[Sign, str] = {
    Sign.FAILURE: "that failed",
    Sign.OLD_GROUND: "looks at known files",
    Sign.EMPTY: "searches that found nothing",
    Sign.ECHO: "looks that showed nothing new",
    Sign.REDONE: "changes made before",
    Sign.FAILED_AGAIN: "that failed again",
    Sign.AGAIN: "calls repeated with the same outcome",
    Sign.SAID_AGAIN: "messages said before",
}
