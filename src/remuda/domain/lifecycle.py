"""Every legal move of an agent and of a task, as tables.

Rule 1: whatever decides whether a move is legal stands in this file, as data. Nobody else compares a status in
order to permit something: `decide` proposes a move, `check_move` refuses it. The diagrams in docs/lifecycle.md and
the property tests are made from these same tables.

Rule 2: a status says what the agent is, a session's stage says what its process is. They are two tables because
they change at different times: an agent is paused the moment someone says so, its process is gone a little later.
What is owed to the world (`due`) follows from the two together, never from how they came about. A task has two
tables for the same reason: its status is what people speak of, its work is what its worktree is in the middle of.
"""

from collections.abc import Mapping
from enum import StrEnum

from remuda.domain.errors import Refused


class Status(StrEnum):
    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    WORKING = "working"
    PAUSED = "paused"
    STOPPED = "stopped"
    HIBERNATING = "hibernating"
    RETIRED = "retired"
    FAILED = "failed"
    REAPED = "reaped"


class Phase(StrEnum):
    """Where a worker stands in its task."""

    IDLE = "idle"
    IMPLEMENTING = "implementing"
    AWAITING_REVIEW = "awaiting_review"
    REVIEWING = "reviewing"
    ADDRESSING_FEEDBACK = "addressing_feedback"
    COMMITTING = "committing"


class Stage(StrEnum):
    """Where a session's process stands."""

    REQUESTED = "requested"
    STARTED = "started"
    ENDING = "ending"
    ENDED = "ended"


class TaskStatus(StrEnum):
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    IN_REVIEW = "in_review"
    BLOCKED = "blocked"
    DONE = "done"
    DECOMPOSED = "decomposed"
    CANCELLED = "cancelled"


class Work(StrEnum):
    """Where a task's worktree stands. The words in -ing are promises: each owes an effect."""

    NONE = "none"
    PREPARING = "preparing"
    PREPARED = "prepared"
    CHECKING = "checking"
    CHECKED = "checked"  # the acceptance commands have passed on the commit that is kept with it
    MERGING = "merging"
    CLEARING = "clearing"


STATUS: Mapping[Status, tuple[Status, ...]] = {
    Status.PENDING: (Status.STARTING,),
    Status.STARTING: (Status.READY, Status.FAILED, Status.REAPED),
    Status.READY: (
        Status.WORKING,
        Status.PAUSED,
        Status.STOPPED,
        Status.HIBERNATING,
        Status.RETIRED,
        Status.FAILED,
        Status.REAPED,
        Status.STARTING,  # a fresh session for the same agent
    ),
    Status.WORKING: (
        Status.READY,
        Status.PAUSED,
        Status.STOPPED,
        Status.RETIRED,
        Status.FAILED,
        Status.REAPED,
    ),
    Status.PAUSED: (Status.READY, Status.STOPPED, Status.RETIRED, Status.REAPED),
    Status.STOPPED: (Status.READY, Status.RETIRED, Status.REAPED),
    Status.HIBERNATING: (Status.STARTING, Status.RETIRED, Status.REAPED),
    Status.RETIRED: (),
    Status.FAILED: (),
    Status.REAPED: (),
}

PHASE: Mapping[Phase, tuple[Phase, ...]] = {
    Phase.IDLE: (Phase.IMPLEMENTING, Phase.REVIEWING),
    Phase.IMPLEMENTING: (Phase.AWAITING_REVIEW, Phase.IDLE),
    Phase.AWAITING_REVIEW: (Phase.COMMITTING, Phase.ADDRESSING_FEEDBACK, Phase.IDLE),
    Phase.REVIEWING: (Phase.IDLE,),
    Phase.ADDRESSING_FEEDBACK: (Phase.AWAITING_REVIEW, Phase.IDLE),
    Phase.COMMITTING: (Phase.IDLE,),
}

STAGE: Mapping[Stage, tuple[Stage, ...]] = {
    Stage.REQUESTED: (Stage.STARTED, Stage.ENDING, Stage.ENDED),
    Stage.STARTED: (Stage.ENDING, Stage.ENDED),
    Stage.ENDING: (Stage.ENDED,),
    Stage.ENDED: (),
}

TASK: Mapping[TaskStatus, tuple[TaskStatus, ...]] = {
    TaskStatus.OPEN: (
        TaskStatus.IN_PROGRESS,
        TaskStatus.BLOCKED,
        TaskStatus.DONE,  # closed by hand, or the last part of an epic
        TaskStatus.DECOMPOSED,
        TaskStatus.CANCELLED,
    ),
    TaskStatus.IN_PROGRESS: (
        TaskStatus.IN_REVIEW,
        TaskStatus.OPEN,
        TaskStatus.BLOCKED,
        TaskStatus.DECOMPOSED,
        TaskStatus.CANCELLED,
    ),
    TaskStatus.IN_REVIEW: (
        TaskStatus.IN_PROGRESS,
        TaskStatus.DONE,
        TaskStatus.OPEN,
        TaskStatus.BLOCKED,
        TaskStatus.CANCELLED,
    ),
    TaskStatus.BLOCKED: (TaskStatus.OPEN, TaskStatus.DONE, TaskStatus.DECOMPOSED, TaskStatus.CANCELLED),
    TaskStatus.DECOMPOSED: (TaskStatus.DONE, TaskStatus.CANCELLED),
    TaskStatus.DONE: (),
    TaskStatus.CANCELLED: (),
}

WORK: Mapping[Work, tuple[Work, ...]] = {
    Work.NONE: (Work.PREPARING,),
    Work.PREPARING: (Work.PREPARED, Work.NONE, Work.CLEARING),
    Work.PREPARED: (Work.PREPARING, Work.CHECKING, Work.CLEARING),
    Work.CHECKING: (Work.CHECKED, Work.PREPARED, Work.CLEARING),
    Work.CHECKED: (Work.MERGING, Work.PREPARED, Work.CLEARING),
    Work.MERGING: (Work.CLEARING, Work.PREPARED),
    Work.CLEARING: (Work.NONE,),
}

# Who may be given a task: TASK has another way to in_progress, from review, but that one keeps its holder.
CLAIM: Mapping[TaskStatus, TaskStatus] = {TaskStatus.OPEN: TaskStatus.IN_PROGRESS}

# What becomes of its worktree when a task goes back or is given up. WORK has a way out of merging, but it is not for
# the asking: what is being merged may be merged already, and only the world can say.
PUT_BACK: Mapping[Work, Work] = {
    Work.NONE: Work.NONE,
    Work.PREPARING: Work.NONE,
    Work.PREPARED: Work.PREPARED,
    Work.CHECKING: Work.PREPARED,
    Work.CHECKED: Work.PREPARED,
    Work.CLEARING: Work.CLEARING,
}
GIVEN_UP: Mapping[Work, Work] = {
    Work.NONE: Work.NONE,
    Work.PREPARING: Work.CLEARING,
    Work.PREPARED: Work.CLEARING,
    Work.CHECKING: Work.CLEARING,
    Work.CHECKED: Work.CLEARING,
    Work.CLEARING: Work.CLEARING,
}

# Where `resume` leads. STATUS has more ways there, but they are not for the asking: a session starts, a turn ends.
RESUME: Mapping[Status, Status] = {
    Status.PENDING: Status.STARTING,
    Status.PAUSED: Status.READY,
    Status.STOPPED: Status.READY,
}

FINISHED = frozenset(status for status, after in TASK.items() if not after)

DEAD = frozenset(status for status, after in STATUS.items() if not after)

# A process exists only for these; in every other status a session that is still there is owed its end.
WITH_PROCESS = frozenset({Status.STARTING, Status.READY, Status.WORKING})


def check_move(agent: str, was: Status, now: Status) -> None:
    """Refuse a status that the table does not list, and name what is possible instead."""
    if now not in STATUS[was]:
        raise Refused(f"{agent} is {was} and cannot become {now}", possible=STATUS[was])


def check_resume(agent: str, was: Status) -> None:
    if was not in RESUME:
        waiting = ", ".join(RESUME)
        raise Refused(f"{agent} is {was} and cannot be resumed, only what is {waiting} can", possible=STATUS[was])


def check_phase(agent: str, was: Phase, now: Phase) -> None:
    if now not in PHASE[was]:
        raise Refused(f"{agent} is {was} and cannot become {now}", possible=PHASE[was])


def check_task(task: str, was: TaskStatus, now: TaskStatus) -> None:
    if now not in TASK[was]:
        raise Refused(f"{task} is {was} and cannot become {now}", possible=TASK[was])


def check_claim(task: str, was: TaskStatus) -> None:
    if was not in CLAIM:
        raise Refused(f"{task} is {was}; only what is {', '.join(CLAIM)} can be assigned", possible=TASK[was])


def check_free(task: str, work: Work) -> None:
    if work not in PUT_BACK:
        raise Refused(f"{task} is {work}; wait until the outcome is known: see `remuda task show {task}`")
