"""How an event changes a task. No decisions here: an event has happened and is applied."""

from collections.abc import Callable, Mapping
from typing import Any

from remuda.domain.lifecycle import FINISHED, PUT_BACK, WORK, TaskStatus, Work
from remuda.domain.spin_reading import shape
from remuda.domain.task import Kind, Refusal, Task, branch_of
from remuda.domain.task_events import (
    AcceptanceRun,
    ImplementationReported,
    MergeRefused,
    MergeRequested,
    ReviewAssigned,
    ReviewReleased,
    StepCompleted,
    TaskAdded,
    TaskAssigned,
    TaskEdited,
    TaskEvent,
    TaskMerged,
    TaskNoted,
    TaskReleased,
    TaskReportIgnored,
    TaskStatusChanged,
    VerdictGiven,
    WorkFailed,
    WorkReturned,
    WorktreeCleared,
    WorktreeGivenUp,
    WorktreeReady,
)

TREES = 20  # that failed and are remembered


def added(event: TaskAdded, at: float) -> Task:
    return Task(
        id=event.task,
        kind=event.kind,
        brief=event.brief,
        created_at=at,
        changed_at=at,
        by=event.by,
        branch=branch_of(event.task),
        base=event.base,
    )


def evolve_task(task: Task, event: TaskEvent, at: float) -> Task:
    """The task after an event. Each kind has its rule in RULES, at the end of this file."""
    after = RULES[type(event)](task, event)
    ended = at if after.status in FINISHED and not after.ended_at else after.ended_at
    return after._replace(changed_at=at, ended_at=ended)


def _edited(task: Task, event: TaskEdited) -> Task:
    same = task.brief.steps == event.brief.steps
    return task._replace(brief=event.brief, steps_done=task.steps_done if same else ())


def _noted(task: Task, event: TaskNoted) -> Task:
    return task._replace(notes=(*task.notes, event.note))


def _step_completed(task: Task, event: StepCompleted) -> Task:
    return task._replace(steps_done=tuple(sorted({*task.steps_done, event.step})))


def _status_changed(task: Task, event: TaskStatusChanged) -> Task:
    after = task._replace(status=event.now, why=event.why)
    match event.now:
        case TaskStatus.OPEN if event.was is TaskStatus.BLOCKED:
            return after._replace(setbacks=0)
        case TaskStatus.DECOMPOSED:
            return after._replace(kind=Kind.EPIC)
        case _:
            return after


def _assigned(task: Task, event: TaskAssigned) -> Task:
    return _at(task, Work.PREPARING)._replace(holder=event.holder, attempt=event.attempt, words=event.words)


def _released(task: Task, _event: TaskReleased) -> Task:
    return task._replace(holder="")


def _worktree_ready(task: Task, event: WorktreeReady) -> Task:
    return _at(task, Work.PREPARED)._replace(folder=event.folder)


def _implementation_reported(task: Task, event: ImplementationReported) -> Task:
    authors = task.authors if event.holder in task.authors else (*task.authors, event.holder)
    return _at(task, Work.CHECKING)._replace(
        attempt=event.attempt, summary=event.summary, authors=authors, check=None, verdict=None
    )


def _acceptance_run(task: Task, event: AcceptanceRun) -> Task:
    # One that failed is returned to work by the event that follows.
    check = event.check
    if check.ok:
        return _at(task, Work.CHECKED)._replace(check=check, failure="", alike=0)
    failure = shape(check.tail)
    alike = task.alike + 1 if failure == task.failure else 1
    trees = (*task.trees, check.tree)[-TREES:] if check.tree else task.trees
    return task._replace(check=check, failure=failure, alike=alike, trees=trees)


def _merge_refused(task: Task, event: MergeRefused) -> Task:
    return task._replace(conflicts=task.conflicts + (event.reason is Refusal.CONFLICT))


def _review_assigned(task: Task, event: ReviewAssigned) -> Task:
    return task._replace(reviewer=event.reviewer)


def _review_released(task: Task, event: ReviewReleased) -> Task:
    return task._replace(reviewer="", setbacks=task.setbacks + event.setback)


def _verdict_given(task: Task, event: VerdictGiven) -> Task:
    return task._replace(verdict=event.verdict)


def _work_returned(task: Task, event: WorkReturned) -> Task:
    work = Work.PREPARED if task.work is Work.MERGING else PUT_BACK[task.work]
    return _at(task, work)._replace(setbacks=task.setbacks + event.setback)


def _merge_requested(task: Task, event: MergeRequested) -> Task:
    return _at(task, Work.MERGING)._replace(attempt=event.attempt, message=event.message)


def _merged(task: Task, event: TaskMerged) -> Task:
    return _at(task, Work.CLEARING)._replace(attempt=event.attempt, merge=event.merge)


def _given_up(task: Task, event: WorktreeGivenUp) -> Task:
    return _at(task, Work.CLEARING)._replace(attempt=event.attempt)


def _cleared(task: Task, event: WorktreeCleared) -> Task:
    return _at(task, Work.NONE)._replace(folder=task.folder if event.kept else "", kept=event.kept)


def _unchanged(task: Task, _event: TaskEvent) -> Task:
    return task


def _at(task: Task, work: Work) -> Task:
    assert work is task.work or work in WORK[task.work], f"the log takes {task.id} from {task.work} to {work}"
    return task._replace(work=work)


RULES: Mapping[type, Callable[[Task, Any], Task]] = {
    TaskEdited: _edited,
    TaskNoted: _noted,
    StepCompleted: _step_completed,
    TaskStatusChanged: _status_changed,
    TaskAssigned: _assigned,
    TaskReleased: _released,
    WorktreeReady: _worktree_ready,
    WorkFailed: _unchanged,
    ImplementationReported: _implementation_reported,
    AcceptanceRun: _acceptance_run,
    ReviewAssigned: _review_assigned,
    ReviewReleased: _review_released,
    VerdictGiven: _verdict_given,
    WorkReturned: _work_returned,
    MergeRequested: _merge_requested,
    TaskMerged: _merged,
    MergeRefused: _merge_refused,
    WorktreeGivenUp: _given_up,
    WorktreeCleared: _cleared,
    TaskReportIgnored: _unchanged,
}
