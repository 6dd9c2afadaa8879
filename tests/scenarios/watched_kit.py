"""What the tests of the triggers share: how an agent gets to its task, what was fired, what the dead have left."""

from domain.drive import WORKER
from domain.watched import Watched
from remuda.domain.events import TriggerFired
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import (
    AddTasks,
    AssignTask,
    ReportAcceptance,
    ReportImplementationComplete,
    ReportWorktreeReady,
)
from remuda.domain.trigger import Trigger
from remuda.views.body import Body, Remains, body, of_agent


def remains(project: Watched, name: str = WORKER) -> Body:
    return body(
        project.agent(name),
        of_agent(project.agent(name), project.log),
        project.state,
        Remains(["the last it said"], ["a"], "+x"),
    )


def fired(project: Watched) -> list[tuple[str, Trigger, str]]:
    return [
        (event.agent, event.trigger, event.rule)
        for event in project.all(TriggerFired)
        if isinstance(event, TriggerFired)
    ]


def at_it(project: Watched, name: str = WORKER, task: str = "t1") -> None:
    """To the turn in which it works on its task."""
    for _ in range(5):
        turn, session = project.agent(name).turn, project.agent(name).session
        if turn is not None and turn.message.about == task:
            return
        if turn is not None:
            project.answered(name)
        elif session is not None and session.stage == "ending":
            project.ended(name)
        elif session is not None and session.stage == "requested":
            project.started(name)


def holder(project: Watched, **brief: object) -> None:
    project.ready()
    project.do(AddTasks((NewTask(Brief("Parse dates", accept=("make test",), **brief)),), "user"))  # type: ignore[arg-type]
    project.do(AssignTask("t1", WORKER, "user"))
    project.do(ReportWorktreeReady("t1", project.state.tasks["t1"].attempt, "w/t1"))
    at_it(project)


def checked(project: Watched, tail: str, tree: str, files: tuple[str, ...] = (), *, ok: bool = False) -> None:
    project.do(ReportImplementationComplete(WORKER, project.epoch(), "done"))
    project.do(ReportAcceptance("t1", project.state.tasks["t1"].attempt, ok, f"c-{tree}", "e", tail, tree, files))
    if project.agent().turn is not None:
        project.answered()
