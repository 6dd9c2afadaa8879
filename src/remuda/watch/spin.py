"""Notices agents that go in circles: a word first, and only then the trigger.

What tells work from going in circles is in the agent's state (domain/spin.py), so that neither a nudge nor a trigger
is lost or doubled by a restart.
"""

from collections.abc import Callable, Iterator

from remuda.domain.commands import Command
from remuda.domain.events import Event, ToolCalled
from remuda.domain.spin import Level, Limits, judge
from remuda.domain.state import State
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_commands import FireTrigger, NudgeAgent
from remuda.domain.trigger_events import SaidAgain


def spin(limits: Limits) -> Callable[[State, Event], Iterator[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        if not isinstance(event, ToolCalled | SaidAgain):
            return
        finding = judge(state.agents[event.agent].trail, limits)
        if finding is None:
            return
        if finding.level is Level.NUDGE:
            yield NudgeAgent(event.agent, finding.rule, finding.evidence)
        else:
            yield FireTrigger(event.agent, Trigger.SPIN, finding.evidence, finding.rule, finding.numbers)

    return watch
