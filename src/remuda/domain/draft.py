"""A decision in the making: agents and tasks as they will be, and the events that make it so."""

from collections.abc import Mapping

from remuda.domain.accounts import shortage, spent_out
from remuda.domain.errors import UnknownAgent, UnknownTask
from remuda.domain.events import (
    AgentEvent,
    AgentSpawned,
    Event,
    MailWithdrawn,
    MessageQueued,
    SessionEndRequested,
    SessionRequested,
    StatusChanged,
    TriggerFired,
    TurnEnded,
    TurnStarted,
)
from remuda.domain.evolve import evolve_agent, spawned
from remuda.domain.lifecycle import Stage, Status, check_move
from remuda.domain.state import Agent, Message, Outcome, Sender, State
from remuda.domain.task import Task
from remuda.domain.task_events import TaskAdded, TaskEvent
from remuda.domain.task_evolve import added, evolve_task
from remuda.domain.trigger import Trigger


class Decision:
    """All that one command leads to. Each event is applied to a copy as it is added, so that the next rule sees its
    result; the state itself changes only when the loop evolves it."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.clock = state.clock
        self.events: list[Event] = []
        self.drafts: dict[str, Draft] = {}
        self._tasks: dict[str, Task] = {}

    @property
    def seq(self) -> int:
        """The number that the next event will have: a name for what this decision makes and nothing else does."""
        return self.state.seq + len(self.events) + 1

    def agent(self, name: str) -> "Draft":
        draft = self.drafts.get(name)
        if draft is None:
            draft = self.drafts[name] = Draft(find(self.state.agents, name), self)
        return draft

    def spawn(self, event: AgentSpawned) -> "Draft":
        self.events.append(event)
        draft = self.drafts[event.agent] = Draft(spawned(event, self.now), self)
        return draft

    def agents(self) -> dict[str, Agent]:
        return {**self.state.agents, **{name: draft.agent for name, draft in self.drafts.items()}}

    def task(self, name: str) -> Task:
        return self._tasks.get(name) or find_task(self.state.tasks, name)

    def tasks(self) -> dict[str, Task]:
        return {**self.state.tasks, **self._tasks}

    def add(self, event: TaskAdded) -> None:
        self._tasks[event.task] = added(event, self.now)
        self.events.append(event)

    def emit(self, event: TaskEvent) -> Task:
        after = self._tasks[event.task] = evolve_task(self.task(event.task), event, self.now)
        self.events.append(event)
        return after


class Draft:
    """One agent in a decision."""

    def __init__(self, agent: Agent, whole: Decision) -> None:
        self.agent = agent
        self.whole = whole
        self.now = whole.now

    def emit(self, event: AgentEvent) -> None:
        self.agent = evolve_agent(self.agent, event, self.now)
        self.whole.events.append(event)

    def move(self, status: Status, why: str) -> None:
        agent = self.agent
        check_move(agent.name, agent.status, status)
        self.emit(StatusChanged(agent.name, agent.status, status, why))

    def request_session(self, why: str) -> None:
        """A fresh session that goes on with the last one's conversation, where there was one and the work is the same:
        conversations belong to the folder in which they were held."""
        last = self.agent.session
        epoch = last.epoch + 1 if last else 1
        same = last is not None and last.errand == self.agent.errand
        self.emit(SessionRequested(self.agent.name, epoch, (last.ref or last.resumes) if last and same else ""))
        if self.agent.status is not Status.STARTING:
            self.move(Status.STARTING, why)

    def cut_turn(self, outcome: Outcome, why: str) -> None:
        turn, session = self.agent.turn, self.agent.session
        if turn is not None and session is not None:
            self.emit(TurnEnded(self.agent.name, session.epoch, turn.number, turn.message.id, outcome, "", why))

    def start_turn(self) -> None:
        agent = self.agent
        assert agent.session is not None
        message, waiting = agent.queue[0], len(agent.queue) - 1
        self.whole.clock += 1
        number = self.whole.clock
        self.emit(TurnStarted(agent.name, agent.session.epoch, number, message.id, waiting))
        self.move(Status.WORKING, f"turn {number}")

    def renew_or_wake(self) -> None:
        """After the end of a session: one that had yet to start is asked for again, waiting mail gets a new one."""
        if self.agent.status is Status.STARTING:
            self.request_session("its session ended before it had started")
        else:
            wake(self)

    def tell(self, what: str, sender: Sender, text: str, *, about: str = "") -> None:
        """Mail that the runtime writes itself."""
        letter = Message(f"{what}-{self.whole.seq}", sender, "remuda", text, self.now, about=about)
        self.emit(MessageQueued(self.agent.name, letter, len(self.agent.queue) + 1))

    def fire(self, trigger: Trigger, evidence: str, numbers: tuple[tuple[str, int | float], ...] = ()) -> bool:
        """Once for a turn, or for the time between two: False where it has fired already."""
        agent = self.agent
        turn, epoch = agent.turn.number if agent.turn else 0, agent.session.epoch if agent.session else 0
        if agent.trigger is not None and (agent.trigger.trigger, agent.trigger.turn) == (trigger, turn):
            return False
        self.emit(TriggerFired(agent.name, epoch, turn, trigger, evidence, numbers))
        return True

    def wait(self) -> bool:
        """An agent about whom a verdict is awaited does not go on."""
        if self.agent.sought is not None:
            self.move(Status.PAUSED, "a verdict on it is awaited")
        return self.agent.sought is not None

    def hold(self) -> bool:
        """No turn is begun by an agent that has nothing left to spend: it is paused until it is granted more."""
        state = self.whole.state
        out_of = spent_out(state, self.agent, self.now)
        if out_of is None:
            return False
        evidence, numbers = shortage(state, out_of)
        self.fire(Trigger.BUDGET, evidence, numbers)
        self.move(Status.PAUSED, evidence)
        return True

    def withdraw(self, task: str) -> None:
        """Take back what it was to do for a task."""
        ids = tuple(each.id for each in self.agent.queue if each.about == task)
        if ids:
            self.emit(MailWithdrawn(self.agent.name, task, ids, len(self.agent.queue) - len(ids)))


def wake(draft: Draft) -> None:
    """Mail for an agent that has time for it begins a turn, or first a session to have the turn in. A session of
    another errand is not spoken to any more, and goes."""
    agent, session = draft.agent, draft.agent.session
    here = session is not None and session.stage is Stage.STARTED
    if session and here and agent.status is Status.READY and session.errand != agent.errand:
        draft.emit(SessionEndRequested(agent.name, session.epoch, "it works elsewhere from now on"))
        return
    if not agent.queue or agent.rest_until or agent.status not in (Status.READY, Status.HIBERNATING):
        return
    if agent.status is Status.READY and (draft.wait() or draft.hold()):
        return
    if session is None or session.stage is Stage.ENDED:
        draft.request_session("mail")
    elif here:
        draft.start_turn()
    # Otherwise the last process is still on its way out, and the report of its end will wake the agent.


def find(agents: Mapping[str, Agent], name: str) -> Agent:
    agent = agents.get(name)
    if agent is None:
        raise UnknownAgent(f"there is no agent {name!r}; see `remuda ps --all`", possible=sorted(agents)[:20])
    return agent


def find_task(tasks: Mapping[str, Task], name: str) -> Task:
    task = tasks.get(name)
    if task is None:
        raise UnknownTask(f"there is no task {name!r}; see `remuda task list --all`", possible=sorted(tasks)[:20])
    return task
