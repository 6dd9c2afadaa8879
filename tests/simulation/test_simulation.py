"""The whole runtime on virtual time, in a world that does its worst: a thousand seeds, no violation."""

import logging
from collections.abc import Iterator

import pytest

from simulation.run import tell

pytestmark = pytest.mark.no_cover  # measuring it would take three times as long and show nothing new

SEEDS = 1000
CHUNK = 25


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Agents that fail on purpose are not worth a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def simulate(seed: int) -> str:
    try:
        return tell(seed).trace
    except BaseException as violation:
        violation.add_note(f"seed {seed} fails; replay it with: python -m tests.simulation {seed}")
        raise


def chunks() -> list[object]:
    """The first are quick enough for every day; all of them together take about a minute of one core."""
    return [
        pytest.param(first, marks=() if first < 2 * CHUNK else (pytest.mark.long,)) for first in range(0, SEEDS, CHUNK)
    ]


@pytest.mark.parametrize("first", chunks())
def test_no_seed_breaks_a_promise(first: int, request: pytest.FixtureRequest) -> None:
    chosen: list[int] = request.config.getoption("--seed")
    if chosen and first:
        pytest.skip("only the seeds that were asked for")
    for seed in chosen or range(first, first + CHUNK):
        simulate(seed)


def test_the_same_seed_tells_the_same_story_and_another_another() -> None:
    assert simulate(5) == simulate(5)
    assert simulate(5) != simulate(6)


def test_the_stories_are_worth_telling() -> None:
    """A simulation in which nothing happens would find nothing."""
    told = [tell(seed) for seed in range(20)]
    assert sum(each.answered for each in told) > 200
    assert sum(each.lives for each in told) > 40
    assert sum(each.events for each in told) > 4000
    assert sum(each.rests for each in told) > 20
    assert sum(each.given for each in told) > 100
    assert sum(each.merged for each in told) > 20
