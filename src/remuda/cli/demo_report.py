"""What the demo says while it goes on, and at its end."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from remuda.domain.events import (
    MessageQueued,
    Recorded,
    RuntimeStarted,
    SessionEnded,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from remuda.domain.state import Outcome, State


def progress(record: Recorded) -> str:
    """A line for what a spectator wants to know; nothing for the rest."""
    event = record.event
    match event:
        case MessageQueued():
            return f"  {event.agent:<12} gets mail from {event.message.author}: {_first_line(event.message.text)}"
        case SessionStarted():
            return f"  {event.agent:<12} session {event.epoch} is up"
        case SessionEnded():
            return f"  {event.agent:<12} session {event.epoch} is gone: {event.detail}"
        case TurnStarted():
            return f"  {event.agent:<12} begins turn {event.turn}"
        case TurnEnded():
            return f"  {event.agent:<12} turn {event.turn} {event.outcome}"
        case _:
            return ""


def report(state: State, seen: Sequence[Recorded], commit: str, root: Path) -> list[str]:
    events = [record.event for record in seen]
    turns = Counter(event.outcome for event in events if isinstance(event, TurnEnded))
    queued = {event.message.id for event in events if isinstance(event, MessageQueued)}
    answered = Counter(event.message_id for event in events if isinstance(event, TurnEnded) and event.outcome.answered)
    waiting = sum(len(agent.queue) for agent in state.agents.values())
    doubled = sum(1 for count in answered.values() if count > 1)
    tokens = sum(e.usage.input_tokens + e.usage.output_tokens for e in events if isinstance(e, UsageRecorded))
    starts = sum(isinstance(event, RuntimeStarted) for event in events)
    return [
        "What happened",
        f"  the work      {commit}",
        f"  agents        {', '.join(state.agents)} (all scripted: none of them is a model)",
        f"  turns         {turns[Outcome.COMPLETED]} completed, {turns[Outcome.LOST]} cut off and taken up again",
        f"  messages      {len(queued)} sent, {len(answered)} answered, {waiting} waiting, {doubled} answered twice",
        f"  tokens        {tokens:,} as the playbooks say they used",
        f"  runtime       started {starts} times, killed hard {starts - 1} time; {len(seen)} events in the log",
        "",
        "Where to look",
        f"  cd {root}",
        "  git log --stat          what they made",
        "  remuda ps               the agents, from the log: no runtime is up now",
        "  remuda logs worker-1    what one of them did",
        "  remuda events           everything, in order",
    ]


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 60 else line[:57] + "..."
