"""What the log must say of mail and of work, whatever happened."""

from collections import defaultdict

from domain.work import Told
from remuda.domain.decide import COORDINATOR
from remuda.domain.events import MailWithdrawn, MessageQueued, Recorded, Reminded, TurnEnded, TurnStarted
from remuda.domain.lifecycle import DEAD, FINISHED, Phase, TaskStatus, Work
from remuda.domain.state import State
from remuda.domain.task import Task
from remuda.domain.task_graph import startable
from simulation.world import Witness


def check_mail(log: list[Recorded], state: State) -> None:
    """Every message waits in its place until its turn has answered it, or it was taken back with its task."""
    boxes: dict[str, list[str]] = defaultdict(list)
    at: dict[str, str] = {}
    for event in (record.event for record in log):
        match event:
            case MessageQueued():
                boxes[event.agent].append(event.message.id)
            case Reminded():
                boxes[event.agent].insert(0, event.message.id)
            case MailWithdrawn():
                for message in event.message_ids:
                    boxes[event.agent].remove(message)
            case TurnStarted():
                assert boxes[event.agent].pop(0) == event.message_id, f"{event} out of its turn"
                at[event.agent] = event.message_id
            case TurnEnded():
                assert at.pop(event.agent) == event.message_id, f"{event} of another message"
                if not event.outcome.answered:
                    boxes[event.agent].insert(0, event.message_id)
    for name, agent in state.agents.items():
        waiting = [message.id for message in agent.queue]
        assert waiting == boxes[name], f"{name} has {waiting}, and was sent {boxes[name]}"
        assert at.get(name) == (agent.turn.message.id if agent.turn else None)


def check_work(log: list[Recorded], state: State, witness: Witness) -> None:
    told = Told()
    for record in log:
        told.hear(record.event)
    assert set(told.briefs) == set(state.tasks), "a task is lost"
    never = told.merged - set(witness.merged)
    assert not never, f"called merged, and never were: {never}"


def check_end_of_work(state: State, witness: Witness) -> None:
    """When all faults have stopped: whoever could go on with something has done so."""
    for task in state.tasks.values():
        if task.id in witness.merged and task.status is not TaskStatus.DONE:
            # It was given up by the world after it had landed: then a person is told, and nobody else goes on.
            assert task.status in (TaskStatus.BLOCKED, *FINISHED) or task.setbacks, f"landed and forgotten: {task}"
    if any(agent.role == COORDINATOR and agent.status not in DEAD for agent in state.agents.values()):
        return  # then it is for the coordinator to go on, and ours does nothing
    workers = {agent.name for agent in state.agents.values() if agent.phase is not None and agent.status not in DEAD}
    for task in state.tasks.values():
        assert not _could_go_on(state, task, workers), f"{task.id} is {task.status} and {task.work}, and nobody goes on"


def _could_go_on(state: State, task: Task, workers: set[str]) -> bool:
    others = workers - set(task.authors)
    match task.status:
        case TaskStatus.OPEN:
            # The last one who could review it is not to work on it, unless there is nobody else.
            idle = {name for name in workers if state.agents[name].phase is Phase.IDLE}
            fitting = {name for name in idle if len(workers) == 1 or others - {name}}
            return startable(state.tasks, task) and bool(fitting)
        case TaskStatus.IN_PROGRESS:
            return True
        case TaskStatus.IN_REVIEW:
            free = {name for name in others - {task.holder} if state.agents[name].phase is Phase.IDLE}
            return task.work is not Work.CHECKED or task.verdict is not None or bool(free)
        case _:
            return False
