"""Commands and reports in any order, with a crash at any step: what never reached the disk never was, nothing else is
lost. The machine plays the runtime, the world and the disk, and acts on nothing that is not durable.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import ClassVar, TypeVar, get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from domain.drive import Project, replay, reread
from domain.invariants import check
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
from remuda.domain.due import due
from remuda.domain.effects import AgentEffect, EndSession, GiveAnswer, Key, Rest, RunTurn, StartSession, key
from remuda.domain.errors import RemudaError
from remuda.domain.events import (
    AgentEvent,
    AgentSpawned,
    BudgetReserved,
    BudgetWarned,
    Event,
    MessageQueued,
    RuntimeStarted,
    RuntimeStopped,
    SessionEnded,
    SessionRequested,
    TriggerFired,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from remuda.domain.evolve import evolve
from remuda.domain.failure import Failure
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent, Outcome, Sender, State, Usage
from remuda.domain.trigger_events import TriggerEvent

T = TypeVar("T")
OF_BUDGETS = {BudgetReserved, BudgetWarned, TriggerFired}  # they have a machine of their own
OF_TRIGGERS = set(get_args(TriggerEvent))  # walked by the tests of verdicts and by the scenarios of each trigger

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


class Herd(RuleBasedStateMachine):
    seen: ClassVar[Counter[type[Event]]] = Counter()  # what came to pass, over all stories

    def __init__(self) -> None:
        super().__init__()
        self.lived = 0  # how much of the log is counted in it
        self.project = Project()
        self.boundaries: deque[int] = deque()  # ends of transactions that are not durable yet, as lengths of the log
        self.durable = 0
        self.disk = State()  # what is durable, folded
        self.twin = State()  # what a reader of the log knows
        self.letters = 0
        self.dead: dict[str, Agent] = {}
        self.begun: set[Key] = set()  # in this life of the runtime
        self.delivered: Counter[tuple[str, int, str]] = Counter()  # agent, epoch, message: in all lives
        self.given: Counter[tuple[str, int, str, int]] = Counter()  # agent, epoch, question, asking: in all lives

    def do(self, command: Command) -> None:
        try:
            self.project.do(command)
        except RemudaError:
            return
        self.boundaries.append(len(self.project.log))

    def about(self, name: str, pick: Callable[[Agent], T], default: T) -> T:
        agent = self.project.state.agents.get(name)
        return pick(agent) if agent else default

    def epoch(self, name: str) -> int:
        return self.about(name, lambda agent: agent.session.epoch if agent.session else 0, 0)

    def turn(self, name: str) -> int:
        return self.about(name, lambda agent: agent.turn.number if agent.turn else 0, 0)

    # --- people ---

    @initialize()
    def begin(self) -> None:
        """Two are in a turn: from nothing, chance would take most of its steps to get there."""
        self.do(StartRuntime("first"))
        for name in NAMES[:2]:
            self.do(SpawnAgent("worker", "scripted", name=name))
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
        self.do(ask(name))

    @rule(name=names)
    def resume(self, name: str) -> None:
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
        for name in NAMES:
            for number, effect in enumerate(self.ready(name)):
                self.perform(effect, well[number % len(well)])

    def ready(self, name: str) -> list[AgentEffect]:
        ahead = self.owed(self.project.state, name)
        begun = [each for each in self.owed(self.disk, name) if each in ahead and key(each) not in self.begun]
        return [each for each in begun if not isinstance(each, Rest) or self.project.now >= each.until]

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

    @rule(name=names, well=st.booleans())
    def finish(self, name: str, well: bool) -> None:
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

    def owed(self, state: State, name: str) -> tuple[AgentEffect, ...]:
        return due(state.agents[name]) if name in state.agents else ()

    def gone(self, name: str) -> Report:
        return ReportSessionEnded(name, self.epoch(name), "gone", -9)

    @rule(name=names, usage=usages, late=small, times=st.integers(1, 2))
    def use(self, name: str, usage: Usage, late: int, times: int) -> None:
        call = 1 + self.about(name, lambda agent: agent.session.calls if agent.session else 0, 0)
        for _ in range(times):
            self.do(ReportUsage(name, self.epoch(name) - late // 3, self.turn(name), call, usage))

    @rule(name=names, off=late, turn_off=late)
    def work(self, name: str, off: int, turn_off: int) -> None:
        place = (name, self.epoch(name) - off, self.turn(name) - turn_off)
        self.do(ReportOutput(*place, 0, 1, 1))
        self.do(ReportError(*place, "oops"))
        self.do(ReportToolCall(*place, "call-1", "bash", False, 0.1))

    @rule(name=names, off=late, turn_off=late, outcome=st.sampled_from(Outcome), kind=st.integers(0, 5))
    def report_anything(self, name: str, off: int, turn_off: int, outcome: Outcome, kind: int) -> None:
        epoch, turn = self.epoch(name) - off, self.turn(name) - turn_off
        reports: tuple[Report, ...] = (
            ReportSessionStarted(name, epoch, "ref"),
            ReportSessionEnded(name, epoch, "gone", 0),
            ReportSessionFailed(name, epoch, "no such program"),
            ReportTurnEnded(name, epoch, turn, outcome),
            ReportAnswerGiven(name, epoch - 1, "q1", 1),
            ReportRested(name, epoch - 1),
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
    def no_message_is_lost_or_answered_twice(self) -> None:
        queued: dict[str, list[str]] = {name: [] for name in self.project.state.agents}
        answered: Counter[str] = Counter()
        for event in (record.event for record in self.project.log):
            if isinstance(event, MessageQueued):
                queued[event.agent].append(event.message.id)
            elif isinstance(event, TurnEnded) and event.outcome.answered:
                answered[event.message_id] += 1
        assert max(answered.values(), default=0) <= 1
        for name, agent in self.project.state.agents.items():
            waiting = ([agent.turn.message.id] if agent.turn else []) + [message.id for message in agent.queue]
            assert queued[name] == [each for each in queued[name] if answered[each]] + waiting

    @invariant()
    def an_agent_has_one_session_at_a_time_and_in_it_one_turn_at_a_time(self) -> None:
        sessions: dict[str, int] = {}
        turns: dict[str, int] = {}
        for event in (record.event for record in self.project.log):
            match event:
                case SessionRequested():
                    assert event.agent not in sessions, f"{event} while session {sessions[event.agent]} is not over"
                    sessions[event.agent] = event.epoch
                case SessionEnded():
                    assert sessions.pop(event.agent) == event.epoch
                case TurnStarted():
                    assert event.agent not in turns, f"{event} while turn {turns[event.agent]} is not over"
                    turns[event.agent] = event.turn
                case TurnEnded():
                    assert turns.pop(event.agent) == event.turn, f"{event} ends a turn that is another"

    @invariant()
    def nothing_is_delivered_twice_in_one_session(self) -> None:
        assert max(self.delivered.values(), default=0) <= 1

    @invariant()
    def an_answer_reaches_the_session_that_asked_once_for_each_asking(self) -> None:
        assert max(self.given.values(), default=0) <= 1
        check_questions(self.project.log, list(self.given))

    @invariant()
    def nobody_starts_a_turn_before_its_rest_is_over(self) -> None:
        check_rests(self.project.log)

    @invariant()
    def the_metrics_are_the_sum_of_what_was_counted(self) -> None:
        for name, agent in self.project.state.agents.items():
            events = (record.event for record in self.project.log)
            mine = [event.usage for event in events if isinstance(event, UsageRecorded) and event.agent == name]
            metrics = agent.metrics
            assert metrics.input_tokens == sum(usage.input_tokens for usage in mine)
            assert metrics.output_tokens == sum(usage.output_tokens for usage in mine)
            assert metrics.cumulative_cost_nanousd == sum(usage.cost_nanousd or 0 for usage in mine)
            assert metrics.unpriced_calls == sum(usage.cost_nanousd is None for usage in mine)
            assert all(usage.input_tokens >= 0 and (usage.cost_nanousd or 0) >= 0 for usage in mine)

    @invariant()
    def no_call_is_counted_twice(self) -> None:
        events = (record.event for record in self.project.log)
        calls = [(event.agent, event.epoch, event.call) for event in events if isinstance(event, UsageRecorded)]
        assert len(calls) == len(set(calls))

    @invariant()
    def turns_are_numbered_once_and_upwards(self) -> None:
        turns = [record.event.turn for record in self.project.log if isinstance(record.event, TurnStarted)]
        assert turns == list(range(1, len(turns) + 1))


SETTINGS = settings(max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.no_cover
def test_whatever_comes_in_whatever_order_nothing_is_lost_and_nothing_done_twice() -> None:
    Herd.seen.clear()
    run_state_machine_as_test(Herd, settings=SETTINGS)
    # A machine that never gets as far as something shows nothing of it.
    expected = (
        {RuntimeStarted, RuntimeStopped, AgentSpawned, *get_args(AgentEvent)} - OF_WORK - OF_BUDGETS - OF_TRIGGERS
    )
    assert set(Herd.seen) == expected, f"never seen: {expected - set(Herd.seen)}"
