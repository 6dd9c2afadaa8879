"""Each trigger, from its cause to the body: the watches on, the world told by the test."""

import pytest

from domain.drive import WORKER, replay
from domain.watched import Watched, nobody_answers
from remuda.domain.commands import ReportSessionEnded, SendMessage
from remuda.domain.due import due
from remuda.domain.effects import EndSession
from remuda.domain.events import ReportIgnored
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import DEAD, Status, TaskStatus
from remuda.domain.spin_reading import Step, read
from remuda.domain.state import Sender
from remuda.domain.task import Brief, NewTask, Refusal
from remuda.domain.task_commands import (
    AddTasks,
    ApproveCommit,
    AssignTask,
    ReportMerged,
    ReportMergeRefused,
    ReportWorktreeReady,
)
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import GiveVerdict, ReportSaidAgain
from remuda.domain.trigger_events import AgentNudged
from remuda.views.body import body_text
from remuda.watch.changeset import Wrong
from scenarios.watched_kit import at_it, checked, fired, holder, remains

# --- spin ---


def loops(project: Watched, times: int) -> None:
    for _ in range(times):
        project.uses(WORKER, "bash", '{"command": "mvn test"}', "mvn: command not found", ok=False)


def test_an_agent_that_goes_in_circles_is_nudged_then_stopped_and_in_the_end_leaves_a_body() -> None:
    project = Watched()
    project.ready()
    project.send("mend the build")
    loops(project, 3)
    assert len(list(project.all(AgentNudged))) == 1
    assert project.agent().status is Status.READY
    project.ended()
    project.started()
    project.answered()  # it has read the nudge
    assert project.agent().turn.message.text == "mend the build"  # type: ignore[union-attr]
    loops(project, 3)
    assert fired(project) == [(WORKER, Trigger.SPIN, "cycle")]
    assert project.agent().status is Status.PAUSED
    nobody_answers(project)
    assert project.agent().status is Status.REAPED
    assert [effect for effect in due(project.agent()) if isinstance(effect, EndSession)]
    shown = remains(project)
    assert (shown.cause, shown.trigger, shown.rule, shown.nudges) == ("reaped", "spin", "cycle", 1)
    assert "6 times in a row" in shown.evidence
    assert shown.verdict == "reap by remuda: user did not answer in time"
    assert shown.unread == ["user: mend the build"]
    text = body_text(shown)
    for word in ("cycle", "the last it said", "+x", "trigger_fired", "nudged", "verdict_reached"):
        assert word in text


def test_one_that_gets_on_after_the_nudge_is_left_alone() -> None:
    project = Watched()
    project.ready()
    project.send("mend the build")
    loops(project, 3)
    project.ended()
    project.started()
    project.answered()
    project.uses(WORKER, "Edit", '{"path": "pom.xml", "new": "x"}', "ok")
    loops(project, 2)
    assert fired(project) == []


def test_new_words_of_the_user_begin_a_new_account() -> None:
    project = Watched()
    project.ready()
    for _ in range(4):
        project.send("run it again")
        loops(project, 2)
        project.answered()
    assert list(project.all(AgentNudged)) == []


def test_an_agent_that_says_the_same_thing_over_and_over_is_nudged_then_stopped() -> None:
    project = Watched()
    project.ready()
    project.send("explain yourself")
    said = read(Step(text="I will now try again. " * 9))
    while not fired(project):
        project.do(ReportSaidAgain(WORKER, project.epoch(), project.turn(), said))
        if project.agent().session.stage == "ending" and project.agent().status is Status.READY:  # type: ignore[union-attr]
            project.ended()
            project.started()
            project.answered()
    assert fired(project) == [(WORKER, Trigger.SPIN, "cycle")]
    assert len(list(project.all(AgentNudged))) == 1
    (late,) = project.do(ReportSaidAgain(WORKER, project.epoch(), 99, said))
    assert isinstance(late, ReportIgnored)
    assert replay(project.log).agents == project.state.agents


# --- stall ---


def silence(project: Watched) -> None:
    project.do(ReportSessionEnded(WORKER, project.epoch(), "nothing for 900 s", -9, Failure.SILENT))


def test_an_agent_that_falls_silent_again_in_a_fresh_session_is_stopped() -> None:
    project = Watched()
    project.ready()
    project.send("do it")
    silence(project)
    assert fired(project) == []
    project.started()
    silence(project)
    assert fired(project) == [(WORKER, Trigger.STALL, "silence")]
    project.started()
    assert project.agent().status is Status.PAUSED
    nobody_answers(project)
    assert (remains(project).cause, remains(project).trigger) == ("reaped", "stall")


def test_a_crash_and_a_limit_are_no_stall() -> None:
    project = Watched()
    project.ready()
    project.send("do it")
    project.ended(code=1)
    project.started()
    project.limited()
    assert fired(project) == []


# --- changeset ---


def test_checks_that_fail_in_the_same_way_over_and_over_are_beyond_repair() -> None:
    project = Watched()
    holder(project)
    for number in range(3):
        assert fired(project) == []
        checked(project, f"FAILED test_dates in 0.{number}s", f"tree-{number}")
    assert fired(project) == [(WORKER, Trigger.CHANGESET, "failures")]
    assert project.agent().status is Status.PAUSED
    project.do(GiveVerdict(WORKER, Course.REAP, "user"))
    shown = remains(project)
    assert (shown.cause, shown.trigger, shown.task) == ("reaped", "changeset", "t1")
    assert shown.last_phase in ("implementing", "addressing_feedback")
    assert project.state.tasks["t1"].status is TaskStatus.OPEN  # for somebody else


def test_checks_that_fail_in_other_ways_are_progress() -> None:
    project = Watched()
    holder(project)
    for number, name in enumerate(("dates", "times", "zones", "leaps")):
        checked(project, f"FAILED test_{name}", f"tree-{number}")
    assert fired(project) == []


def test_what_was_taken_back_and_is_made_again_is_noticed() -> None:
    project = Watched()
    holder(project)
    for tree, tail in (("one", "FAILED a"), ("two", "FAILED b"), ("one", "FAILED a")):
        checked(project, tail, tree)
    assert fired(project) == [(WORKER, Trigger.CHANGESET, "redone")]


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        (("src/dates.py", "secrets.txt"), "outside"),
        (("src/a.py", "src/b.py", "src/c.py", "src/d.py"), "size"),
        (("src/dates.py", "src/deep/er.py"), None),
    ],
)
def test_work_that_goes_where_it_was_not_meant_to_is_stopped(files: tuple[str, ...], rule: str | None) -> None:
    project = Watched()
    holder(project, paths=("src/*",))
    checked(project, "fine", "one", files, ok=True)
    assert fired(project) == ([(WORKER, Trigger.CHANGESET, rule)] if rule else [])


def test_a_conflict_that_nobody_can_resolve_is_noticed() -> None:
    project = Watched(wrong=Wrong(conflicts=2))
    holder(project)
    for number in range(2):
        assert fired(project) == []
        checked(project, "fine", f"tree-{number}", ok=True)
        project.do(ApproveCommit("t1", unreviewed=True))
        attempt = project.state.tasks["t1"].attempt
        project.do(ReportMergeRefused("t1", attempt, Refusal.CONFLICT, "e", "both changed it"))
        at_it(project)
    assert fired(project) == [(WORKER, Trigger.CHANGESET, "conflict")]


def test_the_same_work_handed_in_three_times_was_never_taken_back() -> None:
    project = Watched()
    holder(project)
    for _ in range(3):
        checked(project, "FAILED a", "one")
    assert fired(project) == [(WORKER, Trigger.CHANGESET, "failures")]


def test_a_persons_word_is_enough() -> None:
    project = Watched()
    project.ready()
    project.fires(WORKER, Trigger.CHANGESET, "this is not what I asked for")
    nobody_answers(project)
    assert "this is not what I asked for" in remains(project).why


# --- expire, hibernate ---


def merged(project: Watched) -> None:
    checked(project, "fine", "one", ok=True)
    project.do(ApproveCommit("t1", unreviewed=True))
    project.do(ReportMerged("t1", project.state.tasks["t1"].attempt, "c1", "main"))


def test_a_worker_whose_work_is_done_and_verified_expires() -> None:
    project = Watched()
    holder(project)
    merged(project)
    project.ended()
    assert project.state.tasks["t1"].status is TaskStatus.DONE
    assert project.agent().status is Status.RETIRED
    assert "done and verified" in remains(project).why


def test_a_lasting_role_hibernates_without_a_process_and_wakes_on_mail() -> None:
    from remuda.domain.commands import SpawnAgent

    project = Watched()
    project.do(SpawnAgent("crew", "scripted", name=WORKER, works=True))
    project.started()
    project.do(AddTasks((NewTask(Brief("Parse dates")),), "user"))
    project.do(AssignTask("t1", WORKER, "user"))
    project.do(ReportWorktreeReady("t1", project.state.tasks["t1"].attempt, "w/t1"))
    at_it(project)
    merged(project)
    assert project.agent().status is Status.HIBERNATING
    project.ended()
    project.kept()
    assert due(project.agent()) == ()
    project.do(SendMessage(WORKER, "m9", Sender.USER, "user", "once more"))
    assert project.agent().status is Status.STARTING


def test_one_with_mail_or_with_work_to_come_stays() -> None:
    project = Watched()
    holder(project)
    project.do(AddTasks((NewTask(Brief("Another")),), "user"))
    merged(project)
    assert project.agent().status not in DEAD
