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
        name, judge = _concerned(state, event)
        member = state.agents.get(name)
        head = state.agents.get(member.parent) if member else None
        while head is not None and head.status not in DEAD and head.sought is None:
            found = judge(state, head.name, list(_members(state, head.name)), wayward)
            if found is not None:
                yield found
                return
            head = state.agents.get(head.parent)

    return watch


Judge = Callable[[State, str, list[Agent], Wayward], FireTrigger | None]


def _concerned(state: State, event: Event) -> tuple[str, Judge]:
    """Whose heads are to be judged, and by what: each rule only by what can have changed its outcome, so that a head
    that was let go on is not stopped for the same thing again."""
    match event:
        case TriggerFired() if event.trigger not in (Trigger.GANG, Trigger.BUDGET):
            return event.agent, _share
        case TurnEnded():
            return event.agent, _spend
        case AcceptanceRun() if not event.check.ok:
            return state.tasks[event.task].holder, _same_files
        case _:
            return "", _share


def _share(state: State, head: str, members: list[Agent], wayward: Wayward) -> FireTrigger | None:
    """Whoever was restarted, however often, is one member: the last of them. Who is buried is none any more."""
    succeeded = {agent.after for agent in state.agents.values()}
    members = [each for each in members if each.name not in succeeded and not each.buried_at]
    stopped = [each.name for each in members if each.trigger is not None and each.trigger.trigger is not Trigger.BUDGET]
    if not wayward.least or len(stopped) < max(wayward.least, wayward.share * len(members)):
        return None
    evidence = f"{len(stopped)} of the {len(members)} below it were stopped: {', '.join(stopped[:10])}"
    return FireTrigger(head, Trigger.GANG, evidence, "share", (("members", len(members)), ("stopped", len(stopped))))


def _spend(state: State, head: str, members: list[Agent], wayward: Wayward) -> FireTrigger | None:
    spent = sum(each.metrics.input_tokens + each.metrics.output_tokens for each in members)
    if not 0 < wayward.tokens <= spent or _accepted(state, {each.name for each in members}):
        return None
    evidence = f"the {len(members)} below it have spent {spent} tokens, and nothing of theirs was accepted"
    return FireTrigger(head, Trigger.GANG, evidence, "spend", (("members", len(members)), ("tokens", spent)))


def _same_files(state: State, head: str, members: list[Agent], wayward: Wayward) -> FireTrigger | None:
    """Where many of them have a task that fails on the same files as those of others do."""
    names = {each.name for each in members}
    failing = Counter(
        tuple(sorted(task.check.files))
        for task in state.tasks.values()
        if task.holder in names and task.check is not None and not task.check.ok and task.check.files
    )
    count, files = max(((count, files) for files, count in failing.items()), default=(0, ()))
    if not 0 < wayward.same_files <= count:
        return None
    evidence = f"the work of {count} below it fails on the very same files: {', '.join(files[:5])}"
    return FireTrigger(head, Trigger.GANG, evidence, "same files", (("members", len(members)), ("alike", count)))


def _members(state: State, name: str) -> Iterator[Agent]:
    for agent in state.agents.values():
        if agent.parent == name:
            yield agent
            yield from _members(state, agent.name)


def _accepted(state: State, names: set[str]) -> bool:
    return any(task.status is TaskStatus.DONE and names & set(task.authors) for task in state.tasks.values())
