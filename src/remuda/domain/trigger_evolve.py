"""How an agent changes by what happens about triggers, verdicts and bodies."""

from collections.abc import Callable, Mapping
from typing import Any

from remuda.domain.body import Left
from remuda.domain.spin import Level, Trail, follow, told
from remuda.domain.state import Agent
from remuda.domain.trigger import Course, Override
from remuda.domain.trigger_events import (
    AgentBuried,
    AgentNudged,
    AgentSucceeded,
    BodyRemoved,
    SaidAgain,
    VerdictReached,
    VerdictSought,
    WorkKept,
)


def _nudged(agent: Agent, event: AgentNudged, _at: float) -> Agent:
    return agent._replace(queue=(event.message, *agent.queue), trail=told(agent.trail, Level.NUDGE))


def _said_again(agent: Agent, event: SaidAgain, at: float) -> Agent:
    return agent._replace(trail=follow(agent.trail, event.reading), active_at=at)


def _sought(agent: Agent, event: VerdictSought, _at: float) -> Agent:
    return agent._replace(sought=event.sought)


def _reached(agent: Agent, event: VerdictReached, _at: float) -> Agent:
    if event.course is not Course.CONTINUE:
        return agent._replace(sought=None)
    override = Override(event.trigger, event.by, event.until)
    return agent._replace(sought=None, trigger=None, override=override, trail=Trail())


def _succeeded(agent: Agent, event: AgentSucceeded, _at: float) -> Agent:
    return agent._replace(after=event.after, restarts=event.restarts)


def _kept(agent: Agent, event: WorkKept, _at: float) -> Agent:
    return agent._replace(left=Left(event.epoch, event.commit, event.note, event.size))


def _buried(agent: Agent, _event: AgentBuried, at: float) -> Agent:
    return agent._replace(buried_at=at)


def _removed(agent: Agent, _event: BodyRemoved, _at: float) -> Agent:
    return agent._replace(body_removed=True)


RULES: Mapping[type, Callable[[Agent, Any, float], Agent]] = {
    AgentNudged: _nudged,
    SaidAgain: _said_again,
    VerdictSought: _sought,
    VerdictReached: _reached,
    AgentSucceeded: _succeeded,
    WorkKept: _kept,
    AgentBuried: _buried,
    BodyRemoved: _removed,
}
