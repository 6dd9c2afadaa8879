"""What a command leads to: events, or a refusal. Pure: the same state, command and time give the same answer.

Nothing here asks for a status in order to permit a move. A decision proposes the move; the tables refuse it.
"""

from collections.abc import Mapping

from remuda.domain import questions, reports
from remuda.domain.commands import (
    AnswerQuestion,
    ChangePhase,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    Report,
    ResumeAgent,
    RetireAgent,
    SendMessage,
    SpawnAgent,
    StartRuntime,
    StopAgent,
    StopRuntime,
)
from remuda.domain.draft import Draft, wake
from remuda.domain.errors import Invalid, Refused, UnknownAgent
from remuda.domain.events import (
    AgentSpawned,
    Event,
    MessageQueued,
    PhaseChanged,
    RuntimeStarted,
    RuntimeStopped,
    SessionEnded,
)
from remuda.domain.evolve import spawned
from remuda.domain.lifecycle import DEAD, Stage, Status, check_phase, check_resume
from remuda.domain.state import Agent, Message, Outcome, State
from remuda.domain.text import LONGEST_REASON, check_name, check_text

COORDINATOR = "coordinator"
LONGEST_QUEUE = 1000

Events = tuple[Event, ...]


def decide(state: State, command: Command, now: float) -> Events:
    match command:
        case SpawnAgent():
            return _spawn(state, command, now)
        case StartRuntime():
            return _start_runtime(state, command, now)
        case StopRuntime():
            return (RuntimeStopped(command.instance),)
        case _:
            draft = Draft(find(state.agents, command.agent), state.clock, now)
            _decide_for_agent(draft, command)
            return tuple(draft.events)


def find(agents: Mapping[str, Agent], name: str) -> Agent:
    agent = agents.get(name)
    if agent is None:
        raise UnknownAgent(f"there is no agent {name!r}; see `remuda ps --all`", possible=sorted(agents)[:20])
    return agent


def _decide_for_agent(
    draft: Draft,
    command: SendMessage
    | PauseAgent
    | ResumeAgent
    | StopAgent
    | HibernateAgent
    | RetireAgent
    | ReapAgent
    | ChangePhase
    | AnswerQuestion
    | Report,
) -> None:
    match command:
        case SendMessage():
            _send(draft, command)
        case PauseAgent():
            _rest(draft, Status.PAUSED, command.why)
        case StopAgent():
            _rest(draft, Status.STOPPED, command.why)
        case HibernateAgent():
            _rest(draft, Status.HIBERNATING, command.why)
        case RetireAgent():
            _rest(draft, Status.RETIRED, command.why)
        case ReapAgent():
            _rest(draft, Status.REAPED, command.why)
        case ResumeAgent():
            _resume(draft)
        case ChangePhase():
            _change_phase(draft, command)
        case AnswerQuestion():
            questions.answer(draft, command)
        case _:
            reports.decide(draft, command)


# --- agents ---


def _spawn(state: State, command: SpawnAgent, now: float) -> Events:
    check_name("role", command.role)
    name = command.name or _next_name(state, command.role)
    check_name("name", name)
    _check_wishes(command)
    if name in state.agents:
        raise Refused(f"there is already an agent {name!r}; names are never used twice, also not those of the dead")
    if command.role == COORDINATOR:
        for other in state.agents.values():
            if other.role == COORDINATOR and other.status not in DEAD:
                raise Refused(f"{other.name} is the coordinator; a project has one; retire it first")
    if command.parent and find(state.agents, command.parent).status in DEAD:
        raise Refused(f"the parent {command.parent} is {find(state.agents, command.parent).status}")
    event = AgentSpawned(
        agent=name,
        role=command.role,
        backend=command.backend,
        parent=command.parent,
        model=command.model,
        instructions=command.instructions,
        options=command.options,
    )
    draft = Draft(spawned(event, now), state.clock, now)
    if not command.hold:
        draft.request_session("spawned")
    return (event, *draft.events)


def _check_wishes(command: SpawnAgent) -> None:
    check_text("instructions", command.instructions, empty=True)
    check_text("the backend", command.backend, longest=LONGEST_REASON, empty=True)
    check_text("the model", command.model, longest=LONGEST_REASON, empty=True)
    for option, value in command.options:
        check_text("an option", option, longest=LONGEST_REASON)
        check_text(f"option {option}", value, empty=True)


def _next_name(state: State, role: str) -> str:
    if role == COORDINATOR and COORDINATOR not in state.agents:
        return COORDINATOR
    number = 1 + sum(agent.role == role for agent in state.agents.values())
    while f"{role}-{number}" in state.agents:
        number += 1
    return f"{role}-{number}"


def _rest(draft: Draft, status: Status, why: str) -> None:
    """Leave work for a status without a process. An open turn is cut; its message waits at the head of the queue."""
    if status is Status.REAPED and not why:
        raise Invalid("reaping needs a reason: it is what the dead agent's body will say")
    check_text("the reason", why, longest=LONGEST_REASON, empty=True)
    draft.move(status, why)
    draft.cut_turn(Outcome.INTERRUPTED, why or f"the agent was {status}")


def _resume(draft: Draft) -> None:
    check_resume(draft.agent.name, draft.agent.status)
    if draft.agent.status is Status.PENDING:
        draft.request_session("resumed")
        return
    draft.move(Status.READY, "resumed")
    wake(draft)


def _change_phase(draft: Draft, command: ChangePhase) -> None:
    agent = draft.agent
    if agent.phase is None:
        raise Refused(f"{agent.name} is a {agent.role}; only workers have a phase")
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status}; the dead do not change")
    check_text("a task", command.task, longest=LONGEST_REASON, empty=True)
    check_phase(agent.name, agent.phase, command.phase)
    draft.emit(PhaseChanged(agent.name, agent.phase, command.phase, command.task))


# --- messages ---


def _send(draft: Draft, command: SendMessage) -> None:
    agent = draft.agent
    check_text("a message", command.text)
    check_text("a message's id", command.message_id, longest=LONGEST_REASON)
    check_text("a message's author", command.author, longest=LONGEST_REASON)
    if agent.status in DEAD:
        raise Refused(f"{agent.name} is {agent.status} and reads no mail; spawn a successor and write to it")
    if len(agent.queue) >= LONGEST_QUEUE:
        raise Refused(f"{agent.name} has {len(agent.queue)} messages waiting; let it work them off, or stop it")
    message = Message(command.message_id, command.sender, command.author, command.text, draft.now)
    draft.emit(MessageQueued(agent.name, message, len(agent.queue) + 1))
    wake(draft)


# --- the runtime ---


def _start_runtime(state: State, command: StartRuntime, now: float) -> Events:
    """Whatever ran under the last runtime is gone. Work that was under way is taken up in a fresh session."""
    events: list[Event] = [RuntimeStarted(command.instance)]
    lost = "the runtime was stopped" if state.stopped_cleanly else "the runtime died"
    for agent in state.agents.values():
        if agent.session is None or agent.session.stage is Stage.ENDED:
            continue
        draft = Draft(agent, state.clock, now)
        draft.emit(SessionEnded(agent.name, agent.session.epoch, lost, None, crashed=False))
        draft.cut_turn(Outcome.LOST, lost)
        if agent.status is Status.WORKING:
            draft.move(Status.READY, lost)
        draft.renew_or_wake()
        events += draft.events
    return tuple(events)
