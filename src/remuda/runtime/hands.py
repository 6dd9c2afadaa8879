"""Beside the loop: does what is owed, one thing at a time for each agent, and reports by the same door as everyone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import chain, repeat

from remuda.domain.commands import Command, Report, ReportSessionEnded, ReportSessionFailed
from remuda.domain.due import due
from remuda.domain.effects import Effect, EndSession, Key, RunTurn, StartSession, key
from remuda.domain.errors import RemudaError
from remuda.domain.state import Agent

log = logging.getLogger("remuda.hands")

Tell = Callable[[Report], None]
Perform = Callable[[Effect], Awaitable[Report | None]]

# Seconds before each further try. A turn is never tried again in its session: the agent may have read the prompt.
# An end is tried for ever: to give up would be to say that a process is gone which is not.
RETRIES: Mapping[type[Effect], Callable[[], Iterator[float]]] = {
    StartSession: lambda: iter((0.5, 2.0)),
    RunTurn: lambda: iter(()),
    EndSession: lambda: chain((0.5, 1.0, 2.0, 5.0), repeat(15.0)),
}


class Hands:
    def __init__(self, perform: Perform, submit: Callable[[Command], Awaitable[object]]) -> None:
        self._perform = perform
        self._submit = submit
        # What was last begun for each agent. It stays when it is done: its report may still be on its way to the disk,
        # and until that is there the state goes on owing what has been done.
        self._begun: dict[str, tuple[Key, asyncio.Task[None]]] = {}
        self._unfinished: dict[str, list[asyncio.Task[None]]] = {}  # that, and those told to leave off before it
        self._closed = False

    def owe(self, durable: Mapping[str, Agent], current: Mapping[str, Agent]) -> None:
        """Begin what these agents owe. What is owed by an event that is not yet durable waits for it; what is no
        longer owed is dropped."""
        if self._closed:
            return
        for name, agent in durable.items():
            effect = due(agent)
            wanted = key(effect) if effect is not None else None
            begun = self._begun.get(name)
            if begun is not None:
                if begun[0] == wanted:
                    continue
                begun[1].cancel()
                del self._begun[name]
            ahead = due(current[name])
            if effect is not None and ahead is not None and key(ahead) == wanted:
                self._begin(effect)

    def _begin(self, effect: Effect) -> None:
        unfinished = self._unfinished.setdefault(effect.agent, [])
        task = asyncio.ensure_future(self._do(effect, tuple(unfinished)))
        task.add_done_callback(unfinished.remove)
        unfinished.append(task)
        self._begun[effect.agent] = key(effect), task

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
            log.info("%s of %s could not be reported: %s", type(report).__name__, effect.agent, error)
        except Exception:
            log.exception("%s of %s was not taken", type(report).__name__, effect.agent)

    async def _try(self, effect: Effect) -> Report | None:
        delays = RETRIES[type(effect)]()
        while True:
            try:
                return await self._perform(effect)
            except Exception as error:
                delay = next(delays, None)
                log.warning("%s failed: %s%s", effect, error, "" if delay is None else f"; again in {delay} s")
                if delay is None:
                    return await self._give_up(effect, str(error) or repr(error))
                await asyncio.sleep(delay)

    async def _give_up(self, effect: Effect, error: str) -> Report:
        """What to say of an effect that the world would not do."""
        if isinstance(effect, StartSession):
            return ReportSessionFailed(effect.agent, effect.epoch, error)
        # Its process may be alive all the same, and is not to be called gone before it is.
        await self._try(EndSession(effect.agent, effect.epoch, gentle=False))
        return ReportSessionEnded(effect.agent, effect.epoch, error)

    async def close(self) -> None:
        """Leave everything off, and begin nothing more."""
        self._closed = True
        tasks = [task for each in self._unfinished.values() for task in each]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
