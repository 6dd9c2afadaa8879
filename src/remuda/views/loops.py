"""Open loops: what was begun and is not at its end, each with the one who has to see to it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from remuda.domain.lifecycle import DEAD, Status, TaskStatus, Work
from remuda.domain.state import Agent, Sender
from remuda.domain.task import Task, may_review
from remuda.domain.task_graph import startable, unfinished
from remuda.domain.trigger import Trigger
from remuda.domain.workflow import dispute
from remuda.views.table import Column, table
from remuda.views.text import age, first_line, moment

COLUMNS = (
    Column("KIND"),
    Column("ABOUT"),
    Column("OWNER"),
    Column("AGE", right=True),
    Column("NEXT", optional=True),
    Column("WHAT", elastic=True),
)
USER = "user"
COORDINATOR = "coordinator"


class Loop(msgspec.Struct, frozen=True):
    kind: Literal["task", "unmerged", "question", "verdict", "budget", "mail"]
    about: str  # the task or the agent
    owner: str
    since: float
    what: str
    next: str = ""  # what the owner can type; empty: it goes on by itself
    until: float = 0.0  # when it is decided without the owner; 0: never


def open_loops(agents: Mapping[str, Agent], tasks: Mapping[str, Task]) -> list[Loop]:
    living = {name: agent for name, agent in agents.items() if agent.status not in DEAD}
    return [*_of_tasks(living, tasks), *_of_agents(living), *_of_the_dead(agents, living)]


def _of_tasks(living: Mapping[str, Agent], tasks: Mapping[str, Task]) -> list[Loop]:
    found = []
    for task in unfinished(tasks):
        kind: Literal["task", "unmerged"] = "task"
        if task.status is TaskStatus.IN_REVIEW or task.work in (Work.CHECKED, Work.MERGING):
            kind = "unmerged"
        doer = next((name for name in (task.reviewer, task.holder) if name in living), "")
        what = f"{task.status}: {task.brief.title}" + (f" ({first_line(task.why)})" if task.why else "")
        missing, remedy = _stuck(living, tasks, task)
        if missing:
            doer, what = "", f"{what}; {missing}"
        found.append(Loop(kind, task.id, doer or _in_charge(living, task.by), task.changed_at, what, remedy))
    return found


def _stuck(living: Mapping[str, Agent], tasks: Mapping[str, Task], task: Task) -> tuple[str, str]:
    """Why nobody goes on with it, and what can be typed."""
    workers = {name: agent for name, agent in living.items() if agent.phase is not None}
    if task.status is TaskStatus.BLOCKED:
        return "a person is to look at it", f"remuda task reopen {task.id}"
    if task.status is TaskStatus.OPEN and not workers and startable(tasks, task):
        return "nobody is there to do it", "remuda spawn worker"
    if task.status is TaskStatus.IN_REVIEW and dispute(living, task):
        return "a verdict on its changes is awaited", f"remuda verdict {task.holder}"
    waits = task.work is Work.CHECKED and task.verdict is None and not task.reviewer
    if waits and not any(may_review(name, task) for name in workers):
        return "nobody is there to review it", "remuda spawn worker"
    return "", ""


def _of_agents(living: Mapping[str, Agent]) -> list[Loop]:
    found = []
    for agent in living.values():
        name, above = agent.name, _in_charge(living, agent.parent)
        for question in agent.questions:
            if question.allow is None:
                what = f"{question.id} may it use {question.tool}?"
                found.append(Loop("question", name, above, question.asked_at, what, "remuda answer"))
        fired, sought = agent.trigger, agent.sought
        if fired is None:
            continue
        what = f"{fired.trigger}: {first_line(fired.evidence)}"
        if sought is not None:
            owner = sought.judge if sought.judge in living else USER
            what = f"{sought.otherwise} at {moment(sought.until)} otherwise; {what}" if sought.until else what
            found.append(Loop("verdict", name, owner, fired.at, what, f"remuda verdict {name}", sought.until))
        elif fired.trigger is Trigger.BUDGET and agent.status is Status.PAUSED:
            found.append(Loop("budget", name, above, fired.at, what, f"remuda budget grant {name}"))
    return found


def _of_the_dead(agents: Mapping[str, Agent], living: Mapping[str, Agent]) -> list[Loop]:
    """Mail that nobody will read any more, unless a successor has it. What the runtime wrote itself, and what was about
    a task that others may go on with, is no loss."""
    followed = {agent.after for agent in agents.values()}
    found = []
    for agent in agents.values():
        if agent.status in DEAD and not agent.buried_at and agent.name not in followed:
            unread = [each for each in agent.queue if each.sender is not Sender.SYSTEM and not each.about]
            if unread:
                what, look = f"{len(unread)} unread: {first_line(unread[0].text)}", f"remuda body show {agent.name}"
                found.append(Loop("mail", agent.name, _in_charge(living, agent.parent), agent.ended_at, what, look))
    return found


def _in_charge(living: Mapping[str, Agent], name: str) -> str:
    """Whoever asked for it if it is alive; else the coordinator; else the user. Never nobody."""
    if name in living:
        return name
    return next((agent.name for agent in living.values() if agent.role == COORDINATOR), USER)


def loops_text(loops: list[Loop], now: float, *, width: int | None = None) -> str:
    if not loops:
        return "no open loops\n"
    rows = [
        (each.kind, each.about, each.owner, age(max(0.0, now - each.since)), each.next, each.what) for each in loops
    ]
    return table(COLUMNS, rows, width=width)
