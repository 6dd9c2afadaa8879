"""What a whole log must say, whatever happened: read from the events alone, so that once at its end is enough."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from remuda.domain.events import (
    MessageQueued,
    Recorded,
    SessionEnded,
    SessionRequested,
    StatusChanged,
    TriggerFired,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from remuda.domain.lifecycle import DEAD, RESUME, Status
from remuda.domain.state import State, Usage
from remuda.domain.trigger_events import (
    AgentBuried,
    AgentNudged,
    AgentSucceeded,
    BodyRemoved,
    VerdictReached,
    VerdictSought,
    WorkKept,
)


def check_sessions_and_turns(log: Iterable[Recorded]) -> None:
    """An agent has one session at a time, and in it one turn at a time; turns are numbered once and upwards, and no
    call is counted twice."""
    sessions: dict[str, int] = {}
    turns: dict[str, int] = {}
    numbers: list[int] = []
    calls: list[tuple[str, int, int]] = []
    for event in (record.event for record in log):
        match event:
            case SessionRequested():
                assert event.agent not in sessions, f"{event} while session {sessions[event.agent]} is not over"
                sessions[event.agent] = event.epoch
            case SessionEnded():
                assert sessions.pop(event.agent) == event.epoch
            case TurnStarted():
                assert event.agent not in turns, f"{event} while turn {turns[event.agent]} is not over"
                turns[event.agent] = event.turn
                numbers.append(event.turn)
            case TurnEnded():
                assert turns.pop(event.agent) == event.turn, f"{event} ends a turn that is another"
            case UsageRecorded():
                calls.append((event.agent, event.epoch, event.call))
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(calls) == len(set(calls))


@dataclass
class _Place:
    """An agent: whether it lives, what is open about it, and when it and those before it were restarted."""

    dead: bool = False
    open: bool = False
    until: float = 0.0  # that an answer is waited for
    died_at: float = -1.0  # with a verdict open
    restarts: list[float] = field(default_factory=list)


def check_triggers(log: Iterable[Recorded], most: int, within: float) -> None:
    """At most one open trigger an agent, asked about again only when the time to answer is up, one verdict for each,
    none of either for the dead, and never more restarts than are allowed in any stretch of time."""
    places: dict[str, _Place] = {}
    for record in log:
        event = record.event
        place = places.setdefault(getattr(event, "agent", ""), _Place())
        match event:
            case AgentNudged() | TriggerFired():
                assert not place.dead, f"{event} of one that is dead"
                assert not place.open or isinstance(event, AgentNudged), f"{event} while a verdict is awaited"
            case VerdictSought():
                assert not place.dead, f"{event} of one that is dead"
                assert not place.open or 0 < place.until <= record.at, f"{event} while there is time to answer"
                place.open, place.until = True, event.sought.until
            case VerdictReached():
                assert place.open or place.died_at == record.at, f"{event} that nobody sought"
                place.open, place.died_at = False, -1.0
            case StatusChanged():
                # Resumed by hand, or dead: nobody waits for a verdict any more. A coordinator dies of one before it is
                # told, to make room for its successor.
                place.dead = place.dead or event.now in DEAD
                place.died_at = record.at if place.open and place.dead else -1.0
                resumed = event.now is Status.READY and event.was in RESUME
                place.open = place.open and not place.dead and not resumed
            case AgentSucceeded():
                own = [record.at] if record.at in event.restarts else []  # else it went with another that was restarted
                place.restarts = [*places[event.after].restarts, *own]
                recent = [at for at in place.restarts if at > record.at - within]
                assert len(recent) <= most, f"{event}: {recent}"


def check_bodies(log: Iterable[Recorded]) -> None:
    """What a session left is kept once, and only the dead are buried, once."""
    kept: Counter[tuple[str, int]] = Counter()
    buried: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    dead: set[str] = set()
    for event in (record.event for record in log):
        match event:
            case StatusChanged() if event.now in DEAD:
                dead.add(event.agent)
            case WorkKept():
                kept[event.agent, event.epoch] += 1
            case AgentBuried():
                assert event.agent in dead, f"{event} of one that lives"
                buried[event.agent] += 1
            case BodyRemoved():
                assert event.agent in buried, f"{event} of one that is not buried"
                removed[event.agent] += 1
    assert max(0, *kept.values(), *buried.values(), *removed.values(), 0) <= 1, (kept, buried, removed)


def check_mail(log: Iterable[Recorded], state: State) -> None:
    """No message is lost or answered twice, and none overtakes another, but for nudges."""
    queued: dict[str, list[str]] = {name: [] for name in state.agents}
    answered: Counter[tuple[str, str]] = Counter()
    nudges: set[str] = set()
    for event in (record.event for record in log):
        match event:
            case MessageQueued():
                queued[event.agent].append(event.message.id)
            case AgentNudged():
                queued[event.agent].append(event.message.id)
                nudges.add(event.message.id)
            case TurnEnded() if event.outcome.answered:
                answered[event.agent, event.message_id] += 1
    letters = Counter(message for _, message in answered.elements())
    assert max(letters.values(), default=0) <= 1, f"answered twice: {letters}"
    for name, agent in state.agents.items():
        waiting = ([agent.turn.message.id] if agent.turn else []) + [message.id for message in agent.queue]
        done = [each for each in queued[name] if answered[name, each]]
        assert sorted(queued[name]) == sorted(done + waiting), f"{name} has lost mail"
        in_order = [each for each in done + waiting if each not in nudges]
        assert [each for each in queued[name] if each not in nudges] == in_order, f"mail of {name} was overtaken"


def check_metrics(log: Iterable[Recorded], state: State) -> None:
    """They are the sum of what was counted."""
    usages: dict[str, list[Usage]] = {name: [] for name in state.agents}
    for record in log:
        if isinstance(record.event, UsageRecorded):
            usages[record.event.agent].append(record.event.usage)
    for name, mine in usages.items():
        metrics = state.agents[name].metrics
        assert metrics.input_tokens == sum(usage.input_tokens for usage in mine)
        assert metrics.output_tokens == sum(usage.output_tokens for usage in mine)
        assert metrics.cumulative_cost_nanousd == sum(usage.cost_nanousd or 0 for usage in mine)
        assert metrics.unpriced_calls == sum(usage.cost_nanousd is None for usage in mine)
        assert all(usage.input_tokens >= 0 and (usage.cost_nanousd or 0) >= 0 for usage in mine)
