"""What waits for what: a task for those it needs and for those its epic needs, an epic for its parts. Never in a
circle, or nobody could begin."""

from collections.abc import Iterable, Iterator, Mapping

from remuda.domain.errors import Invalid, Refused
from remuda.domain.lifecycle import FINISHED, TaskStatus
from remuda.domain.task import Kind, Task

Tasks = Mapping[str, Task]


def ready(tasks: Tasks) -> list[Task]:
    """What somebody could begin now, the most urgent first and of those the oldest."""
    free = [task for task in tasks.values() if task.status is TaskStatus.OPEN and startable(tasks, task)]
    return sorted(free, key=lambda task: task.brief.priority)


def startable(tasks: Tasks, task: Task) -> bool:
    return task.kind is Kind.TASK and not any(unmet(tasks, task))


def unmet(tasks: Tasks, task: Task) -> Iterator[Task]:
    """What must be done before it can begin."""
    for name in _needs(tasks, task):
        if tasks[name].status is not TaskStatus.DONE:
            yield tasks[name]


def _needs(tasks: Tasks, task: Task) -> Iterator[str]:
    yield from task.brief.needs
    for epic in epics_of(tasks, task):
        yield from epic.brief.needs


def epics_of(tasks: Tasks, task: Task) -> Iterator[Task]:
    """The epic it is a part of, the epic of that, and so on."""
    while task.brief.epic:
        task = tasks[task.brief.epic]
        yield task


def parts_of(tasks: Tasks, epic: str) -> list[Task]:
    return [task for task in tasks.values() if task.brief.epic == epic]


def unfinished(tasks: Tasks) -> list[Task]:
    return [task for task in tasks.values() if task.status not in FINISHED]


def check_links(tasks: Tasks, changed: Iterable[Task]) -> None:
    """What a changed task names exists, and no circle goes through it. `tasks` has the changed ones in it."""
    linked = [task for task in changed if task.brief.needs or task.brief.epic]
    for task in linked:
        _check_names(tasks, task)
    for task in linked:  # first, or the walk upward in the next check might not end
        _check_epics(tasks, task)
    if linked:
        _check_circles(tasks, linked)


def _check_names(tasks: Tasks, task: Task) -> None:
    for name in (*task.brief.needs, *((task.brief.epic,) if task.brief.epic else ())):
        if name not in tasks:
            raise Refused(f"{task.id} names the task {name!r}, which does not exist; see `remuda task list --all`")
    epic = tasks.get(task.brief.epic)
    if epic is not None and epic.kind is not Kind.EPIC:
        raise Refused(f"{epic.id} is a task and has no parts; make {task.id} part of an epic, or let it need {epic.id}")
    if epic is not None and epic.status in FINISHED:
        raise Refused(f"{epic.id} is {epic.status}; nothing can become a part of it any more")


def _check_epics(tasks: Tasks, task: Task) -> None:
    path = [task.id]
    while epic := tasks[path[-1]].brief.epic:
        path.append(epic)
        if epic in path[:-1]:
            raise Invalid(f"that would be a circle: {' is part of '.join(path)}")


def _check_circles(tasks: Tasks, changed: Iterable[Task]) -> None:
    """Depth first and without recursion: a chain of tasks may be longer than the stack is deep."""
    parts: dict[str, list[str]] = {}
    for task in tasks.values():
        parts.setdefault(task.brief.epic, []).append(task.id)
    done: set[str] = set()
    for start in changed:
        path = {start.id: iter(_waits_for(tasks, parts, start.id))}  # in the order in which it was walked
        while path:
            here = next(reversed(path))
            after = next(path[here], None)
            if after is None:
                done.add(here)
                del path[here]
            elif after in path:
                walked = list(path)
                circle = [*walked[walked.index(after) :], after]
                raise Invalid(f"that would be a circle: {' waits for '.join(circle)}; take one of these links out")
            elif after not in done:
                path[after] = iter(_waits_for(tasks, parts, after))


def _waits_for(tasks: Tasks, parts: Mapping[str, list[str]], name: str) -> list[str]:
    return [*_needs(tasks, tasks[name]), *parts.get(name, ())]
