"""Tells an agent that coordinates what has become of the work, so that it need never ask."""

from collections.abc import Iterator

from remuda.domain.commands import SendMessage
from remuda.domain.decide import COORDINATOR
from remuda.domain.events import Event, TurnLetThrough
from remuda.domain.lifecycle import DEAD, TaskStatus
from remuda.domain.state import Sender, State
from remuda.domain.task_events import AcceptanceRun, MergeRefused, TaskStatusChanged, VerdictGiven

WORTH_TELLING = (TaskStatus.OPEN, TaskStatus.BLOCKED, TaskStatus.DONE, TaskStatus.CANCELLED, TaskStatus.DECOMPOSED)


def briefing(state: State, event: Event) -> Iterator[SendMessage]:
    text = _news(event)
    if not text:
        return
    for agent in state.agents.values():
        if agent.role == COORDINATOR and agent.status not in DEAD:
            letter = f"briefing-{state.seq}-{type(event).__name__}"
            yield SendMessage(agent.name, letter, Sender.SYSTEM, "remuda", text)


def _news(event: Event) -> str:
    match event:
        case AcceptanceRun() if event.check.ok:
            return f"{event.task} has passed its checks and waits for a review."
        case AcceptanceRun():
            return f"{event.task} was reported complete but not accepted; its worker has been told."
        case VerdictGiven():
            said = "approved" if event.verdict.approved else "denied"
            return f"{event.verdict.reviewer} has {said} {event.task}: {event.verdict.comments}"
        case MergeRefused():
            return f"{event.task} was approved but could not be merged: {event.reason}; its worker has been told."
        case TaskStatusChanged() if event.now in WORTH_TELLING:
            return f"{event.task} is {event.now}: {event.why}"
        case TurnLetThrough():
            return f"{event.agent} has ended its turn and does not say where its work stands; look after it."
        case _:
            return ""
