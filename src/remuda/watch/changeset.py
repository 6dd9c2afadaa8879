"""Notices work that is beyond repair: the same checks fail over and over, it goes where it was not meant to, what was
taken back is made again, or it cannot be merged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from remuda.domain.commands import Command
from remuda.domain.events import Event
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import State
from remuda.domain.task import Refusal, Task
from remuda.domain.task_events import AcceptanceRun, MergeRefused
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_commands import FireTrigger

SHOWN = 5  # files


@dataclass(frozen=True, slots=True)
class Wrong:
    """When work is wrong. 0: never for that reason."""

    failures: int = 3  # checks in a row that fail in the same way
    conflicts: int = 3
    files: int = 0  # that a task may change
    outside: bool = False  # whether files outside the paths that the task names are wrong


def changeset(wrong: Wrong) -> Callable[[State, Event], Iterator[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        if not isinstance(event, AcceptanceRun | MergeRefused):
            return
        task = state.tasks[event.task]
        holder = state.agents.get(task.holder)
        if holder is None or holder.status in DEAD:
            return
        for rule, evidence, number in _wrongs(task, event, wrong):
            yield FireTrigger(holder.name, Trigger.CHANGESET, f"{task.id}: {evidence}", rule, ((rule, number),))
            return

    return watch


def _wrongs(task: Task, event: AcceptanceRun | MergeRefused, wrong: Wrong) -> Iterator[tuple[str, str, int]]:
    if isinstance(event, MergeRefused):
        if event.reason is Refusal.CONFLICT and 0 < wrong.conflicts <= task.conflicts:
            yield "conflict", f"it came to a conflict {task.conflicts} times", task.conflicts
        return
    check = event.check
    strays = [file for file in check.files if not any(_within(file, path) for path in task.brief.paths)]
    if wrong.outside and task.brief.paths and strays:
        shown = ", ".join(strays[:SHOWN]) + (" and others" if len(strays) > SHOWN else "")
        yield "outside", f"it changes what it was not meant to: {shown}", len(strays)
    if 0 < wrong.files < len(check.files):
        yield "size", f"it changes {len(check.files)} files, more than {wrong.files}", len(check.files)
    if check.ok:
        return
    if check.tree and check.tree in task.trees[:-2] and check.tree != task.trees[-2]:
        yield "redone", "what was taken back has been made again, and fails again", len(task.trees)
    if 0 < wrong.failures <= task.alike:
        yield "failures", f"its checks failed in the same way {task.alike} times in a row", task.alike


def _within(file: str, path: str) -> bool:
    return fnmatchcase(file, path) or file.startswith(path.rstrip("/*") + "/")
