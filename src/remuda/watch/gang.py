"""Notices a gang on the wrong path: judged at the parent, over all that it spawned."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remuda.domain.commands import Command
from remuda.domain.events import Event, TriggerFired, TurnEnded
from remuda.domain.lifecycle import DEAD, TaskStatus
from remuda.domain.state import Agent, State
from remuda.domain.task_events import AcceptanceRun
from remuda.domain.trigger import Trigger
from remuda.domain.trigger_commands import FireTrigger


@dataclass(frozen=True, slots=True)
class Wayward:
    share: float = 0.5  # of the members whose triggers have fired
    least: int = 3  # so many of them at any rate
    tokens: int = 0  # spent by all of them without an accepted change; 0: any number
    same_files: int = 3  # members whose work fails on the very same files; 0: any number


def gang(wayward: Wayward) -> Callable[[State, Event], Iterator[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        member = _concerned(state, event)
        head = state.agents.get(member.parent) if member else None
        while head is not None and head.status not in DEAD and head.sought is None:
            found = _judge(state, head, wayward)
            if found is not None:
                yield found
                return
            head = state.agents.get(head.parent)

    return watch


def _concerned(state: State, event: Event) -> Agent | None:
    match event:
        case TriggerFired() if event.trigger not in (Trigger.GANG, Trigger.BUDGET):
            return state.agents[event.agent]
        case TurnEnded():
            return state.agents[event.agent]
        case AcceptanceRun() if not event.check.ok:
            return state.agents.get(state.tasks[event.task].holder)
        case _:
            return None


def _judge(state: State, head: Agent, wayward: Wayward) -> FireTrigger | None:
    members = list(_members(state, head.name))
    stopped = [each.name for each in members if each.trigger is not None and each.trigger.trigger is not Trigger.BUDGET]
    numbers: tuple[tuple[str, int | float], ...] = (("members", len(members)), ("stopped", len(stopped)))
    if wayward.least and len(stopped) >= max(wayward.least, wayward.share * len(members)):
        evidence = f"{len(stopped)} of the {len(members)} below it were stopped: {', '.join(stopped[:10])}"
        return FireTrigger(head.name, Trigger.GANG, evidence, "share", numbers)
    spent = sum(each.metrics.input_tokens + each.metrics.output_tokens for each in members)
    if 0 < wayward.tokens <= spent and not _accepted(state, {each.name for each in members}):
        evidence = f"the {len(members)} below it have spent {spent} tokens, and nothing of theirs was accepted"
        return FireTrigger(head.name, Trigger.GANG, evidence, "spend", (*numbers, ("tokens", spent)))
    count, files = _same_files(state, {each.name for each in members})
    if 0 < wayward.same_files <= count:
        evidence = f"the work of {count} below it fails on the very same files: {', '.join(files[:5])}"
        return FireTrigger(head.name, Trigger.GANG, evidence, "same files", (*numbers, ("alike", count)))
    return None


def _same_files(state: State, names: set[str]) -> tuple[int, tuple[str, ...]]:
    """How many of them have a task that fails on the same files as others do, at the most, and the files."""
    failing = Counter(
        tuple(sorted(task.check.files))
        for task in state.tasks.values()
        if task.holder in names and task.check is not None and not task.check.ok and task.check.files
    )
    return max(((count, files) for files, count in failing.items()), default=(0, ()))


def _members(state: State, name: str) -> Iterator[Agent]:
    for agent in state.agents.values():
        if agent.parent == name:
            yield agent
            yield from _members(state, agent.name)


def _accepted(state: State, names: set[str]) -> bool:
    return any(task.status is TaskStatus.DONE and names & set(task.authors) for task in state.tasks.values())
