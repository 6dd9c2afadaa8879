"""A new runtime takes over: whatever ran under the last one is gone, and its work is taken up."""

import pytest

from domain.drive import WORKER, Project
from domain.explore import Kind, reachable
from domain.owed import all_due, whose
from remuda.domain.commands import HibernateAgent, PauseAgent, ReapAgent, ResumeAgent, StartRuntime, StopRuntime
from remuda.domain.due import due
from remuda.domain.effects import Rest, StartSession
from remuda.domain.events import RuntimeStarted, RuntimeStopped, SessionEnded, SessionRequested, TurnEnded
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Outcome

NEXT = StartRuntime("the next")


def kinds() -> list[Kind]:
    return [kind for kind in reachable() if kind is not None]


@pytest.fixture
def project() -> Project:
    project = Project()
    project.do(StartRuntime("the first"))
    project.ready()
    return project


def test_a_runtime_that_starts_on_nothing_only_says_so() -> None:
    project = Project()
    assert project.do(NEXT) == (RuntimeStarted("the next"),)
    assert (project.state.runtime, project.state.stopped_cleanly) == ("the next", False)


def test_a_clean_stop_is_known_from_a_death(project: Project) -> None:
    project.send()
    died = project.branch()
    project.do(StopRuntime("the first"))
    assert project.log[-1].event == RuntimeStopped("the first")
    project.do(NEXT)
    died.do(NEXT)
    assert SessionEnded(WORKER, 1, "the runtime was stopped", None, crashed=False) in project.all(SessionEnded)
    assert SessionEnded(WORKER, 1, "the runtime died", None, crashed=False) in died.all(SessionEnded)


def test_a_turn_under_way_is_lost_and_its_message_is_taken_up_in_a_fresh_session(project: Project) -> None:
    project.send()
    events = project.do(NEXT)
    assert TurnEnded(WORKER, 1, 1, "m1", Outcome.LOST, "", "the runtime died") in events
    assert SessionRequested(WORKER, 2, "ref-1") in events
    assert project.agent().status is Status.STARTING
    project.started()
    turn = project.agent().turn
    assert turn is not None
    assert (turn.message.id, turn.message.attempts, turn.number) == ("m1", 1, 2)


def test_a_session_that_was_starting_is_asked_for_again() -> None:
    project = Project()
    project.spawn()
    project.do(NEXT)
    assert (project.agent().status, project.epoch()) == (Status.STARTING, 2)


def test_an_idle_agent_stays_ready_and_has_no_process_until_it_is_spoken_to(project: Project) -> None:
    project.do(NEXT)
    assert project.agent().status is Status.READY
    assert due(project.agent()) == ()
    project.send()
    assert [type(effect) for effect in due(project.agent())] == [StartSession]


def test_the_death_of_a_runtime_is_not_the_agents_crash(project: Project) -> None:
    project.send()
    for number in range(10):
        project.do(StartRuntime(f"number {number}"))
        project.started()
    assert (project.agent().status, project.agent().crashes) == (Status.WORKING, 0)


@pytest.mark.parametrize("rest", [PauseAgent, HibernateAgent])
def test_a_resting_agent_goes_on_resting(project: Project, rest: type[PauseAgent | HibernateAgent]) -> None:
    project.do(rest(WORKER))
    status = project.agent().status
    project.do(NEXT)
    assert project.agent().status is status
    project.kept()
    assert due(project.agent()) == ()


def test_one_that_was_resumed_while_its_process_was_ending_reads_its_mail(project: Project) -> None:
    project.send()
    project.do(PauseAgent(WORKER))
    project.do(ResumeAgent(WORKER))
    project.do(NEXT)
    assert project.agent().status is Status.STARTING


def test_the_process_of_one_that_was_reaped_needs_no_ending_any_more(project: Project) -> None:
    project.do(ReapAgent(WORKER, "it spins"))
    project.do(NEXT)
    session = project.agent().session
    assert session is not None
    assert (project.agent().status, session.stage) == (Status.REAPED, Stage.ENDED)


def test_many_agents_are_taken_over_in_one_go(project: Project) -> None:
    names = [WORKER, *(project.ready() for _ in range(4))]
    for name in names:
        project.send(name=name)
    project.do(NEXT)
    assert {whose(effect) for effect in all_due(project.state)} == set(names)
    for name in names:
        project.started(name)
    assert sorted(project.turn(name) for name in names) == [6, 7, 8, 9, 10]


@pytest.mark.parametrize("clean", [True, False])
def test_in_whatever_state_a_runtime_dies_the_next_one_finds_no_process_and_loses_no_mail(clean: bool) -> None:
    for kind in kinds():
        project = reachable()[kind][0].before.branch()
        if clean:
            project.do(StopRuntime("this"))
        before = project.agent()
        letters = [*([before.turn.message.id] if before.turn else []), *(message.id for message in before.queue)]
        project.do(NEXT)
        agent = project.agent()
        assert [message.id for message in agent.queue] == letters, kind
        stage = agent.session.stage if agent.session else None
        owed = [effect for effect in due(agent) if not isinstance(effect, Rest)]
        assert stage in (None, Stage.ENDED) or [type(effect) for effect in owed] == [StartSession], kind
        assert (agent.rest_until, agent.questions) == (before.rest_until, before.questions), kind
        assert agent.status is before.status or kind.status in (Status.WORKING, Status.READY, Status.HIBERNATING), kind
        assert agent.crashes == before.crashes, kind


def test_a_second_start_changes_nothing_but_the_number_of_a_session_that_never_began() -> None:
    for kind in kinds():
        project = reachable()[kind][0].before.branch()
        project.do(NEXT)
        first = project.agent()
        project.do(StartRuntime("the one after"))
        second = project.agent()
        assert (second.status, second.queue, second.turns) == (first.status, first.queue, first.turns), kind


def test_ids_of_commands_are_remembered_with_the_number_of_their_first_event() -> None:
    project = Project()
    project.do(StartRuntime("this"), order="start")
    project.do(StopRuntime("this"), order="stop")
    assert project.state.recent == {"start": 1, "stop": 2}


def test_only_so_many_ids_are_remembered_and_the_oldest_go_first() -> None:
    project = Project()
    for number in range(1030):
        project.do(StopRuntime("this"), order=f"order-{number}")
    assert len(project.state.recent) == 1024
    assert next(iter(project.state.recent)) == "order-6"
