"""A decision in the making: the agent as it will be, and the events that make it so."""

from remuda.domain.events import AgentEvent, SessionRequested, StatusChanged, TurnEnded, TurnStarted
from remuda.domain.evolve import evolve_agent
from remuda.domain.lifecycle import Stage, Status, check_move
from remuda.domain.state import Agent, Outcome


class Draft:
    """Events of one decision about one agent. Each is applied to a copy as it is added, so that the next rule sees
    its result; the state itself changes only when the loop evolves it."""

    def __init__(self, agent: Agent, clock: int, now: float) -> None:
        self.agent = agent
        self.now = now
        self.events: list[AgentEvent] = []
        self._clock = clock

    def emit(self, event: AgentEvent) -> None:
        self.agent = evolve_agent(self.agent, event, self.now)
        self.events.append(event)

    def move(self, status: Status, why: str) -> None:
        agent = self.agent
        check_move(agent.name, agent.status, status)
        self.emit(StatusChanged(agent.name, agent.status, status, why))

    def request_session(self, why: str) -> None:
        """A fresh session that goes on with the last one's conversation, where there was one."""
        last = self.agent.session
        epoch = last.epoch + 1 if last else 1
        self.emit(SessionRequested(self.agent.name, epoch, (last.ref or last.resumes) if last else ""))
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
        self._clock += 1
        self.emit(TurnStarted(agent.name, agent.session.epoch, self._clock, message.id, waiting))
        self.move(Status.WORKING, f"turn {self._clock}")

    def renew_or_wake(self) -> None:
        """After the end of a session: one that had yet to start is asked for again, waiting mail gets a new one."""
        if self.agent.status is Status.STARTING:
            self.request_session("its session ended before it had started")
        else:
            wake(self)


def wake(draft: Draft) -> None:
    """Mail for an agent that has time for it begins a turn, or first a session to have the turn in."""
    agent = draft.agent
    if not agent.queue or agent.rest_until or agent.status not in (Status.READY, Status.HIBERNATING):
        return
    if agent.session is None or agent.session.stage is Stage.ENDED:
        draft.request_session("mail")
    elif agent.session.stage is Stage.STARTED:
        draft.start_turn()
    # Otherwise the last process is still on its way out, and the report of its end will wake the agent.
