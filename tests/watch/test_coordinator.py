"""The coordinator that needs no model."""

import pytest

from domain.band import Band
from domain.crew import ADA, BOB
from remuda.domain.commands import HibernateAgent, PauseAgent, ResumeAgent, RetireAgent, StartRuntime
from remuda.domain.events import MessageQueued
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import Phase, Status, TaskStatus, Work
from remuda.domain.routing import Route
from remuda.domain.state import Outcome
from remuda.domain.task import Brief, NewTask, Staff
from remuda.domain.task_commands import (
    AddTasks,
    NoteToolUse,
    ReleaseTask,
    ReopenTask,
    SetStaff,
)
from remuda.domain.task_events import TaskAssigned, TaskMerged, VerdictGiven
from remuda.domain.tools import Tool
from remuda.domain.workflow import MOST_SETBACKS
from remuda.watch.coordinator import HOPELESS, MOST_IDLE_TURNS, Rules


def merged(band: Band) -> list[str]:
    return [event.task for event in band.all(TaskMerged) if isinstance(event, TaskMerged)]


def test_tasks_are_done_in_the_order_of_what_they_need_each_once_and_each_reviewed() -> None:
    band = Band()
    band.add("Parse dates")
    band.add("Print dates", needs=("t1",))
    band.add("Write it up", needs=("t1", "t2"))
    band.play()
    assert merged(band) == ["t1", "t2", "t3"]
    assert {task.status for task in band.state.tasks.values()} == {TaskStatus.DONE}
    for event in band.all(VerdictGiven):
        assert isinstance(event, VerdictGiven)
        assert event.verdict.reviewer not in band.task(event.task).authors


def test_the_most_urgent_is_given_out_first() -> None:
    band = Band(workers=0)
    band.add("later", priority=3)
    band.add("now", priority=0)
    band.add("soon", priority=1)
    band.ready()
    assert band.agent().task == "t2"


def test_what_is_denied_is_addressed_by_its_author_and_merged_when_it_is_approved() -> None:
    band = Band()
    band.add()
    verdicts = iter([False, False, True])
    band.play(approve=lambda _: next(verdicts))
    assert band.task().status is TaskStatus.DONE
    assert len(list(band.all(VerdictGiven))) == 3
    assert len(list(band.all(TaskAssigned))) == 1


def test_without_reviews_one_worker_is_enough() -> None:
    band = Band(1, Rules(reviewed=False))
    band.add()
    band.add()
    band.play()
    assert merged(band) == ["t1", "t2"]


def test_two_workers_that_both_wait_for_a_review_do_not_wait_for_ever() -> None:
    band = Band()
    band.add()
    band.add()
    for name, task in ((ADA, "t1"), (BOB, "t2")):
        band.prepared(task)
        band.reports(name)
        band.ends_turn(name)
    band.accepted("t1")
    assert band.agent().phase is Phase.AWAITING_REVIEW
    band.accepted("t2")
    assert (band.task("t1").reviewer, band.task("t1").holder) == (BOB, ADA)
    assert (band.task("t2").status, band.task("t2").holder) == (TaskStatus.IN_REVIEW, "")
    band.play()
    assert merged(band) == ["t1", "t2"]


def test_a_worker_with_mail_a_pause_or_a_rest_is_left_alone() -> None:
    band = Band(1)
    band.send()
    band.add()
    assert band.agent().task == ""
    band.do(PauseAgent(ADA))
    assert band.agent().task == ""
    band.do(ResumeAgent(ADA))
    band.ended()
    band.started()
    band.limited()
    assert band.agent().task == ""
    band.ended()
    band.now += 1000
    band.rested()
    band.started()
    band.answered()
    assert band.agent().task == "t1"


def test_a_worker_that_sleeps_is_woken_for_work_when_nobody_else_is_there() -> None:
    band = Band(1)
    band.do(HibernateAgent(ADA))
    band.ended()
    band.add()
    assert band.task().holder == ADA
    band.do(band.answer_to("t1") or ResumeAgent(ADA))
    assert band.agent().status is Status.STARTING


def test_while_an_agent_coordinates_it_keeps_still_and_takes_over_when_that_one_dies() -> None:
    band = Band()
    band.ready("coordinator")
    band.add()
    assert band.task().status is TaskStatus.OPEN
    band.do(RetireAgent("coordinator"))
    assert band.task().holder == ADA


def test_an_agent_that_coordinates_is_told_what_becomes_of_the_work() -> None:
    band = Band()
    band.ready("coordinator")
    band.add()
    band.reviewing()
    band.says_of_it(approved=True, comments="well done")
    told = [
        event.message.text
        for event in band.all(MessageQueued)
        if isinstance(event, MessageQueued) and event.agent == "coordinator"
    ]
    assert told == [
        "user has added t1: Parse dates. See the list of tasks for all that is new.",
        "t1 has passed its checks and waits for a review.",
        "worker-2 has approved t1: well done",
    ]


def test_an_agent_that_coordinates_is_told_once_of_many_new_tasks_and_not_of_its_own() -> None:
    band = Band(0)
    band.ready("coordinator")
    band.send("wait", "coordinator")
    band.do(AddTasks(tuple(NewTask(Brief(f"piece {number}")) for number in range(100))))
    band.do(AddTasks((NewTask(Brief("its own")),), by="coordinator"))
    assert len(band.agent("coordinator").queue) == 1


def test_a_new_runtime_goes_on_with_whatever_it_finds() -> None:
    band = Band()
    band.watches = ()
    band.add()
    band.add("Print dates")
    band.in_review()
    band.watches = Band().watches
    band.do(StartRuntime("the next"))
    band.play()
    assert sorted(merged(band)) == ["t1", "t2"]


# --- workers that get nowhere ---


def test_a_worker_that_says_something_and_gets_nowhere_is_told_to_go_on_and_then_relieved() -> None:
    band = Band(1)
    band.add()
    band.prepared()
    for count in range(1, MOST_IDLE_TURNS + 1):
        band.do(NoteToolUse(ADA, band.epoch(), Tool.POST_MESSAGE))
        band.ends_turn()
        turn = band.agent().turn
        assert turn is not None
        assert "Go on with t1" in turn.message.text
        assert band.agent().idled == count
    band.do(NoteToolUse(ADA, band.epoch(), Tool.POST_MESSAGE))
    band.answered()
    assert band.task().setbacks == 1
    assert band.task().status is TaskStatus.IN_PROGRESS, "and it tries again, in a conversation of its own"
    assert (band.task().work, band.agent().idled) == (Work.PREPARING, 0)


def test_a_reviewer_that_comes_to_no_verdict_is_relieved() -> None:
    band = Band(3)
    band.watches = ()
    band.add()
    band.reviewing()
    band.watches = Band().watches
    for _ in range(MOST_IDLE_TURNS + 1):
        band.ends_turn(BOB, Outcome.FAILED)
    assert band.agent(BOB).phase is Phase.IDLE
    assert band.task().reviewer == "worker-3"


def test_a_worker_that_dies_is_succeeded_by_another() -> None:
    band = Band()
    band.add()
    band.prepared()
    band.do(RetireAgent(ADA))
    assert band.task().holder == BOB


# --- who is hired ---


def test_workers_are_spawned_for_the_work_there_is_and_no_more_than_may_be() -> None:
    band = Band(0, Rules(staff=Staff(2), backend="claude"))
    band.add()
    assert [agent.backend for agent in band.state.agents.values()] == ["claude"]
    band.add()
    band.add()
    assert len(band.state.agents) == 2
    band.play()
    assert merged(band) == ["t1", "t2", "t3"]
    assert len(band.state.agents) == 2


def test_a_second_worker_is_spawned_for_the_review() -> None:
    band = Band(0, Rules(staff=Staff(2), backend="claude"))
    band.add()
    band.play()
    assert merged(band) == ["t1"]


def test_what_a_run_asks_for_outweighs_the_settings() -> None:
    band = Band(0, Rules(backend="claude"))
    band.add()
    assert band.state.agents == {}
    band.do(SetStaff(Staff(1, "codex", "large")))
    assert [(agent.backend, agent.model) for agent in band.state.agents.values()] == [("codex", "large")]


def test_a_program_that_never_starts_is_given_up() -> None:
    band = Band(0, Rules(staff=Staff(2), backend="claude"))
    band.add()
    for number in range(1, HOPELESS + 1):
        band.could_not_start(f"worker-{number}")
    assert len(band.state.agents) == HOPELESS
    assert {agent.status for agent in band.state.agents.values()} == {Status.FAILED}


@pytest.mark.parametrize(
    ("brief", "backend"),
    [
        (Brief("a", labels=("docs", "later")), "gemini"),
        (Brief("a", paths=("docs/tour.md",)), "gemini"),
        (Brief("a", labels=("hard",)), "codex"),
        (Brief("a", paths=("src/x.py",)), "claude"),
    ],
)
def test_a_task_goes_to_whom_the_routing_names(brief: Brief, backend: str) -> None:
    routes = (
        Route(("docs",), ("docs/*",), backend="gemini"),
        Route(("hard",), role="expert", backend="codex", model="large"),
    )
    band = Band(0, Rules(routes=routes, staff=Staff(9), backend="claude"))
    band.do(AddTasks((NewTask(brief),)))
    (agent,) = band.state.agents.values()
    assert agent.backend == backend
    assert (agent.role, agent.model) == (("expert", "large") if backend == "codex" else ("worker", ""))
    band.started(agent.name)
    assert band.task().holder == agent.name


def test_whoever_is_spawned_has_the_budget_of_its_route_or_that_of_everyone() -> None:
    large, small = Limits(tokens=1_000_000), Limits(tokens=1_000)
    band = Band(0, Rules(routes=(Route(("hard",), budget=large),), staff=Staff(9), backend="claude", budget=small))
    band.do(AddTasks((NewTask(Brief("hard one", labels=("hard",))), NewTask(Brief("any other")))))
    accounts = band.state.ledger.accounts
    allocated = [limits.tokens for limits in (accounts[name].limits for name in sorted(accounts)) if limits.tokens]
    assert sorted(allocated) == [1_000, 1_000_000]


def test_a_route_without_labels_and_paths_is_for_every_task() -> None:
    band = Band(0, Rules(routes=(Route(backend="goose"),), staff=Staff(1), backend="claude"))
    band.add()
    assert [agent.backend for agent in band.state.agents.values()] == ["goose"]


def test_a_worker_that_the_routing_does_not_name_is_not_given_the_task() -> None:
    band = Band(1, Rules(routes=(Route(("docs",), backend="gemini"),)))
    band.do(AddTasks((NewTask(Brief("a", labels=("docs",))),)))
    assert band.agent().task == ""
    band.do(AddTasks((NewTask(Brief("b")),)))
    assert band.agent().task == "t2"


def test_a_task_that_was_released_goes_back_to_who_knows_it() -> None:
    band = Band(3)
    band.watches = ()
    band.add()
    band.in_review("t1", BOB)
    band.do(ReleaseTask("t1"))
    band.settle(BOB)
    band.watches = Band().watches
    band.review("t1", "worker-3")
    band.says_of_it(approved=False, reviewer="worker-3")
    assert band.task().holder == BOB


def test_a_task_is_not_given_to_the_last_one_who_could_review_it() -> None:
    band = Band()
    band.watches = ()
    band.add()
    band.in_review()
    band.do(ReleaseTask("t1"))
    band.do(ReopenTask("t1"))
    band.settle(ADA)
    band.send("are you there?", ADA)
    band.watches = Band().watches
    band.do(StartRuntime("the next"))
    band.settle(ADA)
    assert band.task().holder == "", "worker-2 is free, and would be the second author of two workers"
    band.answered(ADA)
    assert band.task().holder == ADA
    band.play()
    assert merged(band) == ["t1"]


def test_reviewers_that_come_to_no_verdict_leave_it_blocked_in_the_end() -> None:
    band = Band()
    band.watches = ()
    band.add()
    band.reviewing()
    band.watches = Band().watches
    for _ in range((MOST_IDLE_TURNS + 1) * MOST_SETBACKS):
        assert band.task().status is TaskStatus.IN_REVIEW
        band.ends_turn(BOB, Outcome.FAILED)
    assert band.task().status is TaskStatus.BLOCKED
