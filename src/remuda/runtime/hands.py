"""Beside the loop: does what is owed, one thing at a time for each agent, and reports by the same door as everyone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import assert_never

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
        self._busy: dict[str, tuple[Key | None, asyncio.Task[None]]] = {}  # None: told to leave off

    def owe(self, durable: Mapping[str, Agent], current: Mapping[str, Agent]) -> None:
        """Begin what these agents owe. What is owed by an event that is not yet durable waits for it; what is no
        longer owed is dropped."""
        for name, agent in durable.items():
            effect = due(agent)
            wanted = key(effect) if effect is not None else None
            busy = self._busy.get(name)
            if busy is not None and wanted is not None and busy[0] == wanted:
                continue
            if busy is not None:
                busy[1].cancel()
                self._busy[name] = None, busy[1]
            ahead = due(current[name])
            if effect is not None and ahead is not None and key(ahead) == wanted:
                task = asyncio.ensure_future(self._do(effect, after=busy[1] if busy else None))
                self._busy[name] = key(effect), task

    async def _do(self, effect: Effect, *, after: asyncio.Task[None] | None) -> None:
        if after is not None:
            await asyncio.wait({after})
        report = await self._try(effect)
        busy = self._busy.get(effect.agent)
        if busy is not None and busy[0] == key(effect):
            del self._busy[effect.agent]
        if report is not None:
            try:
                await self._submit(report)
            except RemudaError as error:
                # The loop has stopped. The effect is owed again when the next one starts.
                log.info("%s of %s could not be reported: %s", type(report).__name__, effect.agent, error)

    async def _try(self, effect: Effect) -> Report | None:
        delays = RETRIES[type(effect)]()
        while True:
            try:
                return await self._perform(effect)
            except Exception as error:
                delay = next(delays, None)
                log.warning("%s failed: %s%s", effect, error, "" if delay is None else f"; again in {delay} s")
                if delay is None:
                    return given_up(effect, str(error) or repr(error))
                await asyncio.sleep(delay)

    async def close(self) -> None:
        tasks = [task for _, task in self._busy.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def given_up(effect: Effect, error: str) -> Report:
    """What to say of an effect that the world would not do."""
    match effect:
        case StartSession():
            return ReportSessionFailed(effect.agent, effect.epoch, error)
        case RunTurn() | EndSession():
            return ReportSessionEnded(effect.agent, effect.epoch, error)
        case _:
            assert_never(effect)
