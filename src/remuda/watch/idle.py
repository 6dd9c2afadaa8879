"""Lets go of agents whose work is done: workers expire, lasting roles hibernate.

Done means verified: a task that it worked on was accepted and merged. Mail or a task wakes who hibernates, also after
the machine was started anew; who has expired is dead, and leaves a body.
"""

from collections.abc import Iterator

from remuda.domain.commands import Command, HibernateAgent, RetireAgent
from remuda.domain.events import Event, StatusChanged
from remuda.domain.lifecycle import FINISHED, Phase, Status, TaskStatus
from remuda.domain.state import Agent, State
from remuda.domain.task_events import TaskStatusChanged

WORKER = "worker"


def idle(state: State, event: Event) -> Iterator[Command]:
    match event:
        case TaskStatusChanged() if event.now in FINISHED:
            agents = list(state.agents.values())
        case StatusChanged() if event.now is Status.READY:
            agents = [state.agents[event.agent]]
        case _:
            return
    if any(task.status not in FINISHED for task in state.tasks.values()):
        return  # there is, or will be, something to do for them
    for agent in agents:
        if _done(state, agent):
            why = "its work is done and verified, and nothing waits for it"
            yield RetireAgent(agent.name, why) if agent.role == WORKER else HibernateAgent(agent.name, why)


def _done(state: State, agent: Agent) -> bool:
    free = agent.status is Status.READY and not agent.queue and agent.phase in (Phase.IDLE, None)
    return free and any(agent.name in task.authors and task.status is TaskStatus.DONE for task in state.tasks.values())
