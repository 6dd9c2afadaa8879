"""What may be asked about tasks.

Commands with an `agent` and an `epoch` are said by that agent itself, through a tool: who serves the tool takes both
from the token of the session, never from an argument. One from a session that is over is refused and told so.
`by` names who asks: "user", or an agent, or "remuda".
"""

from dataclasses import dataclass

from remuda.domain.task import Brief, NewTask, Refusal, Staff

# --- the list of work ---


@dataclass(frozen=True, slots=True)
class AddTasks:
    """All of them or none: they may need one another in any order, but not in a circle."""

    new: tuple[NewTask, ...]
    by: str = "user"


@dataclass(frozen=True, slots=True)
class EditTask:
    task: str
    brief: Brief
    by: str = "user"


@dataclass(frozen=True, slots=True)
class NoteTask:
    task: str
    text: str
    by: str = "user"


@dataclass(frozen=True, slots=True)
class CompleteStep:
    task: str
    step: int  # from 1
    by: str = "user"


@dataclass(frozen=True, slots=True)
class CloseTask:
    """Done by hand: a person's word, for work that no agent has. What an agent has is done when it is merged."""

    task: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class CancelTask:
    """With its parts, if it is an epic."""

    task: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class BlockTask:
    """Nobody can go on with it; its holder is let go. `ReopenTask` brings it back."""

    task: str
    why: str


@dataclass(frozen=True, slots=True)
class ReopenTask:
    """Back to open from blocked or from review, for whoever is free. Its branch stays and is gone on with."""

    task: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class SplitTask:
    """It becomes an epic of these parts. Whoever has it is let go; what was done of it is where the parts begin."""

    task: str
    parts: tuple[NewTask, ...]
    by: str = "user"


# --- the workflow, as a coordinator or a person directs it ---


@dataclass(frozen=True, slots=True)
class AssignTask:
    """idle → implementing. The worker is told when its worktree is there."""

    task: str
    agent: str
    by: str = "user"
    words: str = ""  # added to what it is told


@dataclass(frozen=True, slots=True)
class AssignReview:
    """idle → reviewing, of a task that has passed its checks, by somebody who did not work on it."""

    task: str
    agent: str
    by: str = "user"
    words: str = ""


@dataclass(frozen=True, slots=True)
class AssignFeedback:
    """awaiting_review → addressing_feedback. Without a holder the task goes back to open, with the words as a note."""

    task: str
    words: str = ""  # empty: the comments of the verdict
    by: str = "user"


@dataclass(frozen=True, slots=True)
class ApproveCommit:
    """awaiting_review → committing, after a verdict that approves; it is merged, and the worker is idle again."""

    task: str
    by: str = "user"
    message: str = ""  # of the commit; empty: made from the task
    unreviewed: bool = False  # said on purpose by a person, or by the setting that asks for no review


@dataclass(frozen=True, slots=True)
class ReleaseTask:
    """Its holder is let go. What is in review stays there; anything else is open again."""

    task: str
    why: str = ""
    setback: bool = False  # the holder did not get anywhere with it


@dataclass(frozen=True, slots=True)
class ReleaseReview:
    """Its reviewer is let go; somebody else may review it."""

    task: str
    why: str = ""
    setback: bool = False  # the reviewer came to no verdict


@dataclass(frozen=True, slots=True)
class ReplaceWorker:
    """A successor is spawned first and takes the task over; then the worker is retired."""

    agent: str
    why: str = ""
    backend: str = ""  # empty: the same
    model: str = ""


@dataclass(frozen=True, slots=True)
class SetStaff:
    """Outlives the runtime, so that a run that was interrupted goes on with as many."""

    staff: Staff


# --- said by agents, through their tools ---


@dataclass(frozen=True, slots=True)
class SignalReady:
    agent: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ReportImplementationComplete:
    """implementing or addressing_feedback → awaiting_review. The runtime checks it before anyone reviews it."""

    agent: str
    epoch: int
    summary: str


@dataclass(frozen=True, slots=True)
class ReportReviewVerdict:
    """reviewing → idle."""

    agent: str
    epoch: int
    approved: bool
    comments: str


@dataclass(frozen=True, slots=True)
class DecomposeTask:
    """The agent's own task turns out too large: it becomes an epic of these parts, and the agent is idle."""

    agent: str
    epoch: int
    parts: tuple[NewTask, ...]


@dataclass(frozen=True, slots=True)
class EscalateTask:
    """The agent cannot go on: its task is blocked until somebody looks at it."""

    agent: str
    epoch: int
    why: str


@dataclass(frozen=True, slots=True)
class NoteToolUse:
    """The agent has used one of the tools that end a turn, with success. The commands above say so by themselves; for
    the other tools (`post_message`, `handoff`) whoever serves them says it."""

    agent: str
    epoch: int
    tool: str


@dataclass(frozen=True, slots=True)
class NotifyUser:
    agent: str
    epoch: int
    text: str


@dataclass(frozen=True, slots=True)
class SignalComplete:
    """The coordinator says that all is done. Refused while a task is not finished."""

    agent: str
    epoch: int
    summary: str


# --- reported by effects; fenced by attempt ---


@dataclass(frozen=True, slots=True)
class ReportWorktreeReady:
    task: str
    attempt: int
    folder: str  # from the project's root


@dataclass(frozen=True, slots=True)
class ReportWorkFailed:
    """The world would not do what the task owes, whatever it is, after all retries: no repository, no disk."""

    task: str
    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class ReportAcceptance:
    """Not ok also when there is nothing to accept: no commit of its own, or changes that are not committed."""

    task: str
    attempt: int
    ok: bool
    commit: str = ""
    evidence: str = ""
    tail: str = ""
    tree: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportMerged:
    task: str
    attempt: int
    commit: str
    target: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class ReportMergeRefused:
    task: str
    attempt: int
    reason: Refusal
    evidence: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class ReportWorktreeRemoved:
    task: str
    attempt: int
    kept: str = ""  # why it is still there; empty: it is gone


TaskReport = (
    ReportWorktreeReady
    | ReportWorkFailed
    | ReportAcceptance
    | ReportMerged
    | ReportMergeRefused
    | ReportWorktreeRemoved
)

ToolCommand = (
    SignalReady
    | ReportImplementationComplete
    | ReportReviewVerdict
    | DecomposeTask
    | EscalateTask
    | NoteToolUse
    | NotifyUser
    | SignalComplete
)

TaskCommand = (
    AddTasks
    | EditTask
    | NoteTask
    | CompleteStep
    | CloseTask
    | CancelTask
    | BlockTask
    | ReopenTask
    | SplitTask
    | AssignTask
    | AssignReview
    | AssignFeedback
    | ApproveCommit
    | ReleaseTask
    | ReleaseReview
    | ReplaceWorker
    | SetStaff
)
