"""Whose body has no room any more: nobody's where nothing is limited, and else the oldest."""

import pytest

from domain.drive import Project
from remuda.domain.commands import RetireAgent
from remuda.domain.trigger_commands import BuryAgent
from remuda.watch.bodies import Room, to_bury

NAMES = ("ada", "bob", "cyd", "dot")


@pytest.fixture
def graveyard() -> Project:
    """Four that died 100 s apart, the first three of them with 10 bytes each; the fourth is not kept yet. One lives."""
    project = Project()
    project.ready(name="eve")
    for name in NAMES:
        project.ready(name=name)
        project.now = 1000.0 + 100 * NAMES.index(name)
        project.do(RetireAgent(name))
        project.ended(name)
        if name != "dot":
            project.kept(name, size=10)
    return project


DIED = 1001.0  # the first; the others 100 s later each
FOREVER = 1e12


@pytest.mark.parametrize(
    ("room", "now", "gone"),
    [
        (Room(), FOREVER, ""),
        (Room(seconds=50.0), DIED + 49.0, ""),
        (Room(seconds=50.0), DIED + 50.0, "ada"),
        (Room(seconds=50.0), DIED + 249.0, "ada bob"),
        (Room(seconds=50.0), FOREVER, "ada bob cyd"),
        (Room(bodies=4), DIED, ""),
        (Room(bodies=3), DIED, "ada"),
        (Room(bodies=1), DIED, "ada bob cyd"),
        (Room(bytes=30), DIED, ""),
        (Room(bytes=29), DIED, "ada"),
        (Room(bytes=1), DIED, "ada bob cyd"),
        (Room(seconds=50.0, bodies=3, bytes=10), DIED + 60.0, "ada bob"),
    ],
)
def test_the_oldest_go_first_and_no_more_than_must(graveyard: Project, room: Room, now: float, gone: str) -> None:
    assert to_bury(graveyard.state.agents.values(), room, now) == gone.split()
    for name in gone.split():
        graveyard.do(BuryAgent(name, "remuda"))
    assert to_bury(graveyard.state.agents.values(), room, now) == []
