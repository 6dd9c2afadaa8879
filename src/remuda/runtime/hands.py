"""Beside the loop: does what is owed, one thing at a time for each agent, and reports by the same door as everyone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat

from remuda.domain.commands import Command, Report, ReportSessionEnded, ReportSessionFailed
from remuda.domain.due import Debtors, due, due_for
from remuda.domain.effects import (
    AwaitVerdict,
    Effect,
    EndSession,
    GiveAnswer,
    KeepWork,
    Key,
    MergeTask,
    PrepareWorktree,
    RemoveBody,
    RemoveWorktree,
    Rest,
    RunAcceptance,
    RunTurn,
    StartSession,
    TaskEffect,
    key,
)
from remuda.domain.errors import AgentFault, RemudaError
from remuda.domain.failure import REMEDY, Failure
from remuda.domain.task_commands import ReportWorkFailed
from remuda.domain.trigger_commands import ReportWorkKept

log = logging.getLogger("remuda.hands")

Tell = Callable[[Report], None]
Perform = Callable[[Effect], Awaitable[Report | None]]

# Seconds before each further try. A turn is never tried again in its session: the agent may have read the prompt.
# An end is tried for ever: to give up would be to say that a process is gone which is not.
RETRIES: Mapping[type[Effect], Callable[[], Iterator[float]]] = {
    StartSession: lambda: iter((0.5, 2.0)),
    RunTurn: lambda: iter(()),
    EndSession: lambda: chain((0.5, 1.0, 2.0, 5.0), repeat(15.0)),
    Rest: lambda: repeat(1.0),
    AwaitVerdict: lambda: repeat(1.0),
    KeepWork: lambda: iter((0.5, 2.0, 10.0)),
    RemoveBody: lambda: chain((0.5, 2.0), repeat(60.0)),
    GiveAnswer: lambda: repeat(1.0),
    PrepareWorktree: lambda: iter((0.5, 2.0)),
    RunAcceptance: lambda: iter((0.5, 2.0)),
    MergeTask: lambda: iter((0.5, 2.0, 10.0)),
    RemoveWorktree: lambda: chain((0.5, 1.0, 2.0, 5.0), repeat(15.0)),  # somebody may still be in it
}

OF_PROCESS = (StartSession, RunTurn, EndSession)


class Hands:
    def __init__(self, perform: Perform, submit: Callable[[Command], Awaitable[object]]) -> None:
        self._perform = perform
        self._submit = submit
        # What was begun for each agent and is still owed. It stays when it is done: its report may still be on its way
        # to the disk, and until that is there the state goes on owing what has been done.
        self._begun: dict[str, dict[Key, asyncio.Task[None]]] = {}
        self._unfinished: dict[str, list[asyncio.Task[None]]] = {}  # those, and what was told to leave off
        self._closed = False

    def owe(self, durable: Debtors, current: Debtors) -> None:
        """Begin what these agents and tasks owe. What is owed by an event that is not yet durable waits for it; what
        is no longer owed is dropped."""
        if self._closed:
            return
        for name, agent in durable.agents.items():
            self._owe_one(f"agent {name}", due(agent), partial(due, current.agents[name]))
        for name, task in durable.tasks.items():
            self._owe_one(f"task {name}", due_for(task), partial(due_for, current.tasks[name]))

    def _owe_one(self, name: str, durable: Sequence[Effect], current: Callable[[], Sequence[Effect]]) -> None:
        wanted = {key(effect): effect for effect in durable}
        begun = self._begun.pop(name, {})
        for which in begun.keys() - wanted.keys():
            begun.pop(which).cancel()
        ahead = {key(effect) for effect in current()} if wanted.keys() - begun.keys() else set()
        for which, effect in wanted.items():
            if which not in begun and which in ahead:
                begun[which] = self._begin(effect)
        if begun:
            self._begun[name] = begun

    def _begin(self, effect: Effect) -> asyncio.Task[None]:
        # An agent has one process and a task has one worktree: what is done to it waits for what was done to it
        # before. Nothing else waits.
        lane = _lane(effect)
        unfinished = self._unfinished.setdefault(lane, [])
        before = tuple(unfinished) if lane else ()
        task = asyncio.ensure_future(self._do(effect, before))
        task.add_done_callback(unfinished.remove)
        unfinished.append(task)
        return task

    async def _do(self, effect: Effect, before: tuple[asyncio.Task[None], ...]) -> None:
        if before:
            await asyncio.wait(before)
        report = await self._try(effect)
        if report is None:
            return
        try:
            await self._submit(report)
        except RemudaError as error:
            # The loop has stopped. The effect is owed again when the next one starts.
            log.info("%s could not be reported: %s", report, error)
        except Exception:
            log.exception("%s was not taken", report)

    async def _try(self, effect: Effect) -> Report | None:
        delays = RETRIES[type(effect)]()
        while True:
            try:
                return await self._perform(effect)
            except Exception as error:
                failure = error.failure if isinstance(error, AgentFault) else None
                delay = None if _hopeless(effect, failure) else next(delays, None)
                log.warning("%s failed: %s%s", effect, error, "" if delay is None else f"; again in {delay} s")
                if delay is None:
                    return await self._give_up(effect, str(error) or repr(error), failure)
                await asyncio.sleep(delay)

    async def _give_up(self, effect: Effect, error: str, failure: Failure | None) -> Report:
        """What to say of an effect that the world would not do."""
        if isinstance(effect, TaskEffect):
            return ReportWorkFailed(effect.task, effect.attempt, error)
        if isinstance(effect, StartSession):
            return ReportSessionFailed(effect.agent, effect.epoch, error, failure)
        if isinstance(effect, KeepWork):
            return ReportWorkKept(effect.agent, effect.epoch, "", error, 0)
        # Its process may be alive all the same, and is not to be called gone before it is.
        await self._try(EndSession(effect.agent, effect.epoch, gentle=False))
        return ReportSessionEnded(effect.agent, effect.epoch, error, failure=failure)

    async def close(self) -> None:
        """Leave everything off, and begin nothing more."""
        self._closed = True
        tasks = [task for each in self._unfinished.values() for task in each]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _lane(effect: Effect) -> str:
    """Empty for what need not wait for its turn."""
    if isinstance(effect, TaskEffect):
        return f"{effect.task} worktree"
    return f"{effect.agent} process" if isinstance(effect, OF_PROCESS) else ""


def _hopeless(effect: Effect, failure: Failure | None) -> bool:
    """Only of a start: a process that is there is owed its end, whatever stands in the way."""
    return isinstance(effect, StartSession) and failure is not None and REMEDY[failure].hopeless
