"""Looks after budgets: warns, cuts off who has spent what it had, tells the parent, lets go on who is granted more."""

from collections.abc import Iterator

from remuda.domain.accounts import covers, marks, scopes, spent_out
from remuda.domain.budget_commands import CheckBudget
from remuda.domain.commands import ResumeAgent, SendMessage
from remuda.domain.events import BudgetSet, Event, TriggerFired, TurnStarted, UsageRecorded
from remuda.domain.lifecycle import DEAD, Status
from remuda.domain.state import Agent, Sender, State
from remuda.domain.trigger import Trigger


def budget(state: State, event: Event) -> Iterator[CheckBudget | ResumeAgent]:
    match event:
        case UsageRecorded() | TurnStarted():
            yield from _spent(state, state.agents[event.agent])
        case BudgetSet():
            yield from _changed(state, event.scope)
        case _:
            return


def _spent(state: State, spender: Agent) -> Iterator[CheckBudget]:
    """Whoever draws on the same account has spent it too, and is cut off with the one that spent the last of it."""
    over = scopes(state, spender)
    if not over:
        return
    if any(marks(state, spender)):
        yield CheckBudget(spender.name)
    for agent in state.agents.values():
        if (
            agent.status is Status.WORKING
            and any(covers(state, scope, agent) for scope in over)
            and _spent_out(state, agent)
        ):
            yield CheckBudget(agent.name)


def _changed(state: State, scope: str) -> Iterator[CheckBudget | ResumeAgent]:
    for agent in state.agents.values():
        if agent.status in DEAD or not covers(state, scope, agent):
            continue
        spent = _spent_out(state, agent)
        waits = agent.status is Status.PAUSED and agent.trigger is not None and agent.trigger.trigger is Trigger.BUDGET
        if waits and not spent:
            yield ResumeAgent(agent.name)
        elif agent.status is Status.WORKING and spent:
            yield CheckBudget(agent.name)


def _spent_out(state: State, agent: Agent) -> bool:
    """Time apart: it passes without an event, and somebody with a clock looks after it."""
    return spent_out(state, agent, agent.turn.started_at if agent.turn else 0.0) is not None


def trigger(state: State, event: Event) -> Iterator[SendMessage]:
    """The parent is told why its agent was stopped, and what it can do."""
    if not isinstance(event, TriggerFired) or event.trigger is not Trigger.BUDGET:
        return  # for the others a verdict is sought, with as many words
    parent = state.agents.get(state.agents[event.agent].parent)
    if parent is None or parent.status in DEAD:
        return
    advice = f" Give it more with `remuda budget grant {event.agent}`, or end it with `remuda retire {event.agent}`."
    yield SendMessage(
        agent=parent.name,
        message_id=f"trigger-{event.agent}-{event.epoch}-{event.turn}-{event.trigger}",
        sender=Sender.SYSTEM,
        author="remuda",
        text=f"{event.agent} was stopped ({event.trigger}): {event.evidence}.{advice}",
    )
