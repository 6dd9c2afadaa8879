"""Work that its agent was stopped for: nothing becomes of it before somebody has judged."""

import pytest

from domain.drive import WORKER
from domain.watched import Watch, Watched
from remuda.domain.commands import RetireAgent, StopAgent
from remuda.domain.errors import Refused
from remuda.domain.lifecycle import TaskStatus, Work
from remuda.domain.task_commands import ApproveCommit, AssignReview
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import GiveVerdict
from remuda.watch.coordinator import Rules, coordinator
from scenarios.watched_kit import checked, holder


def in_dispute(*more: Watch) -> Watched:
    """Its checks have passed, and it changes more than it was meant to."""
    project = Watched()
    holder(project, paths=("src/*",))
    project.watches += more
    checked(project, "fine", "one", ("secrets.txt",), ok=True)
    assert project.state.tasks["t1"].work is Work.CHECKED
    return project


def test_what_an_agent_was_stopped_for_is_neither_reviewed_nor_merged_before_the_verdict() -> None:
    project = in_dispute(coordinator(Rules(reviewed=False)))
    project.ready("worker", "other")
    for command in (ApproveCommit("t1", unreviewed=True), AssignReview("t1", "other")):
        with pytest.raises(Refused, match=f"remuda verdict {WORKER} continue"):
            project.do(command)
    project.do(GiveVerdict(WORKER, Course.CONTINUE, "user"))
    assert project.state.tasks["t1"].work is Work.MERGING


def test_one_that_is_let_go_on_while_it_is_stopped_by_hand_has_its_work_merged_too() -> None:
    project = in_dispute(coordinator(Rules(reviewed=False)))
    project.do(StopAgent(WORKER))
    project.do(GiveVerdict(WORKER, Course.CONTINUE, "user"))
    assert project.state.tasks["t1"].work is Work.MERGING


@pytest.mark.parametrize("end", [GiveVerdict(WORKER, Course.REAP, "user"), RetireAgent(WORKER)])
def test_what_an_agent_was_cut_for_goes_back_with_the_reason(end: GiveVerdict | RetireAgent) -> None:
    project = in_dispute()
    project.do(end)
    task = project.state.tasks["t1"]
    assert (task.status, task.work) == (TaskStatus.OPEN, Work.PREPARED)
    assert "it changes what it was not meant to: secrets.txt" in task.notes[-1].text


def test_what_an_agent_was_restarted_for_goes_back_to_its_successor() -> None:
    project = in_dispute()
    project.do(GiveVerdict(WORKER, Course.RESTART, "user"))
    task = project.state.tasks["t1"]
    assert (task.status, task.holder) == (TaskStatus.IN_PROGRESS, "worker-2")
    assert "secrets.txt" in task.words


def test_what_is_in_review_goes_on_without_an_agent_that_was_stopped_for_something_else() -> None:
    project = Watched()
    holder(project, paths=("src/*",))
    checked(project, "fine", "one", ("src/a.py",), ok=True)
    project.fires(WORKER, Trigger.STALL)
    project.do(GiveVerdict(WORKER, Course.RESTART, "user"))
    task = project.state.tasks["t1"]
    assert (task.status, task.work, task.holder) == (TaskStatus.IN_REVIEW, Work.CHECKED, "")
