"""What has happened to tasks. None has a field `agent`: that is what tells them from the events of agents."""

from dataclasses import dataclass

from remuda.domain.lifecycle import TaskStatus
from remuda.domain.task import Brief, Check, Kind, Merge, Note, Refusal, Verdict


@dataclass(frozen=True, slots=True)
class TaskAdded:
    task: str
    kind: Kind
    brief: Brief
    base: str  # the branch that its own will start from; empty: the target
    by: str


@dataclass(frozen=True, slots=True)
class TaskEdited:
    task: str
    brief: Brief
    by: str


@dataclass(frozen=True, slots=True)
class TaskNoted:
    task: str
    note: Note


@dataclass(frozen=True, slots=True)
class StepCompleted:
    task: str
    step: int
    by: str


@dataclass(frozen=True, slots=True)
class TaskStatusChanged:
    task: str
    was: TaskStatus
    now: TaskStatus
    why: str


@dataclass(frozen=True, slots=True)
class TaskAssigned:
    """It has its one holder, and is owed a worktree."""

    task: str
    holder: str
    attempt: int
    branch: str
    by: str
    words: str


@dataclass(frozen=True, slots=True)
class TaskReleased:
    task: str
    holder: str
    why: str


@dataclass(frozen=True, slots=True)
class WorktreeReady:
    task: str
    attempt: int
    folder: str


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """The world would not do what it owed; it is blocked."""

    task: str
    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class ImplementationReported:
    """It is owed a check."""

    task: str
    holder: str
    attempt: int
    summary: str


@dataclass(frozen=True, slots=True)
class AcceptanceRun:
    task: str
    attempt: int
    check: Check


@dataclass(frozen=True, slots=True)
class ReviewAssigned:
    task: str
    reviewer: str
    by: str


@dataclass(frozen=True, slots=True)
class ReviewReleased:
    task: str
    reviewer: str
    why: str
    setback: bool = False


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    task: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class WorkReturned:
    """It is to be worked on again: after a failed check, a denial, a refused merge."""

    task: str
    why: str
    setback: bool


@dataclass(frozen=True, slots=True)
class MergeRequested:
    task: str
    attempt: int
    message: str
    by: str


@dataclass(frozen=True, slots=True)
class TaskMerged:
    """Its worktree is owed its removal."""

    task: str
    attempt: int
    merge: Merge


@dataclass(frozen=True, slots=True)
class MergeRefused:
    task: str
    attempt: int
    reason: Refusal
    evidence: str
    tail: str


@dataclass(frozen=True, slots=True)
class WorktreeGivenUp:
    """The task was given up; its worktree is owed its removal. The branch stays."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WorktreeCleared:
    task: str
    attempt: int
    kept: str


@dataclass(frozen=True, slots=True)
class TaskReportIgnored:
    """A report that came too late or twice. Kept as evidence, never applied."""

    task: str
    attempt: int
    report: str
    why: str


TaskEvent = (
    TaskEdited
    | TaskNoted
    | StepCompleted
    | TaskStatusChanged
    | TaskAssigned
    | TaskReleased
    | WorktreeReady
    | WorkFailed
    | ImplementationReported
    | AcceptanceRun
    | ReviewAssigned
    | ReviewReleased
    | VerdictGiven
    | WorkReturned
    | MergeRequested
    | TaskMerged
    | MergeRefused
    | WorktreeGivenUp
    | WorktreeCleared
    | TaskReportIgnored
)
