"""The events of tasks in the vocabulary of subscribers: of each its type, and the fields that it fills."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

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

TaskType = Literal[
    "task_added",
    "task_edited",
    "task_noted",
    "step_completed",
    "task_status_changed",
    "task_assigned",
    "task_released",
    "worktree_ready",
    "work_failed",
    "implementation_reported",
    "acceptance_run",
    "review_assigned",
    "review_released",
    "verdict_given",
    "work_returned",
    "merge_requested",
    "task_merged",
    "merge_refused",
    "worktree_given_up",
    "worktree_cleared",
    "task_report_ignored",
]

Fields = dict[str, Any]

TOLD: Mapping[type, tuple[TaskType, Callable[[Any], Fields]]] = {
    TaskAdded: ("task_added", lambda event: {"message": event.brief.title, "author": event.by}),
    TaskEdited: ("task_edited", lambda event: {"message": event.brief.title, "author": event.by}),
    TaskNoted: ("task_noted", lambda event: {"message": event.note.text, "author": event.note.by}),
    StepCompleted: ("step_completed", lambda event: {"step": event.step, "author": event.by}),
    TaskStatusChanged: (
        "task_status_changed",
        lambda event: {"was": event.was, "task_status": event.now, "why": event.why},
    ),
    TaskAssigned: ("task_assigned", lambda event: {"agent": event.holder, "author": event.by}),
    TaskReleased: ("task_released", lambda event: {"agent": event.holder, "why": event.why}),
    WorktreeReady: ("worktree_ready", lambda event: {"path": event.folder}),
    WorkFailed: ("work_failed", lambda event: {"error": event.error}),
    ImplementationReported: (
        "implementation_reported",
        lambda event: {"agent": event.holder, "message": event.summary},
    ),
    AcceptanceRun: (
        "acceptance_run",
        lambda event: {
            "ok": event.check.ok,
            "commit": event.check.commit,
            "path": event.check.evidence,
            "why": event.check.tail,
        },
    ),
    ReviewAssigned: ("review_assigned", lambda event: {"agent": event.reviewer, "author": event.by}),
    ReviewReleased: ("review_released", lambda event: {"agent": event.reviewer, "why": event.why}),
    VerdictGiven: (
        "verdict_given",
        lambda event: {
            "agent": event.verdict.reviewer,
            "ok": event.verdict.approved,
            "message": event.verdict.comments,
            "commit": event.verdict.commit,
        },
    ),
    WorkReturned: ("work_returned", lambda event: {"why": event.why}),
    MergeRequested: ("merge_requested", lambda event: {"message": event.message, "author": event.by}),
    TaskMerged: (
        "task_merged",
        lambda event: {
            "commit": event.merge.commit,
            "message": event.merge.target,
            "next_step": event.merge.next_step,
        },
    ),
    MergeRefused: (
        "merge_refused",
        lambda event: {"why": event.reason, "path": event.evidence, "error": event.tail},
    ),
    WorktreeGivenUp: ("worktree_given_up", lambda _event: {}),
    WorktreeCleared: ("worktree_cleared", lambda event: {"why": event.kept}),
    TaskReportIgnored: ("task_report_ignored", lambda event: {"why": f"{event.report}: {event.why}"}),
}


def told(event: TaskAdded | TaskEvent) -> tuple[TaskType, Fields]:
    kind, fields = TOLD[type(event)]
    return kind, {"task": event.task, **fields(event)}


def words(kind: str, ok: bool | None) -> str:
    """What `ok` means for a type: the rest of the line speaks for itself."""
    match kind:
        case "acceptance_run":
            return "passed" if ok else "failed"
        case "verdict_given":
            return "approved" if ok else "denied"
        case _:
            return ""
