"""Tells the coordinator when one of its agents waits for permission, so that it may answer."""

from collections.abc import Iterator

from remuda.domain.commands import SendMessage
from remuda.domain.decide import COORDINATOR
from remuda.domain.events import Event, QuestionAsked
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Sender, State


def question(state: State, event: Event) -> Iterator[SendMessage]:
    if not isinstance(event, QuestionAsked) or event.question.asking > 1:
        return  # it has been told, and its mail does not get lost
    parent = state.agents.get(state.agents[event.agent].parent)
    if parent is None or parent.role != COORDINATOR or parent.status in DEAD:
        return
    asked = event.question
    yield SendMessage(
        agent=parent.name,
        message_id=f"question-{event.agent}-{asked.id}-{event.turn}",
        sender=Sender.SYSTEM,
        author="remuda",
        text=(
            f"{event.agent} asks whether it may use {asked.tool}: {asked.arguments or asked.title}\n"
            f"Answer with `remuda answer {asked.id} --allow` or `--deny`, with --why to tell it the reason."
        ),
    )
