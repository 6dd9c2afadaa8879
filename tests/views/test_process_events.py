"""The log in the vocabulary of subscribers."""

from typing import get_args

import msgspec
import pytest

from remuda.domain import events as log
from remuda.domain.lifecycle import Phase, Status
from remuda.domain.state import Message, Outcome, Sender, Usage
from remuda.views.process_events import ProcessEvent, Type, event_text, process_events

MAIL = Message("m1", Sender.USER, "user", "hello\nthere", 1.0)

SAMPLES: list[tuple[log.Event, list[str]]] = [
    (log.RuntimeStarted("r1"), ["runtime_started"]),
    (log.RuntimeStopped("r1"), ["runtime_stopped"]),
    (log.AgentSpawned("ada", "worker", "scripted", "", "", "", ()), ["spawned"]),
    (log.StatusChanged("ada", Status.STARTING, Status.READY, ""), ["status_changed", "ready"]),
    (log.StatusChanged("ada", Status.READY, Status.WORKING, ""), ["status_changed", "working"]),
    (log.StatusChanged("ada", Status.WORKING, Status.FAILED, "x"), ["status_changed", "died"]),
    (log.StatusChanged("ada", Status.READY, Status.PAUSED, ""), ["status_changed"]),
    (log.PhaseChanged("ada", Phase.IDLE, Phase.IMPLEMENTING, "t1"), ["phase_changed"]),
    (log.SessionRequested("ada", 1, ""), ["session_requested"]),
    (log.SessionStarted("ada", 1, "ref"), ["session_started"]),
    (log.SessionEnded("ada", 1, "gone", 0, crashed=False), ["session_ended"]),
    (log.SessionEnded("ada", 1, "gone", 1, crashed=True), ["session_ended", "error"]),
    (log.MessageQueued("ada", MAIL, 3), ["incoming", "queue_changed"]),
    (log.TurnStarted("ada", 1, 5, "m1", 2), ["turn_started", "queue_changed"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.COMPLETED, "end_turn", ""), ["turn_ended"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.FAILED, "", "no"), ["turn_ended", "error"]),
    (log.TurnEnded("ada", 1, 5, "m1", Outcome.LOST, "", ""), ["turn_ended", "queue_changed"]),
    (log.OutputAppended("ada", 1, 5, 0, 10, 1), ["output"]),
    (log.UsageRecorded("ada", 1, 5, 1, Usage(1, 2)), ["token_usage"]),
    (log.ErrorReported("ada", 1, 5, "oh"), ["error"]),
    (log.ReportIgnored("ada", 1, 5, "ReportOutput", "late"), ["report_ignored"]),
]


def told(event: log.Event) -> list[ProcessEvent]:
    return process_events(log.Recorded(9, 1.0, "c", event), lambda _: "worker")


@pytest.mark.parametrize(("event", "types"), SAMPLES, ids=[f"{type(e).__name__}-{t[-1]}" for e, t in SAMPLES])
def test_an_event_is_told_in_these_words(event: log.Event, types: list[str]) -> None:
    events = told(event)
    assert [each.type for each in events] == types
    assert all(each.seq == 9 for each in events)
    if hasattr(event, "agent"):
        assert all(each.agent == "ada" and each.role == "worker" for each in events)
    assert all("\n" not in event_text(each) for each in events)


def test_the_samples_cover_every_event_and_every_word() -> None:
    assert {type(event) for event, _ in SAMPLES} == set(get_args(log.Event))
    assert {word for _, words in SAMPLES for word in words} == set(get_args(Type))


def test_what_does_not_apply_is_left_out() -> None:
    incoming, queue = (
        msgspec.json.decode(msgspec.json.encode(each)) for each in told(log.MessageQueued("ada", MAIL, 3))
    )
    assert incoming["message"] == "hello\nthere"
    assert incoming["author"] == "user"
    assert queue["queue_count"] == 3
    assert "usage" not in incoming
    assert "message" not in queue
