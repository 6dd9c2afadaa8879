"""What is owed to the world, as tests look at it: all at once, and by whom."""

from collections.abc import Iterator

from remuda.domain.due import Debtors, due, due_for
from remuda.domain.effects import Effect, TaskEffect


def all_due(debtors: Debtors) -> Iterator[Effect]:
    for agent in debtors.agents.values():
        yield from due(agent)
    for task in debtors.tasks.values():
        yield from due_for(task)


def whose(effect: Effect) -> str:
    """The agent or the task that owes it."""
    return effect.task if isinstance(effect, TaskEffect) else effect.agent
