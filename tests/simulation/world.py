"""A world of agents that reply, take their time, stall, crash, repeat themselves, come late, and lie.

It is the referee's witness too: it knows which processes live, what was delivered to whom, and what was truly used.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from remuda.domain.commands import (
    Report,
    ReportError,
    ReportOutput,
    ReportSessionEnded,
    ReportSessionStarted,
    ReportTurnEnded,
    ReportUsage,
)
from remuda.domain.effects import Effect, EndSession, RunTurn, StartSession
from remuda.domain.errors import EffectFailed
from remuda.domain.state import Outcome, Usage
from simulation.disk import TICK, Disk

Tell = Callable[[Report], None]

LIES = (Usage(input_tokens=-5), Usage(output_tokens=10**12), Usage(cost_nanousd=-1), Usage(cost_nanousd=10**18))


@dataclass(slots=True)
class Process:
    agent: str
    epoch: int
    alive: bool = True
    calls: int = 0


@dataclass(slots=True)
class Witness:
    """What truly happened, over all lives of the runtime."""

    deliveries: list[tuple[str, int, str]] = field(default_factory=list)  # agent, epoch, message
    answered: set[tuple[str, int, int, str]] = field(default_factory=set)  # agent, epoch, turn, message
    used: dict[tuple[str, int, int], Usage] = field(default_factory=dict)  # agent, epoch, call


class World:
    """The world as one runtime meets it. Its processes do not outlive it: the next runtime sweeps them away."""

    def __init__(self, dice: Random, disk: Disk, witness: Witness, tell: Tell) -> None:
        self.calm = False
        self.over = False
        self.live: dict[str, Process] = {}
        self.witness = witness
        self._dice = dice
        self._disk = disk
        self._tell = tell
        self._busy: set[str] = set()

    # --- what the hands ask for ---

    async def perform(self, effect: Effect) -> Report | None:
        assert not self.over, f"{effect} is begun in a world that is over"
        assert effect.agent not in self._busy, f"two things at a time for {effect.agent}: {effect}"
        self._is_durable(effect)
        self._busy.add(effect.agent)
        try:
            match effect:
                case StartSession():
                    return await self._start(effect)
                case RunTurn():
                    return await self._turn(effect)
                case EndSession():
                    return await self._end(effect)
        finally:
            self._busy.discard(effect.agent)

    def _is_durable(self, effect: Effect) -> None:
        """Nothing may be done to the world that the disk does not know to be owed."""
        agent = self._disk.state.agents.get(effect.agent)
        assert agent is not None, f"{effect} of an agent that is not on the disk"
        assert agent.session is not None, f"{effect} of a session that is not on the disk"
        assert agent.session.epoch >= effect.epoch, f"{effect} of a session that is not on the disk"
        if isinstance(effect, RunTurn):
            assert self._disk.state.clock >= effect.turn, f"{effect} of a turn that is not on the disk"

    async def _start(self, effect: StartSession) -> Report:
        other = self.live.get(effect.agent)
        assert other is None, f"{effect.agent} gets a second process: {other} lives"
        process = self.live[effect.agent] = Process(effect.agent, effect.epoch)
        try:
            await self._pass(self._dice.uniform(0.05, 3))
            if self._chance(0.08):
                raise EffectFailed("no such program")
        except BaseException:
            self._kill(process)
            raise
        if self._chance(0.08):
            self._die(process)
        elif self._chance(0.15):
            self._later(self._dice.expovariate(1 / 40), lambda: self._die(process))
        started = ReportSessionStarted(effect.agent, effect.epoch, f"ref-{effect.epoch}")
        if self._chance(0.1):
            self._later(self._dice.uniform(0, 20), lambda: self._tell(started))
        return started

    async def _turn(self, effect: RunTurn) -> Report | None:
        process = self.live.get(effect.agent)
        if process is None or process.epoch != effect.epoch:
            raise EffectFailed("its session is not running here")
        self.witness.deliveries.append((effect.agent, effect.epoch, effect.message.id))
        for _ in range(self._dice.randrange(4)):
            await self._pass(self._dice.uniform(0.1, 4))
            if not process.alive:
                return None
            self._use_model(process, effect.turn)
        await self._pass(self._dice.choice((0, TICK, 2 * TICK)))
        mood = self._dice.random() if not self.calm else 1.0
        if mood < 0.06:
            self._die(process)
            return None
        if mood < 0.1:
            raise RuntimeError("the transcript could not be written")
        if mood < 0.14:
            await self._pass(self._dice.uniform(30, 300))
            self._die(process)
            return None
        return self._answer(process, effect)

    def _answer(self, process: Process, effect: RunTurn) -> Report | None:
        if not process.alive:
            return None
        self.witness.answered.add((effect.agent, effect.epoch, effect.turn, effect.message.id))
        outcome = Outcome.FAILED if self._chance(0.1) else Outcome.COMPLETED
        answer = ReportTurnEnded(effect.agent, effect.epoch, effect.turn, outcome, "end_turn")
        if self._chance(0.2):
            self._later(self._dice.uniform(0, 30), lambda: self._tell(answer))
        if self._chance(0.05):
            self._tell(ReportTurnEnded(effect.agent, effect.epoch, effect.turn, Outcome.LOST))
        return answer

    async def _end(self, effect: EndSession) -> Report:
        process = self.live.get(effect.agent)
        await self._pass(self._dice.uniform(0, 4 if effect.gentle else 0.2))
        if self._chance(0.1):
            raise EffectFailed("it will not go")
        if process is None or process.epoch != effect.epoch:
            return ReportSessionEnded(effect.agent, effect.epoch, "it was not running")
        self._kill(process)
        ended = ReportSessionEnded(effect.agent, effect.epoch, "ended", 0)
        if self._chance(0.2):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(ended))
        return ended

    # --- what agents do ---

    def _use_model(self, process: Process, turn: int) -> None:
        process.calls += 1
        cost = self._dice.choice((None, 0, self._dice.randrange(1, 10_000)))
        some = self._dice.randrange(1000)
        usage = Usage(some, some + 1, some + 2, some + 3, some + 4, 1000, cost)
        self.witness.used[process.agent, process.epoch, process.calls] = usage
        report = ReportUsage(process.agent, process.epoch, turn, process.calls, usage)
        if self._chance(0.05):
            lie = self._dice.choice(LIES)
            self._tell(ReportUsage(process.agent, process.epoch, turn, process.calls, lie))
        if self._chance(0.1):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(report))
        else:
            self._tell(report)
        if self._chance(0.1):
            self._tell(report)
        if self._chance(0.1):
            self._tell(ReportOutput(process.agent, process.epoch, turn, 0, 10, 1))
            self._tell(ReportError(process.agent, process.epoch, turn, "a tool failed"))

    def _die(self, process: Process) -> None:
        if not process.alive:
            return
        self._kill(process)
        ended = ReportSessionEnded(process.agent, process.epoch, "it crashed", -11)
        if self._chance(0.3):
            self._later(self._dice.uniform(0, 5), lambda: self._tell(ended))
        self._later(self._dice.choice((0.0, 0.0, 1.0)), lambda: self._tell(ended))

    def _kill(self, process: Process) -> None:
        process.alive = False
        if self.live.get(process.agent) is process:
            del self.live[process.agent]

    def end(self) -> None:
        """Whoever ran the world is gone: so are its processes, and nobody hears its reports."""
        self.over = True
        for process in list(self.live.values()):
            self._kill(process)

    # --- chance and time ---

    def _chance(self, probability: float) -> bool:
        return not self.calm and self._dice.random() < probability

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(_ticks(seconds), lambda: None if self.over else call())

    async def _pass(self, seconds: float) -> None:
        """Time passes. Told to leave off, most do at once; some only when they are done."""
        stubborn = self._chance(0.2)
        loop = asyncio.get_running_loop()
        end = loop.time() + _ticks(seconds)
        while (left := end - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if self.over or not stubborn:
                    raise
        for _ in range(self._dice.randrange(4)):  # a moment sooner or later within the same moment
            await asyncio.sleep(0)


def _ticks(seconds: float) -> float:
    return round(seconds / TICK) * TICK
