"""The word before a trigger, and what is left after one."""

import pytest

from domain.drive import WORKER, Project
from domain.watched import Watched
from remuda.domain.body import Begun, Left
from remuda.domain.commands import PauseAgent, ReportSessionStarted, ResumeAgent, RetireAgent, SendMessage
from remuda.domain.due import due
from remuda.domain.effects import KeepWork, RemoveBody, StartSession
from remuda.domain.errors import Refused
from remuda.domain.events import ReportIgnored, TriggerFired, TurnEnded
from remuda.domain.lifecycle import Status
from remuda.domain.state import Outcome, Sender
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks, AssignTask, CancelTask, ReportWorktreeReady
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import (
    BuryAgent,
    FireTrigger,
    GiveVerdict,
    NudgeAgent,
    ReportBodyRemoved,
    ReportWorkKept,
)
from remuda.domain.trigger_events import AgentNudged, WorkKept


def at_work() -> Watched:
    project = Watched()
    project.ready()
    project.send("do it")
    return project


def verdict(project: Project, course: Course, name: str = WORKER) -> None:
    project.do(GiveVerdict(name, course, "user"))


# --- the nudge ---


def test_a_nudge_cuts_the_turn_and_is_read_before_the_message_is_given_again() -> None:
    project = at_work()
    project.do(NudgeAgent(WORKER, "cycle", "the same call, 3 times"))
    agent = project.agent()
    assert [message.sender for message in agent.queue] == [Sender.SYSTEM, Sender.USER]
    assert "the same call, 3 times" in agent.queue[0].text
    assert agent.status is Status.READY
    (ended,) = project.all(TurnEnded)
    assert isinstance(ended, TurnEnded)
    assert ended.outcome is Outcome.INTERRUPTED
    project.ended()
    project.started()
    assert project.agent().turn.message.sender is Sender.SYSTEM  # type: ignore[union-attr]


def test_a_nudge_between_turns_is_a_message_like_any_other_and_one_before_the_first_session_waits() -> None:
    project = Watched()
    project.spawn()
    project.do(NudgeAgent(WORKER, "cycle", "again"))
    assert len(project.agent().queue) == 1
    project.started()
    assert project.agent().status is Status.WORKING
    project.answered()
    project.do(NudgeAgent(WORKER, "cycle", "again"))
    assert project.agent().status is Status.WORKING


# --- bodies ---


def test_the_dead_are_buried_by_hand_and_then_their_remains_are_removed() -> None:
    project = at_work()
    with pytest.raises(Refused, match="only the dead"):
        project.do(BuryAgent(WORKER, "user"))
    project.do(RetireAgent(WORKER))
    with pytest.raises(Refused, match="on its way out"):
        project.do(BuryAgent(WORKER, "user"))
    project.ended()
    with pytest.raises(Refused, match="being kept"):
        project.do(BuryAgent(WORKER, "user"))
    project.kept()
    project.do(BuryAgent(WORKER, "user"))
    with pytest.raises(Refused, match="buried already"):
        project.do(BuryAgent(WORKER, "user"))
    assert due(project.agent()) == (RemoveBody(WORKER, 1),)
    project.do(ReportBodyRemoved(WORKER, 1, 2))
    assert due(project.agent()) == ()
    (event,) = project.do(ReportBodyRemoved(WORKER, 1, 2))
    assert isinstance(event, ReportIgnored)


def test_what_an_agent_made_is_kept_when_it_has_no_process_any_more_and_again_after_each_further_session() -> None:
    project = Watched()
    project.spawn()
    project.do(ReportSessionStarted(WORKER, 1, "ref", tree="tree-1"))
    begun = Begun("", 0, "tree-1")
    project.do(PauseAgent(WORKER))
    assert [effect for effect in due(project.agent()) if isinstance(effect, KeepWork)] == []  # it may still write
    project.ended()
    assert due(project.agent()) == (KeepWork(WORKER, 1, begun),)
    project.kept()
    assert project.agent().left == Left(1, "commit-1", "", 7)
    assert due(project.agent()) == ()
    project.do(ResumeAgent(WORKER))
    project.send()
    (start,) = due(project.agent())
    assert isinstance(start, StartSession)
    assert not start.first
    project.started()
    assert project.agent().begun == begun  # a later session of the same work began nothing
    project.do(RetireAgent(WORKER))
    project.ended()
    assert due(project.agent()) == (KeepWork(WORKER, 2, begun),)


def test_in_another_place_an_agent_begins_anew_and_what_it_was_freed_from_stays_its_last_work() -> None:
    project = Watched()
    project.ready()
    project.do(AddTasks((NewTask(Brief("Parse dates")),), "user"))
    project.do(AssignTask("t1", WORKER, "user"))
    project.do(ReportWorktreeReady("t1", project.state.tasks["t1"].attempt, "w/t1"))
    project.ended()
    (start,) = due(project.agent())
    assert isinstance(start, StartSession)
    assert (start.folder, start.first) == ("w/t1", True)
    project.do(ReportSessionStarted(WORKER, 2, "ref", tree="tree-2"))
    begun = project.agent().begun
    assert begun == Begun("w/t1", 1, "tree-2")
    project.do(CancelTask("t1", "no more"))
    project.do(RetireAgent(WORKER))
    assert project.agent().folder == ""
    project.ended()
    assert due(project.agent()) == (KeepWork(WORKER, 2, begun),)


def test_one_that_was_sent_elsewhere_while_its_session_started_has_begun_nothing_there() -> None:
    project = Watched()
    project.spawn()
    project.do(AddTasks((NewTask(Brief("Parse dates")),), "user"))
    project.do(AssignTask("t1", WORKER, "user"))
    project.do(ReportWorktreeReady("t1", project.state.tasks["t1"].attempt, "w/t1"))
    project.started()
    assert project.agent().begun is None


def test_a_report_of_what_was_left_is_taken_once_and_not_from_a_session_that_goes_on() -> None:
    project = at_work()
    for epoch in (0, 1, 2):
        (event,) = project.do(ReportWorkKept(WORKER, epoch, "commit", "", 1))
        assert isinstance(event, ReportIgnored)
    project.do(RetireAgent(WORKER))
    project.ended()
    (event,) = project.do(ReportWorkKept(WORKER, 1, "commit", "", -1))
    assert event == WorkKept(WORKER, 1, "commit", "", 0)
    (event,) = project.kept()
    assert isinstance(event, ReportIgnored)


def test_one_that_never_had_a_session_can_be_buried_too() -> None:
    project = Watched()
    project.spawn(hold=True)
    project.fires(WORKER)
    verdict(project, Course.REAP)
    project.ended()
    assert due(project.agent()) == (KeepWork(WORKER, 1, None),)
    project.kept()
    project.do(BuryAgent(WORKER, "user"))
    assert due(project.agent()) == (RemoveBody(WORKER, 1),)


def test_what_was_said_of_a_trigger_is_in_the_log() -> None:
    project = at_work()
    project.do(FireTrigger(WORKER, Trigger.SPIN, "round and round", "cycle", (("rounds", 6),)))
    (event,) = project.all(TriggerFired)
    assert event == TriggerFired(WORKER, 1, 1, Trigger.SPIN, "round and round", (("rounds", 6),), "cycle")
    assert not list(project.all(AgentNudged))


def test_mail_for_a_stopped_agent_waits_with_it() -> None:
    project = at_work()
    project.fires(WORKER)
    project.ended()
    project.do(SendMessage(WORKER, "m9", Sender.USER, "user", "more"))
    assert project.agent().status is Status.PAUSED
    with pytest.raises(Refused):
        project.do(PauseAgent(WORKER))
