"""What subscribers are told about budgets, triggers, verdicts and bodies."""

from typing import Any, Literal, assert_never

from remuda.domain.events import BudgetReserved, BudgetWarned, TriggerFired
from remuda.domain.trigger_events import (
    AgentBuried,
    AgentNudged,
    AgentSucceeded,
    BodyRemoved,
    SaidAgain,
    TriggerEvent,
    VerdictReached,
    VerdictSought,
    WorkKept,
)

TriggerType = Literal[
    "nudged", "said_again", "verdict_sought", "verdict_reached", "succeeded", "work_kept", "buried", "body_removed"
]
BoundType = Literal["budget_reserved", "budget_warned", "trigger_fired"]


def told(event: TriggerEvent) -> tuple[TriggerType, dict[str, Any]]:
    match event:
        case AgentNudged():
            place = {"epoch": event.epoch, "turn": event.turn, "queue_count": event.queue_count}
            return "nudged", {**place, "message": event.message.text, "why": f"{event.rule}: {event.evidence}"}
        case SaidAgain():
            return "said_again", {"epoch": event.epoch, "turn": event.turn, "message": event.reading.shown}
        case VerdictSought():
            asked = event.sought
            why = f"{asked.judge} is asked; without an answer: {asked.otherwise}"
            return "verdict_sought", {"trigger": event.trigger, "until": asked.until or None, "why": why}
        case VerdictReached():
            took = f", {event.successor} takes over" if event.successor else ""
            why = f"{event.course} by {event.by}{took}" + (f": {event.why}" if event.why else "")
            return "verdict_reached", {"trigger": event.trigger, "until": event.until or None, "why": why}
        case AgentSucceeded():
            return "succeeded", {"why": f"it takes the place of {event.after}"}
        case WorkKept():
            return "work_kept", {"epoch": event.epoch, "why": event.note or f"commit {event.commit[:12]}"}
        case AgentBuried():
            return "buried", {"author": event.by}
        case BodyRemoved():
            return "body_removed", {"why": f"{event.files} files"}
        case _:
            assert_never(event)


def bounds(event: BudgetReserved | BudgetWarned | TriggerFired) -> tuple[BoundType, dict[str, Any]]:
    match event:
        case BudgetReserved():
            numbers = {"input_tokens": event.input_tokens, "output_tokens": event.output_tokens}
            return "budget_reserved", {"epoch": event.epoch, "turn": event.turn, "numbers": numbers}
        case BudgetWarned():
            why = f"{event.spent} of {event.limit} are spent"
            return "budget_warned", {"scope": event.scope, "percent": event.percent, "why": why}
        case TriggerFired():
            place = {"epoch": event.epoch, "turn": event.turn}
            why = f"{event.rule}: {event.evidence}" if event.rule else event.evidence
            fields = {"trigger": event.trigger, "why": why, "numbers": dict(event.numbers)}
            return "trigger_fired", {**place, **fields}
        case _:
            assert_never(event)
