"""Commands and reports in any order, with a crash at any step: what never reached the disk never was, nothing else is
lost. The machine plays the runtime, the world and the disk, and acts on nothing that is not durable.
"""

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, TypeVar, get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from domain.drive import replay, reread
from domain.history import check_bodies, check_mail, check_metrics, check_sessions_and_turns, check_triggers
from domain.invariants import check
from domain.played import Played
from domain.waits import check_questions, check_rests
from domain.work import OF_WORK
from remuda.domain.commands import (
    AnswerQuestion,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    Report,
    ReportAnswerGiven,
    ReportError,
    ReportOutput,
    ReportQuestion,
    ReportRested,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportToolCall,
    ReportTurnEnded,
    ReportUsage,
    ResumeAgent,
    RetireAgent,
    SendMessage,
    SpawnAgent,
    StartRuntime,
    StopAgent,
    StopRuntime,
)
from remuda.domain.effects import (
    AgentEffect,
    AwaitVerdict,
    EndSession,
    GiveAnswer,
    KeepWork,
    RemoveBody,
    Rest,
    RunTurn,
    StartSession,
    key,
)
from remuda.domain.events import (
    AgentEvent,
    AgentSpawned,
    BudgetReserved,
    BudgetWarned,
    Event,
    RuntimeStarted,
    RuntimeStopped,
)
from remuda.domain.evolve import evolve
from remuda.domain.failure import Failure
from remuda.domain.ledger import Limits
from remuda.domain.lifecycle import DEAD
from remuda.domain.spin_reading import Step, read
from remuda.domain.state import Outcome, Sender, Usage
from remuda.domain.trigger import Course, Strategy, Trigger
from remuda.domain.trigger_commands import (
    BuryAgent,
    FireTrigger,
    GiveVerdict,
    NudgeAgent,
    ReportBodyRemoved,
    ReportSaidAgain,
    ReportVerdictOverdue,
    ReportWorkKept,
    SeekVerdict,
)

T = TypeVar("T")
OF_BUDGETS = {BudgetReserved, BudgetWarned}  # they have a machine of their own
BUDGET = 10**15  # tokens: never spent, so that it can be seen where it goes
RESTARTS, WITHIN = 1, 500.0  # so few that chance gets past them
courses = st.sampled_from([Course.RESTART, Course.RESTART, *Course])
SAID = read(Step(text="I will now try again. " * 9))

NAMES = ("ada", "bob", "cid")
names = st.sampled_from(("ada", "ada", *NAMES))
small = st.integers(0, 3)
late = st.sampled_from([0, 0, 0, 1, 3])
questions = st.sampled_from(["q1", "q1", "q2"])
failures = st.sampled_from([Failure.RATE_LIMITED, Failure.OVERLOADED, Failure.MODEL_ERROR])
usages = st.builds(
    Usage,
    st.integers(-1, 1000),
    st.integers(0, 1000),
    st.sampled_from([0, 5, 10**11]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.just(100),
    st.sampled_from([None, 0, 7, -1, 10**16]),
)


class Herd(Played):
    seen: ClassVar[Counter[type[Event]]] = Counter()  # what came to pass, over all stories

    # --- people ---

    @initialize()
    def begin(self) -> None:
        """Two are in a turn: from nothing, chance would take most of its steps to get there."""
        self.do(StartRuntime("first"))
        for name, parent, budget in (("ada", "", Limits(tokens=BUDGET)), ("bob", "ada", Limits())):
            self.do(SpawnAgent("worker", "scripted", name=name, parent=parent, budget=budget))
            self.send(name, Sender.USER, "hello")
            self.send(name, Sender.USER, "and more")
        self.go_on([True])

    @rule(name=names, role=st.sampled_from(["worker", "crew", "coordinator"]), hold=st.booleans())
    def spawn(self, name: str, role: str, hold: bool) -> None:
        self.do(SpawnAgent(role, "scripted", name=name, hold=hold))

    @rule(name=names, sender=st.sampled_from(Sender), text=st.sampled_from(["hello", "", "\ud800", "Füße 🐎"]))
    def send(self, name: str, sender: Sender, text: str) -> None:
        self.letters += 1
        self.do(SendMessage(name, f"m{self.letters}", sender, "somebody", text))

    @rule(name=names, ask=st.sampled_from([PauseAgent, StopAgent, HibernateAgent]))
    def rest(self, name: str, ask: Callable[[str], Command]) -> None:
        name = self.heir(name)
        self.do(ask(name))

    @rule(name=names)
    def resume(self, name: str) -> None:
        name = self.heir(name)
        self.do(ResumeAgent(name))

    @rule(name=names, ask=st.sampled_from([RetireAgent, ReapAgent]), why=st.sampled_from(["", "", "it spins"]))
    def end(self, name: str, ask: Callable[[str, str], Command], why: str) -> None:
        if self.project.state.seq > 40:
            self.do(ask(name, why))

    @rule(which=small, allow=st.booleans(), by=st.sampled_from(["user", "user", "ada"]))
    def answer(self, which: int, allow: bool, by: str) -> None:
        asked = [(agent.name, each.id) for agent in self.project.state.agents.values() for each in agent.questions]
        self.do(AnswerQuestion(*(asked[which % len(asked)] if asked else ("ada", "q1")), allow, by))
        if allow:
            self.go_on([True])

    # --- the world does what is owed, or something else ---

    @rule(name=names, which=small, well=st.booleans())
    def do_what_is_owed(self, name: str, which: int, well: bool) -> None:
        """Only what the disk knows to be owed and the loop has not moved on from; each thing once in a life."""
        ready = self.ready(name)
        if ready:
            self.perform(ready[which % len(ready)], well)

    @rule(well=st.lists(st.booleans(), min_size=1, max_size=4))
    def go_on(self, well: list[bool]) -> None:
        """The disk catches up, and everything owed is done, some of it badly."""
        self.flush(len(self.boundaries))
        for name in list(self.project.state.agents):
            for number, effect in enumerate(self.ready(name)):
                self.perform(effect, well[number % len(well)])

    def perform(self, effect: AgentEffect, well: bool) -> None:
        name = effect.agent
        self.begun.add(key(effect))
        match effect:
            case StartSession():
                self.do(ReportSessionStarted(name, effect.epoch, "ref") if well else self.gone(name))
            case RunTurn():
                self.delivered[name, effect.epoch, effect.message.id] += 1  # it takes its time: see `finish`
                if effect.turn % 2:
                    self.do(ReportQuestion(name, effect.epoch, effect.turn, "q1", "bash", "q1"))
            case EndSession():
                self.do(self.gone(name))
            case Rest():
                self.do(ReportRested(name, effect.epoch))
            case GiveAnswer():
                self.given[name, effect.epoch, effect.question_id, effect.asking] += 1
                self.do(ReportAnswerGiven(name, effect.epoch, effect.question_id, effect.asking))
            case AwaitVerdict():
                self.do(ReportVerdictOverdue(name, effect.epoch, effect.until))
            case KeepWork():
                self.do(ReportWorkKept(name, effect.epoch, f"commit-{effect.epoch}", "", 1))
            case RemoveBody():
                self.do(ReportBodyRemoved(name, effect.epoch, 1))

    # --- fish or cut bait ---

    @rule(name=names, trigger=st.sampled_from(Trigger), otherwise=courses, nudge=st.booleans())
    def fire(self, name: str, trigger: Trigger, otherwise: Course, nudge: bool) -> None:
        """As the watches do: a word first, and with the trigger the question what is to become of it."""
        name = self.heir(name)
        self.do(ReportSaidAgain(name, self.epoch(name), self.turn(name), SAID))
        if nudge:
            self.do(NudgeAgent(name, "cycle", "the same call again and again"))
        elif trigger is not Trigger.BUDGET:
            self.do(
                FireTrigger(name, trigger, "it goes in circles"), SeekVerdict(name, 50.0, otherwise, RESTARTS, WITHIN)
            )

    @rule(name=names, course=courses, whole=st.booleans(), times=st.sampled_from([1, 1, 3]))
    def judge(self, name: str, course: Course, whole: bool, times: int) -> None:
        """One verdict, or one after the other on whoever takes the place: chance alone seldom gets so far."""
        for number in range(times):
            if number:
                self.fire(name, Trigger.SPIN, course, nudge=False)
            strategy = Strategy.ALL if whole else Strategy.ONE
            self.do(GiveVerdict(self.heir(name), course, "user", strategy=strategy))

    @rule(go_on=st.booleans())
    def bury(self, go_on: bool) -> None:
        for name in self.dead:
            self.do(BuryAgent(name, "user"))
        if go_on:
            self.go_on([True])

    @rule(name=names, well=st.booleans())
    def finish(self, name: str, well: bool) -> None:
        name = self.heir(name)
        place = (name, self.epoch(name), self.turn(name))
        self.do(ReportTurnEnded(*place, Outcome.COMPLETED) if well else self.gone(name))

    @rule(name=names, failure=failures, retry_after=st.sampled_from([None, 0.0, 7.0, float("nan")]))
    def fail(self, name: str, failure: Failure, retry_after: float | None) -> None:
        place = (name, self.epoch(name), self.turn(name))
        self.do(ReportTurnEnded(*place, Outcome.FAILED, "error", "no", failure, retry_after))

    @rule(name=names, question=questions, off=small, at_once=st.booleans(), go_on=st.booleans())
    def ask(self, name: str, question: str, off: int, at_once: bool, go_on: bool) -> None:
        """Some are answered at once, some later, some never."""
        self.do(ReportQuestion(name, self.epoch(name) - off // 3, self.turn(name), question, "bash", question))
        if at_once:
            self.do(AnswerQuestion(name, question, go_on, "user"))
        if go_on:
            self.go_on([True])

    @rule(seconds=st.sampled_from([1.0, 10.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.project.now += seconds

    @rule(name=names, usage=usages, late=small, times=st.integers(1, 2))
    def use(self, name: str, usage: Usage, late: int, times: int) -> None:
        name = self.heir(name)
        call = 1 + self.about(name, lambda agent: agent.session.calls if agent.session else 0, 0)
        for _ in range(times):
            self.do(ReportUsage(name, self.epoch(name) - late // 3, self.turn(name), call, usage))

    @rule(name=names, off=late, turn_off=late)
    def work(self, name: str, off: int, turn_off: int) -> None:
        name = self.heir(name)
        place = (name, self.epoch(name) - off, self.turn(name) - turn_off)
        self.do(ReportOutput(*place, 0, 1, 1))
        self.do(ReportError(*place, "oops"))
        self.do(ReportToolCall(*place, "call-1", "bash", False, 0.1))

    @rule(name=names, off=late, turn_off=late, outcome=st.sampled_from(Outcome), kind=st.integers(0, 8))
    def report_anything(self, name: str, off: int, turn_off: int, outcome: Outcome, kind: int) -> None:
        name = self.heir(name)
        epoch, turn = self.epoch(name) - off, self.turn(name) - turn_off
        reports: tuple[Report, ...] = (
            ReportSessionStarted(name, epoch, "ref"),
            ReportSessionEnded(name, epoch, "gone", 0),
            ReportSessionFailed(name, epoch, "no such program"),
            ReportTurnEnded(name, epoch, turn, outcome),
            ReportAnswerGiven(name, epoch - 1, "q1", 1),
            ReportRested(name, epoch - 1),
            ReportWorkKept(name, epoch, "commit", "", 1),
            ReportBodyRemoved(name, epoch, 1),
            ReportVerdictOverdue(name, epoch, 7.0),
        )
        self.do(reports[kind])

    # --- the runtime ---

    @rule(transactions=st.integers(1, 5))
    def flush(self, transactions: int) -> None:
        """The disk catches up, by whole transactions."""
        for _ in range(min(transactions, len(self.boundaries))):
            end = self.boundaries.popleft()
            for record in self.project.log[self.durable : end]:
                evolve(self.disk, record)
            self.durable = end

    @rule(cleanly=st.booleans(), go_on=st.booleans())
    def end_the_runtime(self, cleanly: bool, go_on: bool) -> None:
        """Memory is gone, and with it all that was not durable. The next runtime knows the log and nothing else."""
        if cleanly:
            self.do(StopRuntime("it"))
            self.flush(len(self.boundaries))
        self.teardown()
        self.project.log = self.project.log[: self.durable]
        self.project.state, self.twin = replay(self.project.log), replay(self.project.log)
        assert self.project.state == self.disk
        self.boundaries.clear()
        self.begun.clear()
        self.lived = min(self.lived, len(self.project.log))
        self.dead = {name: agent for name, agent in self.disk.agents.items() if agent.status in DEAD}
        self.do(StartRuntime("the next"))
        if go_on:
            self.go_on([True])

    # --- what is always true ---

    @invariant()
    def the_state_is_sound(self) -> None:
        check(self.project.state)
        self.seen.update(type(record.event) for record in self.project.log[self.lived :])
        self.lived = len(self.project.log)

    @invariant()
    def the_log_tells_the_same_story(self) -> None:
        """Event by event through the codec, as from the disk."""
        for record in self.project.log[self.twin.seq :]:
            evolve(self.twin, reread(record))
        assert self.twin == self.project.state

    @invariant()
    def the_dead_stay_dead(self) -> None:
        for name, agent in self.project.state.agents.items():
            if name in self.dead:
                was = self.dead[name]
                assert (agent.status, agent.ended_at, agent.turns) == (was.status, was.ended_at, was.turns)
            if agent.status in DEAD:
                self.dead[name] = agent

    @invariant()
    def nothing_is_delivered_twice_in_one_session(self) -> None:
        assert max(self.delivered.values(), default=0) <= 1

    @invariant()
    def an_answer_reaches_the_session_that_asked_once_for_each_asking(self) -> None:
        assert max(self.given.values(), default=0) <= 1

    @invariant()
    def a_budget_is_neither_made_nor_lost_by_a_restart(self) -> None:
        accounts = self.project.state.ledger.accounts.values()
        assert sum(account.limits.tokens or 0 for account in accounts) == (BUDGET if accounts else 0)

    @invariant()
    def nobody_waits_for_a_verdict_on_the_dead_or_on_one_that_was_not_stopped(self) -> None:
        for agent in self.project.state.agents.values():
            assert agent.sought is None or (agent.trigger is not None and agent.status not in DEAD), agent

    def teardown(self) -> None:
        """What a log says of the past it says for ever: once before any of it can be lost is enough."""
        log, state = self.project.log, self.project.state
        check_sessions_and_turns(log)
        check_triggers(log, RESTARTS, WITHIN)
        check_bodies(log)
        check_mail(log, state)
        check_metrics(log, state)
        check_rests(log)
        check_questions(log, list(self.given))


SETTINGS = settings(max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.no_cover
def test_whatever_comes_in_whatever_order_nothing_is_lost_and_nothing_done_twice() -> None:
    Herd.seen.clear()
    run_state_machine_as_test(Herd, settings=SETTINGS)
    # A machine that never gets as far as something shows nothing of it.
    expected = {RuntimeStarted, RuntimeStopped, AgentSpawned, *get_args(AgentEvent)} - OF_WORK - OF_BUDGETS
    assert expected <= set(Herd.seen), f"never seen: {expected - set(Herd.seen)}"
