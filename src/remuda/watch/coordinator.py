"""The coordinator that needs no model: gives ready tasks to idle workers and checked ones to reviewers, has what was
approved merged and what was denied addressed, and spawns workers where they are wanted.

It looks at the state and not at what has just happened, so that it does not matter what it has seen: after a restart,
or when a coordinator of flesh or model has gone, it goes on from whatever it finds. It asks for one thing at a time;
what comes of that calls it again. While an agent of role coordinator is alive it keeps still: there is one coordinator.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from remuda.domain.commands import Command, SendMessage, SpawnAgent
from remuda.domain.decide import COORDINATOR
from remuda.domain.events import (
    AgentSpawned,
    Event,
    PhaseChanged,
    RuntimeStarted,
    StaffChanged,
    StatusChanged,
)
from remuda.domain.ledger import UNLIMITED, Limits
from remuda.domain.lifecycle import DEAD, Phase, Status, TaskStatus, Work
from remuda.domain.routing import Route, route_for, suits
from remuda.domain.state import Agent, Sender, State
from remuda.domain.task import Staff, Task, may_review
from remuda.domain.task_commands import (
    ApproveCommit,
    AssignFeedback,
    AssignReview,
    AssignTask,
    ReleaseReview,
    ReleaseTask,
)
from remuda.domain.task_events import (
    AcceptanceRun,
    MergeRequested,
    ReviewAssigned,
    ReviewReleased,
    TaskAdded,
    TaskEdited,
    TaskReleased,
    TaskStatusChanged,
    VerdictGiven,
)
from remuda.domain.task_graph import ready
from remuda.domain.tools import Tool
from remuda.domain.trigger_events import VerdictReached
from remuda.domain.workflow import dispute

BY = "remuda"
MOST_IDLE_TURNS = 5  # that a worker may end without getting on; then somebody else may try
HOPELESS = 3  # workers in a row that failed: another one would too

OF_WORK = (
    TaskAdded,
    TaskEdited,
    TaskStatusChanged,
    TaskReleased,
    AcceptanceRun,
    ReviewAssigned,
    ReviewReleased,
    VerdictGiven,
    MergeRequested,
    StaffChanged,
    RuntimeStarted,
    AgentSpawned,
    PhaseChanged,
    VerdictReached,
)
AWAKENS = (Status.READY, Status.HIBERNATING)  # mail is enough for it to begin
AT_IT = (Phase.IMPLEMENTING, Phase.ADDRESSING_FEEDBACK, Phase.REVIEWING)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about it."""

    reviewed: bool = True  # by somebody else, before it is merged
    routes: tuple[Route, ...] = ()
    staff: Staff = field(default_factory=Staff)  # where nobody has said otherwise since
    backend: str = ""  # for those that are spawned and of whom nobody said what runs them
    budget: Limits = UNLIMITED  # for those too, where their route has none


def coordinator(rules: Rules) -> Callable[[State, Event], Iterable[Command]]:
    def watch(state: State, event: Event) -> Iterator[Command]:
        if state.tasks and _matters(state, event) and not _directed(state):
            step = next(_steps(state, rules), None)
            if step is not None:
                yield step

    return watch


def _matters(state: State, event: Event) -> bool:
    match event:
        case StatusChanged():
            return event.now in DEAD or (event.now in AWAKENS and state.agents[event.agent].phase is not None)
        case _:
            return isinstance(event, OF_WORK)


def _directed(state: State) -> bool:
    return any(agent.role == COORDINATOR and agent.status not in DEAD for agent in state.agents.values())


def _steps(state: State, rules: Rules) -> Iterator[Command]:
    """All that is to be done now, the most pressing first."""
    if state.staff.reviewed is not None:
        rules = replace(rules, reviewed=state.staff.reviewed)
    workers = [agent for agent in state.agents.values() if agent.phase is not None and agent.status not in DEAD]
    checked = sorted(
        (task for task in state.tasks.values() if task.work is Work.CHECKED and not dispute(state.agents, task)),
        key=lambda task: task.brief.priority,
    )
    yield from _judge(checked, rules)
    # Whoever was idle longest is asked first: the one that has just failed at something is asked last.
    idle = sorted((agent for agent in workers if agent.phase is Phase.IDLE and _free(agent)), key=_last_active)
    unseen = [task for task in checked if task.verdict is None and not task.reviewer]
    yield from _review(unseen, idle, workers, state)
    waiting = ready(state.tasks) if idle or _staff(state, rules).workers > len(workers) else []
    yield from _assign(waiting, idle, workers, rules)
    yield from _nudge(workers, state)
    yield from _spawn(state, rules, workers, [*unseen, *waiting])


def _last_active(agent: Agent) -> tuple[bool, float]:
    """Those that sleep come after those that are awake."""
    return agent.status is not Status.READY, agent.active_at


def _free(agent: Agent) -> bool:
    return agent.status in AWAKENS and not agent.queue and not agent.rest_until


# --- what is judged ---


def _judge(checked: Iterable[Task], rules: Rules) -> Iterator[Command]:
    for task in checked:
        if task.verdict is not None and task.verdict.approved:
            yield ApproveCommit(task.id, by=BY)
        elif task.verdict is not None:
            yield AssignFeedback(task.id, by=BY)
        elif not rules.reviewed:
            yield ApproveCommit(task.id, by=BY, unreviewed=True)


def _review(unseen: list[Task], idle: list[Agent], workers: list[Agent], state: State) -> Iterator[Command]:
    for task in unseen:
        for agent in idle:
            if may_review(agent.name, task):
                yield AssignReview(task.id, agent.name, by=BY)
        # Everybody who could review it waits for a review too, and might wait for ever. Work in review does not need
        # its author: one of them is let go.
        for agent in workers:
            if _waits_in_vain(agent, state) and may_review(agent.name, task):
                yield ReleaseTask(agent.task, f"needed to review {task.id}")


def _waits_in_vain(agent: Agent, state: State) -> bool:
    if agent.phase is not Phase.AWAITING_REVIEW or not _free(agent):
        return False
    own = state.tasks[agent.task]
    return own.work is Work.CHECKED and own.verdict is None and not own.reviewer


# --- what is given out ---


def _assign(waiting: Iterable[Task], idle: list[Agent], workers: list[Agent], rules: Rules) -> Iterator[Command]:
    for task in waiting:
        route = route_for(rules.routes, task.brief)
        fitting = [agent for agent in idle if suits(agent, route) and _leaves_a_reviewer(agent, task, workers, rules)]
        # Whoever has worked on it knows it best.
        for agent in sorted(fitting, key=lambda agent: agent.name not in task.authors):
            yield AssignTask(task.id, agent.name, by=BY)


def _leaves_a_reviewer(agent: Agent, task: Task, workers: list[Agent], rules: Rules) -> bool:
    """Were everyone to have worked on it, nobody could review it. Who works alone has no choice."""
    authors = {agent.name, *task.authors}
    return not rules.reviewed or len(workers) == 1 or any(each.name not in authors for each in workers)


def _nudge(workers: Iterable[Agent], state: State) -> Iterator[Command]:
    """A worker that has ended its turn, said something and got nowhere waits for an answer that nobody will give."""
    for agent in workers:
        if agent.phase not in AT_IT or not _free(agent) or not agent.idled or agent.folder != _folder(state, agent):
            continue
        if agent.idled <= MOST_IDLE_TURNS:
            yield _go_on(agent)
        elif agent.phase is Phase.REVIEWING:
            yield ReleaseReview(agent.task, f"{agent.name} came to no verdict", setback=True)
        else:
            yield ReleaseTask(agent.task, f"{agent.name} got nowhere with it", setback=True)


def _folder(state: State, agent: Agent) -> str:
    return state.tasks[agent.task].folder


def _go_on(agent: Agent) -> SendMessage:
    report = Tool.REPORT_REVIEW_VERDICT if agent.phase is Phase.REVIEWING else Tool.REPORT_IMPLEMENTATION_COMPLETE
    return SendMessage(
        agent=agent.name,
        message_id=f"nudge-{agent.name}-{agent.turns}",
        sender=Sender.COORDINATOR,
        author=BY,
        text=(
            f"Go on with {agent.task}; nobody else will decide for you. Call {report} when you are done, "
            f"or {Tool.ESCALATE} if it cannot be done."
        ),
        about=agent.task,
    )


# --- who is hired ---


def _staff(state: State, rules: Rules) -> Staff:
    return state.staff if state.staff.workers else rules.staff


def _spawn(state: State, rules: Rules, workers: list[Agent], wanting: list[Task]) -> Iterator[Command]:
    """One for each piece of work that nobody is free for, as far as the limit goes."""
    staff = _staff(state, rules)
    coming = [agent for agent in workers if agent.status in (Status.PENDING, Status.STARTING) and not agent.task]
    if len(workers) >= staff.workers:
        return
    for task in wanting:
        route = route_for(rules.routes, task.brief) if task.status is TaskStatus.OPEN else Route()
        expected = next((agent for agent in coming if suits(agent, route)), None)
        if expected is not None:
            coming.remove(expected)
            continue
        backend = route.backend or staff.backend or rules.backend
        if backend and not _hopeless(state, backend):
            budget = route.budget or rules.budget
            model = route.model or staff.model
            yield SpawnAgent(role=route.role, backend=backend, model=model, works=True, budget=budget)


def _hopeless(state: State, backend: str) -> bool:
    last = [agent.status for agent in state.agents.values() if agent.phase is not None and agent.backend == backend]
    return len(last) >= HOPELESS and all(status is Status.FAILED for status in last[-HOPELESS:])
