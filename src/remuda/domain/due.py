"""What the state of each agent and of each task owes to the world.

Asked after every change and after every restart, so that recovery is not a feature: it is the same call. It does
not matter how the state was reached.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from remuda.domain.burial import unkept
from remuda.domain.effects import (
    AgentEffect,
    AwaitVerdict,
    EndSession,
    GiveAnswer,
    KeepWork,
    MergeTask,
    PrepareWorktree,
    RemoveBody,
    RemoveWorktree,
    Rest,
    RunAcceptance,
    RunTurn,
    StartSession,
    TaskEffect,
)
from remuda.domain.lifecycle import DEAD, Stage, Status, Work
from remuda.domain.state import Agent, Session
from remuda.domain.task import Task


class Debtors(Protocol):
    """Who can owe: a whole state, or what a few events have touched of it."""

    @property
    def agents(self) -> Mapping[str, Agent]: ...

    @property
    def tasks(self) -> Mapping[str, Task]: ...


def due(agent: Agent) -> tuple[AgentEffect, ...]:
    """At most one thing for its process, and beside it the answers that it waits for, or a rest."""
    process = _of_process(agent)
    beside = (*_answers(agent), *_rest(agent), *_after_a_trigger(agent), *_remains(agent))
    return (process, *beside) if process else beside


def _of_process(agent: Agent) -> StartSession | RunTurn | EndSession | None:
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
                folder=agent.folder,
                first=agent.begun is None or agent.begun.errand != session.errand,
            )
        case Session(stage=Stage.STARTED) as session if agent.turn is not None:
            return RunTurn(agent.name, session.epoch, agent.turn.number, agent.turn.message)
        case Session(stage=Stage.ENDING) as session:
            # A reaped agent may be burning money this very moment: no time for manners.
            return EndSession(agent.name, session.epoch, gentle=agent.status is not Status.REAPED)
        case _:
            return None


def _answers(agent: Agent) -> Iterator[GiveAnswer]:
    session = agent.session
    if session is None or session.stage is not Stage.STARTED or agent.turn is None:
        return
    for question in agent.questions:
        if question.allow is not None and not question.given and question.epoch == session.epoch:
            place = (agent.name, session.epoch, question.id, question.asking)
            yield GiveAnswer(*place, question.allow, question.why)


def _rest(agent: Agent) -> Iterator[Rest]:
    if agent.rest_until and agent.status not in DEAD and agent.session is not None:
        yield Rest(agent.name, agent.session.epoch, agent.rest_until)


def _after_a_trigger(agent: Agent) -> Iterator[AwaitVerdict]:
    if agent.sought is not None and agent.sought.until:
        epoch = agent.session.epoch if agent.session else 0
        yield AwaitVerdict(agent.name, epoch, agent.sought.until)


def _remains(agent: Agent) -> Iterator[KeepWork | RemoveBody]:
    epoch = agent.session.epoch if agent.session else 0
    if unkept(agent):
        yield KeepWork(agent.name, epoch, agent.begun)
    if agent.buried_at and not agent.body_removed:
        yield RemoveBody(agent.name, epoch)


def due_for(task: Task) -> tuple[TaskEffect, ...]:
    """At most one thing: a task has one worktree."""
    effect = _of_worktree(task)
    return (effect,) if effect else ()


def _of_worktree(task: Task) -> TaskEffect | None:
    where, to = (task.id, task.attempt), task.brief.target
    match task.work:
        case Work.PREPARING:
            return PrepareWorktree(*where, task.branch, task.base, to)
        case Work.CHECKING:
            place, brief = (task.folder, task.branch, task.base, to), task.brief
            return RunAcceptance(*where, *place, brief.accept, brief.title)
        case Work.MERGING:
            commit = task.check.commit if task.check else ""
            return MergeTask(*where, task.folder, task.branch, commit, to, task.brief.accept, task.message)
        case Work.CLEARING:
            return RemoveWorktree(*where, task.folder, task.branch, merged=task.merge is not None)
        case _:
            return None
