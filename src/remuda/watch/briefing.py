"""Tells an agent that coordinates what has become of the work, so that it need never ask."""

from collections.abc import Iterator

from remuda.domain.commands import SendMessage
from remuda.domain.decide import COORDINATOR
from remuda.domain.events import Event, TurnLetThrough
from remuda.domain.lifecycle import DEAD, TaskStatus
from remuda.domain.state import Agent, Sender, State
from remuda.domain.task_events import AcceptanceRun, MergeRefused, TaskAdded, TaskStatusChanged, VerdictGiven

WORTH_TELLING = (TaskStatus.OPEN, TaskStatus.BLOCKED, TaskStatus.DONE)
MORE_WORK = "briefing-more-work"


def briefing(state: State, event: Event) -> Iterator[SendMessage]:
    text = _news(event)
    if not text:
        return
    for agent in state.agents.values():
        if agent.role == COORDINATOR and agent.status not in DEAD and not _knows(agent, event):
            kind = MORE_WORK if isinstance(event, TaskAdded) else f"briefing-{type(event).__name__}"
            yield SendMessage(agent.name, f"{kind}-{state.seq}", Sender.SYSTEM, "remuda", text)


def _knows(agent: Agent, event: Event) -> bool:
    """What it did itself it need not be told, nor twice that there is more: a turn for each of a hundred tasks that
    somebody imports would cost more than it is worth."""
    if not isinstance(event, TaskAdded):
        return False
    return event.by == agent.name or any(letter.id.startswith(MORE_WORK) for letter in agent.queue)


def _news(event: Event) -> str:
    match event:
        case TaskAdded():
            return f"{event.by} has added {event.task}: {event.brief.title}. See the list of tasks for all that is new."
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
