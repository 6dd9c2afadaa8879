"""The tools by which agents speak to Remuda, by name. Who serves them, and every prompt that names one, takes the name
from here, so that no prompt can name a tool that does not exist."""

from enum import StrEnum


class Tool(StrEnum):
    SIGNAL_READY = "signal_ready"
    POST_MESSAGE = "post_message"
    REPORT_IMPLEMENTATION_COMPLETE = "report_implementation_complete"
    REPORT_REVIEW_VERDICT = "report_review_verdict"
    DECOMPOSE_TASK = "decompose_task"
    ESCALATE = "escalate"
    HANDOFF = "handoff"


# A worker that has a task ends each turn with one of these: otherwise nobody would know where it stands.
ENDS_A_TURN = frozenset(Tool)
