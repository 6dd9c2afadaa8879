"""What a model reads of tasks and workers. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from remuda.domain.lifecycle import DEAD, FINISHED
from remuda.domain.prompts import steps
from remuda.domain.state import Agent
from remuda.domain.task import Task
from remuda.domain.task_graph import ready

MOST_LINES = 200
LAST_NOTES = 20
LONGEST_OUTPUT = 4000  # characters of a check's output


def task_list(tasks: Mapping[str, Task], which: Literal["ready", "unfinished", "all"]) -> str:
    match which:
        case "ready":
            chosen = ready(tasks)
        case "unfinished":
            chosen = [task for task in tasks.values() if task.status not in FINISHED]
        case "all":
            chosen = list(tasks.values())
    return _lines(map(_task_line, chosen), f"There are no tasks that are {which}.")


def _task_line(task: Task) -> str:
    who = f", held by {task.holder}" if task.holder else ""
    reviewed = f", reviewed by {task.reviewer}" if task.reviewer else ""
    needs = f", needs {', '.join(task.brief.needs)}" if task.brief.needs else ""
    part = f", part of {task.brief.epic}" if task.brief.epic else ""
    return f"{task.id} [{task.status}] {task.brief.title} (priority {task.brief.priority}{needs}{part}{who}{reviewed})"


def task_page(task: Task) -> str:
    parts = [_task_line(task), task.brief.description, "\n".join(steps(task)), _came_of_it(task)]
    notes = [f"- {note.by}: {note.text}" for note in task.notes[-LAST_NOTES:]]
    if notes:
        parts.append("Notes:\n" + "\n".join(notes))
    return "\n\n".join(part for part in parts if part)


def _came_of_it(task: Task) -> str:
    lines = [f"Why it is {task.status}: {task.why}"] if task.why else []
    if task.brief.accept:
        lines.append("Accepted when these succeed: " + "; ".join(task.brief.accept))
    if task.branch:
        lines.append(f"Branch: {task.branch}")
    if task.summary:
        lines.append(f"Its worker says: {task.summary}")
    if task.check is not None:
        outcome = "passed" if task.check.ok else f"failed:\n{task.check.tail[-LONGEST_OUTPUT:]}"
        lines.append(f"The last check of {task.check.commit or 'it'} {outcome}")
    if task.verdict is not None:
        word = "APPROVED" if task.verdict.approved else "DENIED"
        lines.append(f"{task.verdict.reviewer}'s verdict: {word}. {task.verdict.comments}")
    if task.merge is not None:
        lines.append(f"Merged into {task.merge.target} as {task.merge.commit}")
    return "\n".join(lines)


def worker_list(workers: Iterable[Agent]) -> str:
    alive = [each for each in workers if each.status not in DEAD]
    return _lines(map(_worker_line, alive), "There are no workers.")


def _worker_line(agent: Agent) -> str:
    task = f" on {agent.task}" if agent.task else ""
    waits = f", {len(agent.queue)} messages wait" if agent.queue else ""
    return f"{agent.name} ({agent.backend}) is {agent.status}, {agent.phase}{task}{waits}"


def _lines(lines: Iterable[str], nothing: str) -> str:
    all_of_them = list(lines)
    left = len(all_of_them) - MOST_LINES
    shown = all_of_them[:MOST_LINES] + ([f"… and {left} more"] if left > 0 else [])
    return "\n".join(shown) or nothing
