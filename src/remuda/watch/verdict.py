"""Asks for a verdict whenever a trigger has fired. A budget needs none: more of it is the answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remuda.domain.commands import Command
from remuda.domain.events import Event, TriggerFired
from remuda.domain.state import State
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import SeekVerdict


@dataclass(frozen=True, slots=True)
class Patience:
    seconds: float = 600.0
    otherwise: Course = Course.REAP
    most: int = 3
    within: float = 3600.0


def verdict(patience: Callable[[str], Patience]) -> Callable[[State, Event], Iterator[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        if isinstance(event, TriggerFired) and event.trigger is not Trigger.BUDGET:
            said = patience(state.agents[event.agent].role)
            yield SeekVerdict(event.agent, said.seconds, said.otherwise, said.most, said.within)

    return watch
