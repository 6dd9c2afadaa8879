"""The tools by which agents speak to Remuda, by name. Who serves them, and every prompt that names one, takes the name
from here, so that no prompt can name a tool that does not exist."""

from enum import StrEnum


class Tool(StrEnum):
    # for everyone
    POST_MESSAGE = "post_message"
    LIST_TASKS = "list_tasks"
    SHOW_TASK = "show_task"
    NOTE_TASK = "note_task"
    COMPLETE_STEP = "complete_step"
    RECORD_DECISION = "record_decision"

    # for workers
    SIGNAL_READY = "signal_ready"
    REPORT_IMPLEMENTATION_COMPLETE = "report_implementation_complete"
    REPORT_REVIEW_VERDICT = "report_review_verdict"
    DECOMPOSE_TASK = "decompose_task"
    ESCALATE = "escalate"

    # for the coordinator
    SPAWN_WORKER = "spawn_worker"
    LIST_WORKERS = "list_workers"
    REPLACE_WORKER = "replace_worker"
    RETIRE_WORKER = "retire_worker"
    STOP_WORKER = "stop_worker"
    ADD_TASKS = "add_tasks"
    SPLIT_TASK = "split_task"
    CANCEL_TASK = "cancel_task"
    BLOCK_TASK = "block_task"
    REOPEN_TASK = "reopen_task"
    RELEASE_TASK = "release_task"
    ASSIGN_TASK = "assign_task"
    ASSIGN_REVIEW = "assign_review"
    ASSIGN_FEEDBACK = "assign_feedback"
    APPROVE_COMMIT = "approve_commit"
    NOTIFY_USER = "notify_user"
    SIGNAL_COMPLETE = "signal_complete"


# A worker that has a task ends each turn with one of these: otherwise nobody would know where it stands.
ENDS_A_TURN = frozenset(
    {
        Tool.POST_MESSAGE,
        Tool.SIGNAL_READY,
        Tool.REPORT_IMPLEMENTATION_COMPLETE,
        Tool.REPORT_REVIEW_VERDICT,
        Tool.DECOMPOSE_TASK,
        Tool.ESCALATE,
    }
)
