"""What the loop hands on: a batch of decisions on its way to the disk, and what it has become when it is there."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from remuda.domain.events import Event, Recorded
from remuda.domain.evolve import evolve
from remuda.domain.ledger import Ledger
from remuda.domain.state import Agent, State
from remuda.domain.task import Task


@dataclass(frozen=True, slots=True)
class Accepted:
    """A command's events are durable. `events` is empty for one that was sent twice: it was done the first time."""

    seq: int
    events: tuple[Event, ...]


Reply = asyncio.Future[Accepted]


@dataclass(slots=True)
class Batch:
    records: list[Recorded] = field(default_factory=list)
    replies: list[tuple[Reply, Accepted | Exception]] = field(default_factory=list)
    agents: dict[str, Agent] = field(default_factory=dict)  # those it touched, as they are after it
    tasks: dict[str, Task] = field(default_factory=dict)
    clock: int = 0
    ledger: Ledger | None = None  # as it is after it

    def keep(self, state: State, events: Iterable[Event], order: str, now: float) -> None:
        """Apply the events, and take them along to the disk."""
        for event in events:
            record = Recorded(state.seq + 1, now, order, event)
            evolve(state, record)
            self.records.append(record)
            self._touch(state, event)
        self.ledger = state.ledger

    def _touch(self, state: State, event: Event) -> None:
        agent: str | None = getattr(event, "agent", None)
        if agent is not None:
            self.agents[agent] = state.agents[agent]
        elif (task := getattr(event, "task", None)) is not None:
            self.tasks[task] = state.tasks[task]

    def answer(self) -> None:
        for reply, answer in self.replies:
            if reply.done():
                continue  # who asked has gone away
            if isinstance(answer, Accepted):
                reply.set_result(answer)
            else:
                reply.set_exception(answer)


@dataclass(slots=True)
class Shown:
    """What may be shown: agents and tasks as they were after the last event that is on the disk."""

    seq: int
    clock: int
    agents: dict[str, Agent]
    tasks: dict[str, Task]
    ledger: Ledger

    @property
    def state(self) -> State:
        return State(self.seq, self.clock, self.agents, self.tasks, ledger=self.ledger)

    def take(self, batch: Batch) -> None:
        if batch.records:
            self.seq, self.clock = batch.records[-1].seq, batch.clock
            self.agents.update(batch.agents)
            self.tasks.update(batch.tasks)
            self.ledger = batch.ledger or self.ledger
