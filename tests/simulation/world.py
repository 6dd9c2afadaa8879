"""A world of agents that reply, ask, take their time, stall, crash, repeat themselves, come late, and lie, and of a
model's service that asks for patience.

It is the referee's witness too: it knows which processes live, what was delivered to whom, and what was truly used.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from remuda.agents import Answered, Asked
from remuda.domain.commands import (
    Command,
    Report,
    ReportAnswerGiven,
    ReportError,
    ReportOutput,
    ReportQuestion,
    ReportRested,
    ReportSessionEnded,
    ReportSessionStarted,
    ReportToolCall,
    ReportTurnEnded,
    ReportUsage,
)
from remuda.domain.effects import (
    AgentEffect,
    AwaitVerdict,
    Effect,
    EndSession,
    GiveAnswer,
    KeepWork,
    RemoveBody,
    Rest,
    RunTurn,
    StartSession,
    TaskEffect,
)
from remuda.domain.errors import EffectFailed
from remuda.domain.failure import Failure
from remuda.domain.permission import Policy, Ruling
from remuda.domain.state import Outcome, Usage
from remuda.domain.trigger_commands import ReportWorkKept
from remuda.effects.questions import Questions
from simulation.disk import TICK, Disk
from simulation.yard import Yard

Tell = Callable[[Command], None]

LIES = (Usage(input_tokens=-5), Usage(output_tokens=10**12), Usage(cost_nanousd=-1), Usage(cost_nanousd=10**18))


@dataclass(slots=True)
class Process:
    agent: str
    epoch: int
    questions: Questions
    alive: bool = True
    calls: int = 0
    turn: int = 0


@dataclass(slots=True)
class Witness:
    """What truly happened, over all lives of the runtime."""

    deliveries: list[tuple[str, int, str]] = field(default_factory=list)  # agent, epoch, message
    answered: set[tuple[str, int, int, str]] = field(default_factory=set)  # agent, epoch, turn, message
    used: dict[tuple[str, int, int], Usage] = field(default_factory=dict)  # agent, epoch, call
    given: Counter[tuple[str, int, str, int]] = field(default_factory=Counter)  # agent, epoch, question, asking
    heard: list[tuple[str, str, Answered]] = field(default_factory=list)  # agent, arguments, what the asking agent got
    merged: dict[str, str] = field(default_factory=dict)  # task -> the commit that landed


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
        self.yard = Yard(dice, disk, witness.merged, self.chance, self.passing)

    # --- what the hands ask for ---

    async def perform(self, effect: Effect) -> Report | None:
        assert not self.over, f"{effect} is begun in a world that is over"
        if isinstance(effect, TaskEffect):
            return await self.yard.perform(effect)
        if isinstance(effect, AwaitVerdict | RemoveBody):
            raise EffectFailed("no clock for verdicts, and nothing of the dead")
        self._is_durable(effect)
        if isinstance(effect, KeepWork):
            return await self._keep(effect)
        if isinstance(effect, Rest):
            return await self._rest(effect)
        if isinstance(effect, GiveAnswer):
            return await self._give(effect)
        assert effect.agent not in self._busy, f"two things at a time for {effect.agent}: {effect}"
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

    def _is_durable(self, effect: AgentEffect) -> None:
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
        process = self._new_process(effect)
        try:
            await self.passing(self._dice.uniform(0.05, 3))
            if self.chance(0.08):
                raise EffectFailed("no such program")
        except BaseException:
            self._kill(process)
            raise
        if self.chance(0.08):
            self._die(process)
        elif self.chance(0.15):
            self._later(self._dice.expovariate(1 / 40), lambda: self._die(process))
        started = ReportSessionStarted(effect.agent, effect.epoch, f"ref-{effect.epoch}")
        if self.chance(0.1):
            self._later(self._dice.uniform(0, 20), lambda: self._tell(started))
        return started

    async def _turn(self, effect: RunTurn) -> Report | None:
        process = self.live.get(effect.agent)
        if process is None or process.epoch != effect.epoch:
            raise EffectFailed("its session is not running here")
        self.witness.deliveries.append((effect.agent, effect.epoch, effect.message.id))
        process.turn = effect.turn
        for _ in range(self._dice.randrange(4)):
            await self.passing(self._dice.uniform(0.1, 4))
            if not process.alive:
                return None
            self._use_model(process, effect.turn)
            if self._dice.random() < 0.25 and not _told_to_leave_off():
                await self._ask(process, effect.message.id)
        self._speak(process, effect)
        await self.passing(self._dice.choice((0, TICK, 2 * TICK)))
        mood = self._dice.random() if not self.calm else 1.0
        if mood < 0.06:
            self._die(process)
            return None
        if mood < 0.1:
            raise RuntimeError("the transcript could not be written")
        if mood < 0.14:
            await self.passing(self._dice.uniform(30, 300))
            self._die(process)
            return None
        if mood < 0.3 and process.alive:
            return self._refuse(process, effect)
        return self._answer(process, effect)

    def _speak(self, process: Process, effect: RunTurn) -> None:
        if effect.message.about and process.alive and not _told_to_leave_off():
            for said in self.yard.says(effect):
                self._tell(said)

    def _refuse(self, process: Process, effect: RunTurn) -> Report:
        """The model's service will not serve it now, and the agent says so in one way or another."""
        process.turn = 0
        outcome = self._dice.choice((Outcome.FAILED, Outcome.COMPLETED))
        failure = self._dice.choice((Failure.RATE_LIMITED, Failure.OVERLOADED))
        retry_after = self._dice.choice((None, None, 0.0, TICK, 20.0, 10_000.0))
        place = (effect.agent, effect.epoch, effect.turn)
        refusal = ReportTurnEnded(*place, outcome, "error", "slow down", failure, retry_after)
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 30), lambda: self._tell(refusal))
        return refusal

    def _answer(self, process: Process, effect: RunTurn) -> Report | None:
        if not process.alive:
            return None
        process.turn = 0
        process.questions.settle_all("the turn has ended")
        self.witness.answered.add((effect.agent, effect.epoch, effect.turn, effect.message.id))
        outcome = Outcome.FAILED if self.chance(0.1) else Outcome.COMPLETED
        answer = ReportTurnEnded(effect.agent, effect.epoch, effect.turn, outcome, "end_turn")
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 30), lambda: self._tell(answer))
        if self.chance(0.05):
            self._tell(ReportTurnEnded(effect.agent, effect.epoch, effect.turn, Outcome.LOST))
        return answer

    async def _end(self, effect: EndSession) -> Report:
        process = self.live.get(effect.agent)
        await self.passing(self._dice.uniform(0, 4 if effect.gentle else 0.2))
        if self.chance(0.1):
            raise EffectFailed("it will not go")
        if process is None or process.epoch != effect.epoch:
            return ReportSessionEnded(effect.agent, effect.epoch, "it was not running")
        self._kill(process)
        ended = ReportSessionEnded(effect.agent, effect.epoch, "ended", 0)
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(ended))
        return ended

    async def _rest(self, effect: Rest) -> Report:
        await self.passing(effect.until - asyncio.get_running_loop().time() + 2 * TICK)
        if self.chance(0.1):
            raise EffectFailed("no clock")
        over = ReportRested(effect.agent, effect.epoch)
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 30), lambda: self._tell(over))
        return over

    async def _keep(self, effect: KeepWork) -> Report:
        await self.passing(self._dice.choice((0, TICK, 3)))
        if self.chance(0.1):
            raise EffectFailed("git would not")
        left = ReportWorkKept(effect.agent, effect.epoch, f"commit-{effect.epoch}", "", 10)
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(left))
        return left

    async def _give(self, effect: GiveAnswer) -> Report | None:
        await self.passing(self._dice.choice((0, 0, TICK, 1)))
        if self.chance(0.1):
            raise EffectFailed("it does not listen")
        process = self.live.get(effect.agent)
        if process is None or process.epoch != effect.epoch:
            return None
        process.questions.settle(effect.question_id, allow=effect.allow, why=effect.why)
        self.witness.given[effect.agent, effect.epoch, effect.question_id, effect.asking] += 1
        given = ReportAnswerGiven(effect.agent, effect.epoch, effect.question_id, effect.asking)
        if self.chance(0.2):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(given))
        return given

    # --- what agents do ---

    def _new_process(self, effect: StartSession) -> Process:
        def put(question_id: str, asked: Asked) -> bool:
            if process.turn:
                place = (effect.agent, effect.epoch, process.turn)
                self._tell(ReportQuestion(*place, question_id, asked.tool, asked.arguments))
            return bool(process.turn)

        questions = Questions(effect.agent, Policy(default=Ruling.ASK), ["/"], put)
        process = self.live[effect.agent] = Process(effect.agent, effect.epoch, questions)
        return process

    async def _ask(self, process: Process, message: str) -> None:
        """The same agent with the same message comes to the same questions; some are asked twice, or twice at once, the
        second time in the very moment in which the answer to the first comes in."""
        asked = Asked("call", "bash", f"{message} {self._dice.randrange(2)}")
        wishes = [self._asking(process, asked, 0)]
        if self._dice.random() < 0.5:
            wishes.append(self._asking(process, asked, self._dice.randrange(40) * TICK))
        await asyncio.gather(*wishes)

    async def _asking(self, process: Process, asked: Asked, seconds: float) -> None:
        await self.passing(seconds)
        if not process.alive or _told_to_leave_off():
            return
        asking = asyncio.ensure_future(process.questions.ask(asked))
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
        if asking.done() and not asking.cancelled():
            self.witness.heard.append((process.agent, asked.arguments, asking.result()))

    def _use_model(self, process: Process, turn: int) -> None:
        process.calls += 1
        cost = self._dice.choice((None, 0, self._dice.randrange(1, 10_000)))
        some = self._dice.randrange(1000)
        usage = Usage(some, some + 1, some + 2, some + 3, some + 4, 1000, cost)
        self.witness.used[process.agent, process.epoch, process.calls] = usage
        report = ReportUsage(process.agent, process.epoch, turn, process.calls, usage)
        if self.chance(0.05):
            lie = self._dice.choice(LIES)
            self._tell(ReportUsage(process.agent, process.epoch, turn, process.calls, lie))
        if self.chance(0.1):
            self._later(self._dice.uniform(0, 10), lambda: self._tell(report))
        else:
            self._tell(report)
        if self.chance(0.1):
            self._tell(report)
        if self.chance(0.1):
            self._tell(ReportOutput(process.agent, process.epoch, turn, 0, 10, 1))
            self._tell(ReportToolCall(process.agent, process.epoch, turn, "call", "bash", False, 0.1))
            self._tell(ReportError(process.agent, process.epoch, turn, "a tool failed"))

    def _die(self, process: Process) -> None:
        if not process.alive:
            return
        self._kill(process)
        ended = ReportSessionEnded(process.agent, process.epoch, "it crashed", -11)
        if self.chance(0.3):
            self._later(self._dice.uniform(0, 5), lambda: self._tell(ended))
        self._later(self._dice.choice((0.0, 0.0, 1.0)), lambda: self._tell(ended))

    def _kill(self, process: Process) -> None:
        process.alive = False
        process.questions.drop()
        if self.live.get(process.agent) is process:
            del self.live[process.agent]

    def end(self) -> None:
        """Whoever ran the world is gone: so are its processes, and nobody hears its reports."""
        self.over = True
        for process in list(self.live.values()):
            self._kill(process)

    # --- chance and time ---

    def chance(self, probability: float) -> bool:
        return not self.calm and self._dice.random() < probability

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(_ticks(seconds), lambda: None if self.over else call())

    async def passing(self, seconds: float) -> None:
        """Time passes. Told to leave off, most do at once; some only when they are done."""
        stubborn = self.chance(0.2)
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


def _told_to_leave_off() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
