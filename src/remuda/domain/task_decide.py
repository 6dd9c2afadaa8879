"""The list of work: adding, editing, closing and cancelling tasks, by hand or by an agent that plans."""

from collections.abc import Iterable
from dataclasses import replace

from remuda.domain import workflow
from remuda.domain.draft import Decision
from remuda.domain.errors import Invalid, Refused
from remuda.domain.lifecycle import FINISHED, TaskStatus, check_free, check_task
from remuda.domain.task import Brief, NewTask, Note, Task
from remuda.domain.task_commands import (
    AddTasks,
    BlockTask,
    CancelTask,
    CloseTask,
    CompleteStep,
    EditTask,
    NoteTask,
    ReopenTask,
    SplitTask,
)
from remuda.domain.task_events import StepCompleted, TaskAdded, TaskEdited, TaskNoted
from remuda.domain.task_graph import check_links, parts_of
from remuda.domain.text import LONGEST_REASON, check_name, check_text

USER = "user"
LEAST_URGENT = 4
LONGEST_TITLE = 300
MOST_AT_ONCE = 10_000


def add(decision: Decision, command: AddTasks) -> None:
    check_text("who asks", command.by, longest=LONGEST_REASON)
    add_all(decision, command.new, by=command.by)


def _check_orders(decision: Decision, brief: Brief, by: str) -> None:
    """Acceptance commands are run by the runtime, and a target is where work ends up: both are for the user to say.
    What the user has said once, agents may say again."""
    if by == USER:
        return
    said = [task.brief for task in decision.state.tasks.values()]
    known = {command for each in said for command in each.accept}
    if not known.issuperset(brief.accept):
        raise Refused("only the user may name a new acceptance command; leave it out, or use one", possible=known)
    if brief.target not in {"", *(each.target for each in said)}:
        raise Refused("only the user may say into which branch work is merged; leave the target out")


def add_all(decision: Decision, new: tuple[NewTask, ...], *, by: str, base: str = "") -> None:
    if not 0 < len(new) <= MOST_AT_ONCE:
        raise Invalid(f"add from 1 to {MOST_AT_ONCE} tasks at once, not {len(new)}")
    names = _names(decision, new)
    known = {each.key: name for name, each in zip(names, new, strict=True) if each.key}
    for name, each in zip(names, new, strict=True):
        brief = _resolved(each.brief, known)
        _check_brief(brief)
        _check_orders(decision, brief, by)
        decision.add(TaskAdded(name, each.kind, brief, base, by))
    check_links(decision.tasks(), [decision.task(name) for name in names])


def _names(decision: Decision, new: tuple[NewTask, ...]) -> list[str]:
    taken = set(decision.state.tasks)
    names: list[str] = []
    number = len(taken)
    for each in new:
        name = each.id
        if name:
            check_name("task id", name)
            if name in taken:
                raise Refused(f"there is already a task {name!r}; ids are never used twice")
        while not name or name in taken:
            number += 1
            name = f"t{number}"
        taken.add(name)
        names.append(name)
    return names


def _resolved(brief: Brief, known: dict[str, str]) -> Brief:
    needs = tuple(dict.fromkeys(known.get(name, name) for name in brief.needs))
    return replace(brief, needs=needs, epic=known.get(brief.epic, brief.epic))


def _check_brief(brief: Brief) -> None:
    check_text("a title", brief.title, longest=LONGEST_TITLE)
    if "\n" in brief.title:
        raise Invalid("a title is one line; the rest belongs into the description")
    check_text("a description", brief.description, empty=True)
    if not 0 <= brief.priority <= LEAST_URGENT:
        raise Invalid(f"a priority is from 0, the most urgent, to {LEAST_URGENT}, not {brief.priority}")
    for what, words in (("a step", brief.steps), ("an acceptance command", brief.accept)):
        for each in words:
            check_text(what, each)
    for what, words in (("a label", brief.labels), ("a path", brief.paths), ("a branch", (brief.target or "-",))):
        for each in words:
            check_text(what, each, longest=LONGEST_TITLE)


def edit(decision: Decision, command: EditTask) -> None:
    task = _unfinished(decision, command.task)
    _check_brief(command.brief)
    brief = _resolved(command.brief, {})
    if command.by != USER and (brief.accept, brief.target) != (task.brief.accept, task.brief.target):
        raise Refused("only the user may change how a task is accepted and where it is merged")
    if brief == task.brief:
        raise Refused(f"{task.id} is like that already; nothing would change")
    decision.emit(TaskEdited(task.id, brief, command.by))
    if (brief.needs, brief.epic) != (task.brief.needs, task.brief.epic):
        check_links(decision.tasks(), [decision.task(task.id)])
        workflow.close_epics(decision, task)  # the part that it has left may have been the last


def note(decision: Decision, command: NoteTask) -> None:
    task = decision.task(command.task)
    check_text("a note", command.text)
    check_text("who notes it", command.by, longest=LONGEST_REASON)
    decision.emit(TaskNoted(task.id, Note(decision.now, command.by, command.text)))


def complete_step(decision: Decision, command: CompleteStep) -> None:
    task = _unfinished(decision, command.task)
    if not 1 <= command.step <= len(task.brief.steps):
        raise Invalid(f"{task.id} has {len(task.brief.steps)} steps, and no step {command.step}")
    if command.step in task.steps_done:
        raise Refused(f"step {command.step} of {task.id} is done already")
    decision.emit(StepCompleted(task.id, command.step, command.by))


def close(decision: Decision, command: CloseTask) -> None:
    task = decision.task(command.task)
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    left = [part.id for part in parts_of(decision.tasks(), task.id) if part.status not in FINISHED]
    if left:
        raise Refused(
            f"{task.id} has parts that are not finished: {', '.join(left)}; it closes by itself with the last"
        )
    workflow.finish(decision, task, TaskStatus.DONE, command.why or "closed by hand")


def cancel(decision: Decision, command: CancelTask) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    task = decision.task(command.task)
    doomed = [each for each in _whole(decision, task) if each is task or each.status not in FINISHED]
    for each in doomed:  # the parts stand before what they are parts of
        check_free(each.id, each.work)
        check_task(each.id, each.status, TaskStatus.CANCELLED)
    for each in doomed:
        if decision.task(each.id).status not in FINISHED:  # the last part may have closed it
            workflow.finish(decision, decision.task(each.id), TaskStatus.CANCELLED, command.why or "cancelled")


def _whole(decision: Decision, task: Task) -> Iterable[Task]:
    for part in parts_of(decision.tasks(), task.id):
        yield from _whole(decision, part)
    yield task


def block(decision: Decision, command: BlockTask) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON)
    workflow.block(decision, decision.task(command.task), command.why)


def reopen(decision: Decision, command: ReopenTask) -> None:
    check_text("the reason", command.why, longest=LONGEST_REASON, empty=True)
    workflow.reopen(decision, decision.task(command.task), command.why or "reopened")


def split(decision: Decision, command: SplitTask) -> None:
    take_apart(decision, decision.task(command.task), command.parts, command.by)


def take_apart(decision: Decision, task: Task, parts: tuple[NewTask, ...], by: str, *, cut: bool = True) -> None:
    """What was done of it so far is where its parts begin."""
    workflow.take_apart(decision, task, f"into {len(parts)} parts", cut=cut)
    base = task.branch if task.folder else task.base
    add_all(decision, tuple(_part(task, each) for each in parts), by=by, base=base)


def _part(task: Task, new: NewTask) -> NewTask:
    """A part is accepted by what the whole is: nobody gets around a check by taking a task apart."""
    brief, whole = new.brief, task.brief
    accept = tuple(dict.fromkeys((*whole.accept, *brief.accept)))
    target = brief.target or whole.target
    return replace(new, brief=replace(brief, epic=brief.epic or task.id, accept=accept, target=target))


def _unfinished(decision: Decision, name: str) -> Task:
    task = decision.task(name)
    if task.status in FINISHED:
        raise Refused(f"{name} is {task.status}; what is finished does not change, but it can be noted on")
    return task
