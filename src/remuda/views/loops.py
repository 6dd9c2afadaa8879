"""Open loops: what was begun and is not at its end, each with the one who has to see to it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from remuda.domain.lifecycle import DEAD, TaskStatus, Work
from remuda.domain.state import Agent
from remuda.domain.task import Task, may_review
from remuda.domain.task_graph import unfinished
from remuda.views.table import Column, table
from remuda.views.text import age, first_line

COLUMNS = (Column("KIND"), Column("ABOUT"), Column("OWNER"), Column("AGE", right=True), Column("WHAT", elastic=True))
USER = "user"
COORDINATOR = "coordinator"


class Loop(msgspec.Struct, frozen=True):
    kind: Literal["task", "unmerged", "question", "verdict", "mail"]
    about: str  # the task or the agent
    owner: str
    since: float
    what: str


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
        if _unreviewable(living, task):
            doer, what = "", f"{what}; nobody is there to review it: `remuda spawn` makes another worker"
        owner = doer or _in_charge(living, task.by)
        found.append(Loop(kind, task.id, owner, task.changed_at, what))
    return found


def _unreviewable(living: Mapping[str, Agent], task: Task) -> bool:
    """It waits for a review, and all who are alive have worked on it."""
    waits = task.work is Work.CHECKED and task.verdict is None and not task.reviewer
    return waits and not any(agent.phase is not None and may_review(name, task) for name, agent in living.items())


def _of_agents(living: Mapping[str, Agent]) -> list[Loop]:
    found = []
    for agent in living.values():
        for question in agent.questions:
            if question.allow is None:
                what = f"{question.id} may it use {question.tool}?"
                found.append(Loop("question", agent.name, _in_charge(living, agent.parent), question.asked_at, what))
        if agent.sought is not None and agent.trigger is not None:
            owner = agent.sought.judge if agent.sought.judge in living else USER
            what = f"{agent.trigger.trigger}: {first_line(agent.trigger.evidence)}"
            found.append(Loop("verdict", agent.name, owner, agent.trigger.at, what))
    return found


def _of_the_dead(agents: Mapping[str, Agent], living: Mapping[str, Agent]) -> list[Loop]:
    """Mail that nobody will read any more, unless a successor has it."""
    followed = {agent.after for agent in agents.values()}
    return [
        Loop("mail", agent.name, _in_charge(living, agent.parent), agent.ended_at, f"{len(agent.queue)} unread")
        for agent in agents.values()
        if agent.status in DEAD and agent.queue and not agent.buried_at and agent.name not in followed
    ]


def _in_charge(living: Mapping[str, Agent], name: str) -> str:
    """Whoever asked for it if it is alive; else the coordinator; else the user. Never nobody."""
    if name in living:
        return name
    return next((agent.name for agent in living.values() if agent.role == COORDINATOR), USER)


def loops_text(loops: list[Loop], now: float, *, width: int | None = None) -> str:
    if not loops:
        return "no open loops\n"
    rows = [(each.kind, each.about, each.owner, age(max(0.0, now - each.since)), each.what) for each in loops]
    return table(COLUMNS, rows, width=width)
