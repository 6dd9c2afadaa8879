"""Every kind of reachable state against every command and report."""

from collections.abc import Iterator
from typing import get_args

import pytest

from domain.drive import Project, replay
from domain.explore import Kind, Step, everything, reachable
from domain.invariants import STAGES, stage
from remuda.domain.budget_commands import BudgetCommand
from remuda.domain.commands import Command, ReportSessionStarted
from remuda.domain.errors import Refused, RemudaError, UnknownAgent
from remuda.domain.events import SessionRequested, StatusChanged, TurnStarted
from remuda.domain.evolve import evolve
from remuda.domain.lifecycle import DEAD, STAGE, STATUS, Stage, Status
from remuda.domain.task_commands import TaskCommand, TaskReport, ToolCommand
from remuda.domain.trigger_commands import ReportWorkKept, TriggerCommand, TriggerReport


def kinds() -> list[Kind]:
    return [kind for kind in reachable() if kind is not None]


def steps(status: Status | None = None) -> Iterator[Step]:
    for kind, found in reachable().items():
        if status is None or (kind is not None and kind.status is status):
            yield from found


def test_every_kind_of_command_and_report_is_tried() -> None:
    """Those about tasks have tests of their own."""
    about_tasks = set(get_args(TaskCommand)) | set(get_args(TaskReport)) | set(get_args(ToolCommand))
    of_triggers = {*get_args(TriggerCommand), *get_args(TriggerReport)} - {ReportWorkKept}
    elsewhere = about_tasks | set(get_args(BudgetCommand)) | of_triggers
    assert {type(command) for command in everything(Project())} == set(get_args(Command)) - elsewhere


def test_every_status_is_reached_with_each_stage_its_session_can_have() -> None:
    expected = {(status, stage) for status, stages in STAGES.items() for stage in stages}
    assert {(kind.status, kind.stage) for kind in kinds()} == expected


def test_every_arc_of_the_status_table_is_walked_by_commands_and_no_other_is() -> None:
    arcs = {(status, after) for status, following in STATUS.items() for after in following}
    walked = {(event.was, event.now) for step in steps() for event in step.events if isinstance(event, StatusChanged)}
    assert walked == arcs


def test_every_arc_of_the_stage_table_is_walked_by_commands_and_no_other_is() -> None:
    arcs = {(before, after) for before, following in STAGE.items() for after in following}
    assert {arc for step in steps() for arc in _stage_arcs(step)} == arcs


def _stage_arcs(step: Step) -> Iterator[tuple[Stage, Stage]]:
    """Event by event: a session that ends and is followed at once shows its end nowhere else."""
    seen = step.before.branch()
    if isinstance(step.after, RemudaError) or not seen.state.agents:
        return
    for record in step.after.log[len(seen.log) :]:
        was = seen.agent().session
        now = evolve(seen.state, record).agents[seen.agent().name].session
        if was and now and was.epoch == now.epoch and was.stage is not now.stage:
            yield was.stage, now.stage


@pytest.mark.parametrize("status", list(Status))
def test_in_any_state_a_command_leads_on_or_is_refused_in_a_sentence(status: Status) -> None:
    """That the states it leads to keep every invariant is checked on the way, by Project.do."""
    refused = 0
    for step in steps(status):
        if isinstance(step.after, RemudaError):
            refused += 1
            assert len(str(step.after).split()) >= 4, f"{step.command}: {step.after!r} is no sentence"
            assert step.after.exit_code in (2, 3), f"{step.command}: the caller is to blame, not {step.after!r}"
        else:
            assert step.events, f"{step.command} was accepted and nothing happened"
    assert refused


@pytest.mark.parametrize("status", list(Status))
def test_a_refused_move_names_exactly_the_moves_that_the_table_has(status: Status) -> None:
    for step in steps(status):
        if isinstance(step.after, Refused) and "cannot become" in step.after.message:
            assert step.after.possible == tuple(STATUS[status])


@pytest.mark.parametrize("dead", sorted(DEAD))
def test_nothing_brings_the_dead_back_or_gives_them_a_turn(dead: Status) -> None:
    for step in steps(dead):
        if isinstance(step.after, Project):
            was, now = step.before.agent(), step.after.agent()
            assert now.status is dead, f"{step.command} moved a {dead} agent"
            assert (now.queue, now.ended_at) == (was.queue, was.ended_at), f"{step.command} changed a {dead} agent"
            assert not any(isinstance(event, TurnStarted | SessionRequested) for event in step.events), step.command


def test_a_session_once_ended_is_never_anything_else() -> None:
    for step in steps():
        if isinstance(step.after, Project) and step.before.state.agents:
            was, now = step.before.agent(), step.after.agent()
            if stage(was) is Stage.ENDED and was.session and now.session and was.session.epoch == now.session.epoch:
                assert was.session == now.session, step.command


def test_every_reachable_state_is_the_same_when_replayed_from_its_log() -> None:
    for found in reachable().values():
        assert replay(found[0].before.log) == found[0].before.state


def test_a_report_of_an_agent_that_never_was_is_refused_with_the_names_that_are() -> None:
    project = Project()
    project.spawn()
    with pytest.raises(UnknownAgent, match=r"there is no agent 'ghost'.*possible: worker-1"):
        project.do(ReportSessionStarted("ghost", 1, ""))
