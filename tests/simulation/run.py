"""One seed, one story: some lives of a runtime that end in crashes, failures and stops, then one that calms down."""

import asyncio
import hashlib
from dataclasses import dataclass
from random import Random

from domain.owed import all_due
from domain.waits import check_rests
from remuda.domain.commands import AnswerQuestion, Command, Report, ResumeAgent, StartRuntime, StopRuntime
from remuda.domain.due import Debtors
from remuda.domain.effects import Effect
from remuda.domain.errors import RemudaError
from remuda.domain.events import RestEnded
from remuda.domain.lifecycle import Status
from remuda.runtime import loop as loop_module
from remuda.runtime.batch import Reply
from remuda.runtime.hands import Hands
from remuda.runtime.loop import Loop
from remuda.store.codec import encode_event
from remuda.watch.briefing import briefing
from remuda.watch.coordinator import Rules, coordinator
from remuda.watch.obituary import obituary
from remuda.watch.question import question
from simulation import mail, verdict
from simulation.disk import Disk, SlowStore
from simulation.user import OVER, User
from simulation.virtual import run_virtually
from simulation.world import Witness, World

PATIENCE = 5000.0  # virtual seconds until everything owed must be done once the faults have stopped
WATCHES = (obituary, question, briefing, coordinator(Rules(backend="simulated")))
RESTING = (Status.PENDING, Status.PAUSED, Status.STOPPED)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a seed."""

    trace: str  # the same for the same seed, always
    events: int
    lives: int
    answered: int
    rests: int
    given: int
    merged: int


class Life:
    """A runtime, from its start to whatever ends it."""

    def __init__(self, story: "Story", number: int) -> None:
        self.dice, self.number = story.dice, number
        self.failing = 0.0
        self.store = SlowStore(story.disk, story.dice, lambda: self.failing)
        self.world = World(story.dice, story.disk, story.witness, self.tell)
        self._disk = story.disk
        self._violations = story.violations

    async def start(self) -> None:
        state = await self.store.restore()
        assert state == self._disk.state, "what was restored is not what is in the log"
        self.hands = Hands(self.perform, lambda command: self.loop.submit(command))
        self.loop = Loop(self.store, state, owe=self.owe, clock=asyncio.get_running_loop().time, watches=WATCHES)
        self.running = asyncio.ensure_future(self.loop.run())
        await self.loop.submit(StartRuntime(f"life {self.number}"))
        self.hands.owe(self.loop.shown, self.loop.state)

    async def perform(self, effect: Effect) -> Report | None:
        try:
            return await self.world.perform(effect)
        except AssertionError as violation:
            self._violations.append(violation)  # or the hands would only try again
            raise

    def tell(self, command: Command) -> None:
        self.loop.submit(command).add_done_callback(self._heard)

    def _heard(self, reply: Reply) -> None:
        error = reply.exception()
        if error is not None and not isinstance(error, RemudaError):
            self._violations.append(error)

    def owe(self, durable: Debtors, current: Debtors) -> None:
        verdict.check_step(durable.agents.values(), self.world)
        self.hands.owe(durable, current)

    async def crash(self) -> None:
        """Everything in memory is gone, at once."""
        self.store.crash()
        self.world.end()
        self.loop.stop(OVER)
        await self.hands.close()
        await asyncio.wait({self.running})
        self.running.exception()
        await asyncio.sleep(0)  # what the crash left on the disk is there

    async def stop(self) -> None:
        """In the order in which a runtime stops: work, processes, a last word in the log."""
        await self.hands.close()
        self.world.end()
        try:
            await self.loop.submit(StopRuntime(f"life {self.number}"))
            await self.store.save_snapshot(self.loop.state)
        except RemudaError:
            pass  # the log failed on the last step: then it was no clean stop
        await self.crash()


class Story:
    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.disk = Disk()
        self.witness = Witness()
        self.user = User(self.dice, self.disk)
        self.lives = 0
        self.violations: list[BaseException] = []

    async def tell(self) -> Told:
        asyncio.get_running_loop().set_exception_handler(self._noted)
        for _ in range(self.dice.randrange(4)):
            await self._troubled_life()
            self._check()
        await self._calming_life()
        rests = sum(isinstance(record.event, RestEnded) for record in self.disk.log)
        answered, given = len(self.witness.answered), self.witness.given.total()
        merged = len(self.witness.merged)
        return Told(self._trace(), len(self.disk.log), self.lives, answered, rests, given, merged)

    async def _troubled_life(self) -> None:
        life = self._begin()
        life.failing = self.dice.choice((0.0, 0.0, 0.01, 0.05))
        try:
            await life.start()
        except RemudaError:
            await life.crash()
            return
        working = asyncio.ensure_future(self.user.work(life.loop))
        if self.dice.random() < 0.5:
            life.store.fatal = self.dice.randrange(1, 80)
        died = asyncio.ensure_future(life.store.died.wait())
        await asyncio.wait({life.running, died}, timeout=self.dice.uniform(1, 60), return_when="FIRST_COMPLETED")
        died.cancel()
        if life.running.done() or life.store.died.is_set() or self.dice.random() < 0.5:
            await life.crash()
        else:
            life.store.fatal = -1
            await life.stop()
        working.cancel()
        await asyncio.wait({working})

    async def _calming_life(self) -> None:
        """In the middle of it all the faults stop, nobody asks for more, and everyone is resumed: then everything owed
        must come to be done, without a restart to help."""
        life = self._begin()
        await life.start()
        working = asyncio.ensure_future(self.user.work(life.loop))
        await asyncio.wait({working, life.running}, timeout=self.dice.uniform(0, 60))
        working.cancel()
        await asyncio.wait({working})
        life.world.calm = True
        await self._until_nothing_is_owed(life)
        self._check()
        assert life.loop.state == self.disk.state
        assert life.loop.shown.agents == self.disk.state.agents
        assert life.loop.shown.tasks == self.disk.state.tasks
        mail.check_end_of_work(self.disk.state, self.witness)
        verdict.check_end(self.disk.state, self.user, life.world)
        await life.crash()

    async def _until_nothing_is_owed(self, life: Life) -> None:
        loop, state = asyncio.get_running_loop(), life.loop.state
        bound = loop.time() + PATIENCE
        while self.user.unanswered() or any(all_due(state)) or self._resting(life) or state.seq > life.loop.shown.seq:
            if self.violations:
                raise self.violations[0]
            assert loop.time() < bound, f"owed and never done: {list(all_due(state))}"
            for order in self.user.unanswered():
                self.user.ask(life.loop, order)
            for name in self._resting(life):
                life.tell(ResumeAgent(name))
            for name, which in self.user.open_questions():
                life.tell(AnswerQuestion(name, which, self.dice.random() < 0.5, "user", "so be it"))
            await asyncio.sleep(5)

    def _resting(self, life: Life) -> list[str]:
        return [agent.name for agent in life.loop.state.agents.values() if agent.status in RESTING]

    def _begin(self) -> Life:
        self.lives += 1
        return Life(self, self.lives)

    def _check(self) -> None:
        if self.violations:
            raise self.violations[0]
        log, state = self.disk.log, self.disk.state
        verdict.check_log(log, state)
        verdict.check_messages(log, self.user, self.witness)
        verdict.check_deliveries(log, self.witness)
        mail.check_mail(log, state)
        mail.check_work(log, state, self.witness)
        verdict.check_usage(log, state, self.witness)
        verdict.check_letters(log)
        verdict.check_answers(log, self.witness)
        check_rests(log)

    def _noted(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, RemudaError):
            self.violations.append(error)

    def _trace(self) -> str:
        digest = hashlib.sha256()
        for record in self.disk.log:
            digest.update(repr((record.seq, record.at, record.cause)).encode() + encode_event(record.event))
        return digest.hexdigest()


def tell(seed: int) -> Told:
    often, loop_module.SNAPSHOT_EVERY = loop_module.SNAPSHOT_EVERY, 20
    try:
        return run_virtually(Story(seed).tell())
    finally:
        loop_module.SNAPSHOT_EVERY = often
