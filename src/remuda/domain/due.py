"""What each agent's state owes to the world.

Asked after every change and after every restart, so that recovery is not a feature: it is the same call. It does
not matter how the state was reached.
"""

from collections.abc import Iterator

from remuda.domain.effects import Effect, EndSession, RunTurn, StartSession
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Agent, Session, State


def due(agent: Agent) -> Effect | None:
    """One session, one thing owed at a time."""
    match agent.session:
        case Session(stage=Stage.REQUESTED) as session:
            return StartSession(
                agent=agent.name,
                epoch=session.epoch,
                backend=agent.backend,
                role=agent.role,
                model=agent.model,
                instructions=agent.instructions,
                options=agent.options,
                resumes=session.resumes,
            )
        case Session(stage=Stage.STARTED) as session if agent.turn is not None:
            return RunTurn(agent.name, session.epoch, agent.turn.number, agent.turn.message)
        case Session(stage=Stage.ENDING) as session:
            # A reaped agent may be burning money this very moment: no time for manners.
            return EndSession(agent.name, session.epoch, gentle=agent.status is not Status.REAPED)
        case _:
            return None


def all_due(state: State) -> Iterator[Effect]:
    for agent in state.agents.values():
        effect = due(agent)
        if effect is not None:
            yield effect
