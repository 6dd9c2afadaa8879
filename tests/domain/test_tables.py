"""The tables, cell by cell."""

from itertools import product

import pytest

from remuda.domain.errors import Refused
from remuda.domain.events import AgentSpawned, SessionEnded, SessionRequested, SessionStarted, StatusChanged
from remuda.domain.evolve import evolve_agent, spawned
from remuda.domain.lifecycle import DEAD, PHASE, STAGE, STATUS, Phase, Stage, Status, check_move, check_phase
from remuda.domain.state import Agent


@pytest.mark.parametrize(("was", "now"), list(product(Status, Status)))
def test_a_status_changes_as_the_table_says_or_the_possible_ones_are_named(was: Status, now: Status) -> None:
    if now in STATUS[was]:
        check_move("worker-1", was, now)
        return
    with pytest.raises(Refused, match=f"worker-1 is {was} and cannot become {now}") as refused:
        check_move("worker-1", was, now)
    assert refused.value.possible == tuple(STATUS[was])
    assert all(each in str(refused.value) for each in STATUS[was])


@pytest.mark.parametrize(("was", "now"), list(product(Phase, Phase)))
def test_a_phase_changes_as_the_table_says_or_the_possible_ones_are_named(was: Phase, now: Phase) -> None:
    if now in PHASE[was]:
        check_phase("worker-1", was, now)
        return
    with pytest.raises(Refused, match=f"worker-1 is {was} and cannot become {now}") as refused:
        check_phase("worker-1", was, now)
    assert refused.value.possible == tuple(PHASE[was])


def _with_session(stage: Stage) -> Agent:
    """An agent whose session is at a stage, by the events that bring it there."""
    agent = evolve_agent(
        spawned(AgentSpawned("a", "worker", "scripted", "", "", "", ()), 1.0), SessionRequested("a", 1, ""), 1.0
    )
    if stage is not Stage.REQUESTED:
        agent = evolve_agent(agent, SessionStarted("a", 1, "ref"), 2.0)
    if stage is Stage.ENDING:
        agent = evolve_agent(agent, StatusChanged("a", Status.READY, Status.PAUSED, ""), 3.0)
    if stage is Stage.ENDED:
        agent = evolve_agent(agent, SessionEnded("a", 1, "", None, crashed=False), 3.0)
    return agent


@pytest.mark.parametrize(("was", "now"), list(product(Stage, (Stage.STARTED, Stage.ENDED))))
def test_a_log_that_takes_a_session_where_the_table_does_not_is_not_believed(was: Stage, now: Stage) -> None:
    event = SessionStarted("a", 1, "") if now is Stage.STARTED else SessionEnded("a", 1, "", None, crashed=False)
    if now in STAGE[was]:
        after = evolve_agent(_with_session(was), event, 9.0).session
        assert after is not None
        assert after.stage is now
        return
    with pytest.raises(AssertionError, match=f"takes a session from {was} to {now}"):
        evolve_agent(_with_session(was), event, 9.0)


def test_the_dead_are_those_with_no_way_out() -> None:
    assert {Status.RETIRED, Status.FAILED, Status.REAPED} == DEAD
    assert all(STATUS[status] == () for status in DEAD)


@pytest.mark.parametrize(("table", "states"), [(STATUS, Status), (PHASE, Phase), (STAGE, Stage)])
def test_a_table_has_a_row_for_every_state_and_leads_only_to_states_it_has(
    table: dict[str, tuple[str, ...]], states: type[Status] | type[Phase] | type[Stage]
) -> None:
    assert set(table) == set(states)
    assert {after for row in table.values() for after in row} <= set(states)
    assert all(before not in row and len(row) == len(set(row)) for before, row in table.items())
