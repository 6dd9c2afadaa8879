"""Open loops: what is not at its end, who has to see to it, and what to type."""

from domain.crew import ADA, BOB, Crew
from domain.drive import WORKER, Project
from domain.watched import Watched, nobody_answers
from remuda.domain.budget_commands import CheckBudget, SetBudget
from remuda.domain.commands import RetireAgent, SendMessage
from remuda.domain.ledger import Limits
from remuda.domain.state import Outcome, Sender, Usage
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks, BlockTask
from remuda.domain.trigger import Course
from remuda.domain.trigger_commands import GiveVerdict
from remuda.views.loops import Loop, loops_text, open_loops
from remuda.views.text import moment
from scenarios.watched_kit import checked, holder


def loops_of(project: Project) -> list[Loop]:
    return open_loops(project.state.agents, project.state.tasks)


def test_work_that_nobody_can_review_is_the_users_to_see_to() -> None:
    crew = Crew()
    crew.add()
    crew.at_work()
    crew.reports()
    crew.ends_turn()
    crew.accepted()
    assert [(loop.owner, "nobody" in loop.what) for loop in open_loops(crew.state.agents, crew.state.tasks)] == [
        (ADA, False)
    ]
    crew.do(RetireAgent(BOB))
    (loop,) = open_loops(crew.state.agents, crew.state.tasks)
    assert (loop.kind, loop.owner) == ("unmerged", "user")
    assert "nobody is there to review it" in loop.what
    assert loop.next == "remuda spawn worker"


def test_no_open_loop_is_without_an_owner() -> None:
    project = Watched()
    assert open_loops(project.state.agents, project.state.tasks) == []
    assert loops_text([], 0.0) == "no open loops\n"
    holder(project)
    project.do(AddTasks((NewTask(Brief("Nobody has it")),), "ghost"))
    project.asks()
    project.ready("crew", "boss")
    project.do_spawn("worker", "lost", "boss")
    project.send("hello", "lost")
    project.fires("lost")
    found = open_loops(project.state.agents, project.state.tasks)
    assert {(loop.kind, loop.about, loop.owner) for loop in found} == {
        ("task", "t1", WORKER),
        ("task", "t2", "user"),
        ("question", WORKER, "user"),
        ("verdict", "lost", "boss"),
    }
    nobody_answers(project, "lost")
    found = open_loops(project.state.agents, project.state.tasks)
    assert ("mail", "lost", "boss") in {(loop.kind, loop.about, loop.owner) for loop in found}
    assert all(loop.owner for loop in found)
    assert "Nobody has it" in loops_text(found, project.now)
    assert project.agent(WORKER).turn is None or project.answered(WORKER, Outcome.FAILED)


def test_each_loop_says_what_its_owner_can_type_and_what_comes_without_it() -> None:
    project = Watched()
    project.ready()
    project.fires(WORKER, evidence="it rewrites everything")
    (loop,) = loops_of(project)
    assert (loop.kind, loop.next) == ("verdict", f"remuda verdict {WORKER}")
    assert loop.until == project.agent().sought.until  # type: ignore[union-attr]
    assert f"reap at {moment(loop.until)} otherwise; changeset: it rewrites everything" in loops_text([loop], 0.0)
    project.do(GiveVerdict(WORKER, Course.REAP, "user"))
    assert loops_of(project) == []
    project.do(AddTasks((NewTask(Brief("Parse dates")), NewTask(Brief("Print dates", needs=("t1",)))), "user"))
    assert [(loop.about, loop.next) for loop in loops_of(project)] == [("t1", "remuda spawn worker"), ("t2", "")]
    project.do(BlockTask("t1", "it is a riddle"))
    assert [(loop.about, loop.next) for loop in loops_of(project)] == [("t1", "remuda task reopen t1"), ("t2", "")]


def test_an_agent_that_has_spent_its_budget_is_an_open_loop_until_it_is_granted_more() -> None:
    project = Watched()
    project.ready()
    project.do(SetBudget(f"agent:{WORKER}", Limits(tokens=100)))
    project.send("do it")
    project.used(Usage(200, 0), 1)
    project.do(CheckBudget(WORKER))
    (loop,) = loops_of(project)
    assert (loop.kind, loop.owner, loop.next) == ("budget", "user", f"remuda budget grant {WORKER}")


def test_mail_to_the_dead_that_somebody_else_takes_care_of_is_no_loop() -> None:
    project = Watched()
    holder(project)
    checked(project, "FAILED a", "one")
    project.fires(WORKER)
    assert project.agent().queue[0].about == "t1"
    project.do(SendMessage(WORKER, "s1", Sender.SYSTEM, "remuda", "by the way"))
    project.do(GiveVerdict(WORKER, Course.REAP, "user"))
    assert [loop.kind for loop in loops_of(project)] == ["task"]


def test_work_in_dispute_waits_for_the_verdict_and_not_for_a_reviewer() -> None:
    project = Watched()
    holder(project, paths=("src/*",))
    checked(project, "fine", "one", ("secrets.txt",), ok=True)
    assert [(loop.kind, loop.owner, loop.next) for loop in loops_of(project)] == [
        ("unmerged", "user", f"remuda verdict {WORKER}"),
        ("verdict", "user", f"remuda verdict {WORKER}"),
    ]
