"""A gang on the wrong path, with a tree of seven: the watches on, the world told by the test."""

import pytest

from domain.watched import Watched, nobody_answers
from remuda.domain.commands import ReportSessionEnded
from remuda.domain.due import due
from remuda.domain.effects import EndSession
from remuda.domain.events import StatusChanged
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import DEAD, Status
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import (
    AddTasks,
    AssignTask,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportWorktreeReady,
)
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import GiveVerdict
from remuda.watch.gang import Wayward
from scenarios.watched_kit import at_it, fired, remains


def tree_of_seven(**wayward: float) -> Watched:
    """A head, two below it, and two below each of those."""
    project = Watched(wayward=Wayward(**wayward))  # type: ignore[arg-type]
    project.ready("crew", "head")
    for left in ("a", "b"):
        project.do_spawn("crew", left, "head")
        for right in ("x", "y"):
            project.do_spawn("worker", f"{left}-{right}", left)
            project.send("go", f"{left}-{right}")
    return project


def test_where_half_of_a_gang_was_stopped_all_of_it_is_and_all_of_it_is_cut_and_each_leaves_a_body() -> None:
    project = tree_of_seven()
    members = [name for name in project.state.agents if name != "head"]
    assert len(members) == 6
    for name in ("a-x", "b-y"):
        project.fires(name, Trigger.SPIN, "round and round")
    assert all(trigger is not Trigger.GANG for _, trigger, _ in fired(project))
    project.fires("a-y", Trigger.CHANGESET, "all wrong")
    assert fired(project)[-1] == ("head", Trigger.GANG, "share")
    assert {project.agent(name).status for name in ("head", *members)} == {Status.PAUSED}
    assert "3 of the 6 below it were stopped" in project.agent("head").trigger.evidence  # type: ignore[union-attr]
    nobody_answers(project, "head")
    assert {project.agent(name).status for name in ("head", *members)} == {Status.REAPED}
    deaths = [
        event.agent for event in project.all(StatusChanged) if isinstance(event, StatusChanged) and event.now in DEAD
    ]
    assert deaths.index("head") == len(deaths) - 1  # nobody was left to wait for one that was dead
    for name in ("head", *members):
        shown = remains(project, name)
        assert shown.cause == "reaped"
        assert "gang" in shown.why
        assert shown.timeline
    assert not [
        name
        for name in members
        if any(isinstance(each, EndSession) and each.gentle for each in due(project.agent(name)))
    ]


def test_a_gang_that_spends_without_an_accepted_change_is_stopped() -> None:
    from remuda.domain.state import Usage

    project = tree_of_seven(tokens=1000, least=0)
    project.used(Usage(600, 300), 1, "a-x")
    project.answered("a-x")
    assert fired(project) == []
    project.used(Usage(600, 300), 1, "b-x")
    project.answered("b-x")
    # The nearest head that is over the bound is stopped, not the whole tree.
    assert fired(project) == [("head", Trigger.GANG, "spend")]


@pytest.mark.parametrize(("files", "rules"), [(("src/a.py",), ["same files"]), (("src/b.py",), [])])
def test_a_gang_whose_work_fails_on_the_very_same_files_is_stopped(files: tuple[str, ...], rules: list[str]) -> None:
    project = tree_of_seven()
    project.do(AddTasks(tuple(NewTask(Brief(f"part {number}")) for number in (1, 2, 3))))
    for number, (name, changed) in enumerate((("a-x", ("src/a.py",)), ("a-y", ("src/a.py",)), ("b-x", files)), 1):
        task = f"t{number}"
        project.do(AssignTask(task, name))
        project.do(ReportWorktreeReady(task, project.state.tasks[task].attempt, f"w/{task}"))
        at_it(project, name, task)
        project.do(ReportImplementationComplete(name, project.epoch(name), "done"))
        attempt = project.state.tasks[task].attempt
        project.do(ReportAcceptance(task, attempt, False, f"c{number}", "e", f"failed {number}", "tree", changed))
    gangs = [rule for _, trigger, rule in fired(project) if trigger is Trigger.GANG]
    assert gangs == rules


def test_two_of_six_are_no_gang() -> None:
    project = tree_of_seven()
    project.fires("a-x")
    project.fires("b-x")
    assert {agent for agent, trigger, _ in fired(project) if trigger is Trigger.GANG} == set()


def falls_silent(project: Watched, name: str) -> None:
    for _ in range(2):
        if project.agent(name).status is Status.STARTING:
            project.started(name)
        project.do(ReportSessionEnded(name, project.epoch(name), "silence", None, Failure.SILENT))


def test_the_turn_that_a_member_was_stopped_in_and_its_trigger_stop_a_gang_once() -> None:
    project = tree_of_seven()
    for name in ("a-x", "a-y", "b-x"):
        falls_silent(project, name)
    assert [agent for agent, trigger, _ in fired(project) if trigger is Trigger.GANG] == ["head"]


def test_one_that_was_restarted_again_and_again_is_one_member_and_no_gang() -> None:
    project = tree_of_seven(least=2, share=0.1)
    name = "a-x"
    for _ in range(2):
        project.fires(name, Trigger.SPIN)
        project.do(GiveVerdict(name, Course.RESTART, "user"))
        name = next(reversed(project.state.agents))
        project.started(name)
    project.fires(name, Trigger.SPIN)
    assert Trigger.GANG not in {trigger for _, trigger, _ in fired(project)}
    project.fires("a-y", Trigger.SPIN)
    assert fired(project)[-1] == ("a", Trigger.GANG, "share")


def test_a_gang_that_may_go_on_is_not_stopped_again_for_those_that_were_stopped_before() -> None:
    project = tree_of_seven()
    for name in ("a-x", "a-y", "b-x"):
        project.fires(name, Trigger.SPIN)
        project.do(GiveVerdict(name, Course.REAP, "user"))
    project.do(GiveVerdict("head", Course.CONTINUE, "user", seconds=10.0))
    project.now += 100
    project.started("b-y")
    project.answered("b-y")
    assert [agent for agent, trigger, _ in fired(project) if trigger is Trigger.GANG] == ["head"]
    project.fires("b-y", Trigger.SPIN)  # another one is news
    assert [agent for agent, trigger, _ in fired(project) if trigger is Trigger.GANG] == ["head", "head"]


def test_who_is_stopped_with_its_gang_is_asked_about_nobody() -> None:
    project = tree_of_seven()
    for name in ("a-x", "a-y", "b-x"):
        falls_silent(project, name)
    judges = {name: project.agent(name).sought.judge for name in ("a-x", "b-x", "head")}  # type: ignore[union-attr]
    assert judges == {"a-x": "a", "b-x": "user", "head": "user"}
