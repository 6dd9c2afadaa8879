"""Notices agents from which nothing comes any more.

One silence is not yet a stall: the session is ended and a fresh one gets the same message. A tool that runs, a person
who is asked, a service that asks for patience and processes that are at work are no silence at all
(effects/run_turn.py).
"""

from collections.abc import Callable, Iterator

from remuda.domain.commands import Command
from remuda.domain.events import Event, SessionEnded
from remuda.domain.failure import Failure
from remuda.domain.state import State
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_commands import FireTrigger


def stall(silences: int) -> Callable[[State, Event], Iterator[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        if not isinstance(event, SessionEnded) or event.failure is not Failure.SILENT:
            return
        times = state.agents[event.agent].crashes
        if times >= silences:
            evidence = f"{times} sessions in a row ended in silence: {event.detail}"
            yield FireTrigger(event.agent, Trigger.STALL, evidence[:2000], "silence", (("sessions", times),))

    return watch
