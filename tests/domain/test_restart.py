"""A verdict to restart: who comes after, with what, and how often."""

import pytest

from domain.drive import WORKER
from domain.watched import Watched, at_work, family, verdict
from remuda.domain.errors import Invalid, Refused
from remuda.domain.events import UserNotified
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import DEAD, Status
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks, AssignTask, ReportWorktreeReady
from remuda.domain.trigger import Course, Strategy
from remuda.watch.verdict import Patience


def test_restarted_an_agent_has_a_successor_with_other_parameters_its_mail_and_a_word_about_it() -> None:
    project = family()
    project.fires(WORKER, evidence="it loops")
    verdict(
        project,
        Course.RESTART,
        model="larger",
        backend="other",
        instructions="think first",
        words="Begin with the tests.",
        budget=Limits(tokens=5000),
    )
    successor = project.agent("worker-2")
    assert project.agent().status is Status.REAPED
    assert (successor.model, successor.backend, successor.instructions) == ("larger", "other", "think first")
    assert (successor.parent, successor.after) == ("boss", WORKER)
    first, second = successor.queue
    assert "You take over from worker-1" in first.text
    assert first.text.endswith("Begin with the tests.")
    assert (second.text, second.attempts) == ("do it", 1)
    assert project.state.ledger.accounts["agent:worker-2"].limits.tokens == 5000
    project.started("worker-2")
    assert project.agent("worker-2").status is Status.WORKING


def test_the_coordinator_makes_room_for_its_successor() -> None:
    project = Watched()
    project.ready("coordinator")
    project.fires("coordinator")
    verdict(project, Course.RESTART, "coordinator")
    assert project.agent("coordinator").status is Status.REAPED
    assert project.agent("coordinator-2").role == "coordinator"


@pytest.mark.parametrize(
    "other",
    [
        {"backend": "scripted"},
        {"model": "larger"},
        {"instructions": "think"},
        {"words": "think"},
        {"budget": Limits(tokens=5)},
        {"strategy": Strategy.ALL},
    ],
)
def test_only_a_restart_has_a_successor_that_could_be_another(other: dict[str, object]) -> None:
    project = at_work()
    project.fires(WORKER)
    for course in (Course.REAP, Course.CONTINUE):
        with pytest.raises(Invalid, match=f"only a restart has a successor; {course} goes without"):
            verdict(project, course, WORKER, **other)
    verdict(project, Course.RESTART, WORKER, **other)


def test_restarted_too_often_an_agent_is_given_up_and_whoever_stands_above_is_told() -> None:
    project = family()
    name = WORKER
    for number in (2, 3):
        project.fires(name)
        verdict(project, Course.RESTART, name)
        name = f"worker-{number}"
        project.started(name)
    project.fires(name)
    verdict(project, Course.RESTART, name)
    assert project.agent("worker-3").status is Status.REAPED
    assert "worker-4" not in project.state.agents
    told = [message.text for message in project.agent("coordinator").queue]
    turn = project.agent("coordinator").turn
    told += [turn.message.text] if turn else []
    assert any("was given up after 2 restarts within 3600 s" in text for text in told)


def test_restarts_that_were_long_ago_do_not_count() -> None:
    project = at_work()
    name = WORKER
    for number in (2, 3, 4):
        project.now += 4000
        project.fires(name)
        verdict(project, Course.RESTART, name)
        name = f"worker-{number}"
        project.started(name)
    assert project.agent("worker-4").status is Status.WORKING


def test_where_no_agent_was_asked_the_user_is_told_that_it_was_given_up() -> None:
    project = Watched(Patience(600.0, Course.RESTART, most=0, within=60.0))
    project.ready()
    project.fires(WORKER)
    verdict(project, Course.RESTART)
    assert project.agent().status is Status.REAPED
    assert sum(isinstance(record.event, UserNotified) for record in project.log) == 2


def test_restart_all_restarts_the_siblings_of_the_same_role_and_nobody_else() -> None:
    project = family()
    project.do_spawn("worker", "worker-2", "boss")
    project.do_spawn("worker", "worker-3", "coordinator")
    project.do_spawn("crew", "helper", "boss")
    project.fires(WORKER)
    verdict(project, Course.RESTART, strategy=Strategy.ALL)
    dead = {name for name, agent in project.state.agents.items() if agent.status in DEAD}
    assert dead == {WORKER, "worker-2"}
    heirs = {agent.after: agent for agent in project.state.agents.values() if agent.after}
    assert set(heirs) == {WORKER, "worker-2"}
    assert all(f"{heirs[name].name} takes over" in project.agent(name).why for name in heirs)
    assert [len(heirs[each].restarts) for each in (WORKER, "worker-2")] == [1, 0]  # only one has done anything wrong


def test_revert_is_refused_while_there_are_no_checkpoints() -> None:
    project = at_work()
    project.fires(WORKER)
    with pytest.raises(Refused, match="no checkpoints"):
        verdict(project, Course.RESTART, strategy=Strategy.REVERT)
    assert project.agent().status is Status.PAUSED


def test_a_successor_takes_over_the_task_and_mail_about_it_is_written_anew() -> None:
    project = Watched()
    project.ready()
    project.do(AddTasks((NewTask(Brief("Parse dates")),), "user"))
    project.do(AssignTask("t1", WORKER, "user"))
    project.do(ReportWorktreeReady("t1", project.state.tasks["t1"].attempt, "w/t1"))
    assert project.agent().turn is not None or project.agent().queue
    project.fires(WORKER)
    verdict(project, Course.RESTART)
    task = project.state.tasks["t1"]
    assert task.holder == "worker-2"
    assert project.agent("worker-2").task == "t1"
    assert not [message for message in project.agent("worker-2").queue if message.about]
    assert project.agent().task == ""
