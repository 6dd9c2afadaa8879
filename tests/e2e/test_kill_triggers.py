"""The runtime is killed with SIGKILL between the steps of a trigger: one nudge, one stop, one verdict all the same."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from e2e.kill_kit import Hunted, hunted
from remuda.domain.events import StatusChanged, TriggerFired, TurnEnded
from remuda.domain.lifecycle import DEAD, Status, TaskStatus
from remuda.domain.trigger_events import AgentNudged, VerdictReached, VerdictSought
from waiting import until_true

NAMES = ("ada", "bob", "cyd", "dot")
CIRCLES = ({"loop": {"times": 12, "do": [{"run": ["cat", "nowhere.txt"]}]}}, {"hang": True})
MOST_KILLS = 40


def stage(project: Hunted, name: str) -> str:
    """How far the story of an agent that goes in circles has come."""
    for kind in (VerdictReached, TriggerFired, AgentNudged):
        if project.of(kind, name):
            return kind.__name__
    return "circling" if project.agent(name).turns or project.agent(name).turn else "starting"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_at_every_step_an_agent_in_circles_is_nudged_once_stopped_once_and_judged_once(tmp_path: Path) -> None:
    chance, hit = random.Random(3), Counter[str]()
    with hunted(tmp_path, "[watch.verdict]\nseconds = 2.0\n") as project:
        for name in NAMES:
            project.spawn(name)
            project.send(name, *CIRCLES)
        for _ in range(MOST_KILLS):
            seq = project.state.seq + chance.randrange(1, 40)
            until_true(lambda seq=seq: project.grown_to(seq)() or over(project))  # type: ignore[misc]
            if over(project):
                break
            hit.update(stage(project, name) for name in NAMES)
            project.killed_and_started()
        until_true(lambda: over(project), 60)
        for name in NAMES:
            told = [type(event) for event in project.of(AgentNudged | TriggerFired | VerdictSought, name)]  # type: ignore[arg-type]
            assert told[:3] == [AgentNudged, TriggerFired, VerdictSought], name
            assert set(told[3:]) <= {VerdictSought}, name  # its time was up while there was no runtime
            (verdict,) = project.of(VerdictReached, name)
            assert (verdict.course, verdict.by) == ("reap", "remuda")
            assert [each.now for each in project.of(StatusChanged, name) if each.now in DEAD] == [Status.REAPED]
            (nudge,) = project.of(AgentNudged, name)
            answered = [each.message_id for each in project.of(TurnEnded, name) if each.outcome.answered]
            assert answered == [nudge.message.id]  # read once, and the work was never done
        assert {"circling", "AgentNudged", "TriggerFired"} <= set(hit), hit  # or this test has shown nothing
        until_true(lambda: not project.processes())


def over(project: Hunted) -> bool:
    return all(project.agent(name).status in DEAD for name in NAMES)


# --- sleep ---

CREW = """\
[tasks]
review = "none"
workers = 1

[[routing]]
labels = ["crew"]
role = "crew"
"""
REPORT = {"call": {"name": "report_implementation_complete", "arguments": {"summary": "Done."}}}


def add_task(project: Hunted, number: int) -> None:
    steps: list[Any] = [{"write": {"path": f"{number}.txt", "text": "done\n"}}, REPORT]
    brief = {"title": f"Task {number}", "labels": ["crew"], "description": f"playbook: {json.dumps(steps)}"}
    project.order("/v1/tasks", tasks=[{"brief": brief}])


def is_done(project: Hunted, task: str) -> bool:
    project.read()
    return task in project.state.tasks and project.state.tasks[task].status is TaskStatus.DONE


@pytest.mark.long
@pytest.mark.timeout(200)
def test_one_that_sleeps_has_no_process_and_wakes_on_mail_and_on_work_though_the_runtime_dies_in_between(
    tmp_path: Path,
) -> None:
    with hunted(tmp_path, CREW) as project:
        add_task(project, 1)
        until_true(lambda: is_done(project, "t1"), 60)
        (name,) = project.state.agents
        asleep = project.is_status(name, Status.HIBERNATING)
        until_true(lambda: asleep() and not project.processes())
        project.killed_and_started()  # as a reboot does
        assert asleep()
        assert project.processes() == []
        project.send(name, {"say": "good morning\n"}, words="wake up")
        project.kill()  # it has been told that the mail is kept, and nothing more
        assert not project.processes() or project.agent(name).status is not Status.HIBERNATING
        project.start()
        until_true(lambda: len(woken(project, name)) == 1)
        until_true(project.is_status(name, Status.HIBERNATING))
        add_task(project, 2)
        project.killed_and_started()
        until_true(lambda: is_done(project, "t2"), 60)
        assert list(project.state.agents) == [name]
        until_true(project.is_status(name, Status.HIBERNATING))
        assert len(woken(project, name)) == 1


def woken(project: Hunted, name: str) -> list[TurnEnded]:
    """Answered turns that the user asked for."""
    ended = project.of(TurnEnded, name)
    return [each for each in ended if each.outcome.answered and each.message_id.startswith("order-")]
