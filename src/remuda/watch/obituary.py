"""Tells the parent when one of its agents has died."""

from collections.abc import Iterator

from remuda.domain.commands import SendMessage
from remuda.domain.events import Event, StatusChanged
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Sender, State


def obituary(state: State, event: Event) -> Iterator[SendMessage]:
    if not isinstance(event, StatusChanged) or event.now not in DEAD:
        return
    agent = state.agents[event.agent]
    parent = state.agents.get(agent.parent)
    if parent is None or parent.status in DEAD:
        return
    why = f": {event.why}" if event.why else ""
    waiting = f" {len(agent.queue)} messages to it were not read." if agent.queue else ""
    yield SendMessage(
        agent=parent.name,
        message_id=f"obituary-{agent.name}",
        sender=Sender.SYSTEM,
        author="remuda",
        text=f"{agent.name} is {event.now}{why}.{waiting}",
    )
