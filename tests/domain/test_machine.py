"""Commands and reports in any order, with a crash at any step: what never reached the disk never was, nothing else is
lost. The machine plays the runtime, the world and the disk, and acts on nothing that is not durable.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.drive import Project, replay
from domain.invariants import check
from remuda.domain.commands import (
    ChangePhase,
    Command,
    HibernateAgent,
    PauseAgent,
    ReapAgent,
    Report,
    ReportError,
    ReportOutput,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
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
from remuda.domain.effects import Effect, EndSession, Key, RunTurn, StartSession, key
from remuda.domain.errors import RemudaError
from remuda.domain.events import (
    MessageQueued,
    SessionEnded,
    SessionRequested,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from remuda.domain.evolve import evolve
from remuda.domain.lifecycle import DEAD, Phase
from remuda.domain.state import Agent, Outcome, Sender, State, Usage

T = TypeVar("T")

NAMES = ("ada", "bob")
names = st.sampled_from(NAMES)
small = st.integers(0, 3)
often = st.integers(0, 3).map(bool)
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
    def __init__(self) -> None:
        super().__init__()
        self.project = Project()
        self.boundaries: deque[int] = deque()  # ends of transactions that are not durable yet, as lengths of the log
        self.durable = 0
        self.disk = State()  # what is durable, folded
        self.letters = 0
        self.dead: dict[str, Agent] = {}
        self.begun: set[Key] = set()  # in this life of the runtime
        self.delivered: Counter[tuple[str, int, str]] = Counter()  # agent, epoch, message: in all lives

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
        self.do(StartRuntime("first"))
        for name, role in zip(NAMES, ("worker", "coordinator"), strict=True):
            self.do(SpawnAgent(role, "scripted", name=name))
            self.do_what_is_owed(name, well=True, caught_up=True)

    @rule(role=st.sampled_from(["worker", "coordinator"]), name=names, hold=st.booleans())
    def spawn(self, role: str, name: str, hold: bool) -> None:
        self.do(SpawnAgent(role, "scripted", name=name, hold=hold))

    @rule(name=names, sender=st.sampled_from(Sender), count=small)
    def send(self, name: str, sender: Sender, count: int) -> None:
        for _ in range(count):
            self.letters += 1
            self.do(SendMessage(name, f"m{self.letters}", sender, "somebody", "Füße 🐎"))

    @rule(name=names, text=st.sampled_from(["", " ", "\ud800"]))
    def send_what_cannot_be_read(self, name: str, text: str) -> None:
        self.do(SendMessage(name, "bad", Sender.USER, "somebody", text))

    @rule(name=names, ask=st.sampled_from([PauseAgent, StopAgent, HibernateAgent]))
    def rest(self, name: str, ask: Callable[[str], Command]) -> None:
        self.do(ask(name))

    @rule(name=names, ask=st.sampled_from([RetireAgent, ReapAgent]), why=st.sampled_from(["", "", "it spins"]))
    def end(self, name: str, ask: Callable[[str, str], Command], why: str) -> None:
        if self.project.state.seq > 40:
            self.do(ask(name, why))

    @rule(name=names)
    def resume(self, name: str) -> None:
        self.do(ResumeAgent(name))

    @rule(name=names, phase=st.sampled_from(Phase))
    def change_phase(self, name: str, phase: Phase) -> None:
        self.do(ChangePhase(name, phase, "task-1"))

    # --- the world does what is owed, or something else ---

    @rule(name=names, well=often, caught_up=often)
    def do_what_is_owed(self, name: str, well: bool, caught_up: bool) -> None:
        """Only what the disk knows to be owed and the loop has not moved on from; each thing once in a life."""
        if caught_up:
            self.flush(len(self.boundaries))
        effect = self.owed(self.disk, name)
        if effect is None or self.owed(self.project.state, name) != effect or key(effect) in self.begun:
            return
        self.begun.add(key(effect))
        match effect:
            case StartSession():
                self.do(ReportSessionStarted(name, effect.epoch, "ref") if well else self.gone(name))
            case RunTurn():
                self.delivered[name, effect.epoch, effect.message.id] += 1
                answer = ReportTurnEnded(name, effect.epoch, effect.turn, Outcome.COMPLETED)
                self.do(answer if well else self.gone(name))
            case EndSession():
                self.do(self.gone(name))

    @rule(name=names)
    def deliver_and_wait(self, name: str) -> None:
        """The agent has its message and is at it: whatever comes next comes in the middle of its turn."""
        self.do_what_is_owed(name, well=True, caught_up=True)
        effect = self.owed(self.disk, name)
        if isinstance(effect, RunTurn) and key(effect) not in self.begun:
            self.begun.add(key(effect))
            self.delivered[name, effect.epoch, effect.message.id] += 1

    @rule(name=names)
    def die_in_the_middle(self, name: str) -> None:
        self.do(self.gone(name))

    @rule(name=names, late=small)
    def answer(self, name: str, late: int) -> None:
        self.do(ReportTurnEnded(name, self.epoch(name), self.turn(name) - late // 2, Outcome.FAILED))

    def owed(self, state: State, name: str) -> Effect | None:
        return due(state.agents[name]) if name in state.agents else None

    def gone(self, name: str) -> Report:
        return ReportSessionEnded(name, self.epoch(name), "gone", -9)

    @rule(name=names, usage=usages, late=small, times=st.integers(1, 2))
    def use(self, name: str, usage: Usage, late: int, times: int) -> None:
        call = 1 + self.about(name, lambda agent: agent.session.calls if agent.session else 0, 0)
        for _ in range(times):
            self.do(ReportUsage(name, self.epoch(name) - late // 3, self.turn(name), call, usage))

    @rule(name=names, off=small, turn_off=small, outcome=st.sampled_from(Outcome), kind=st.integers(0, 5))
    def report_anything(self, name: str, off: int, turn_off: int, outcome: Outcome, kind: int) -> None:
        epoch, turn = self.epoch(name) - off, self.turn(name) - turn_off
        reports: tuple[Report, ...] = (
            ReportSessionStarted(name, epoch, "ref"),
            ReportSessionEnded(name, epoch, "gone", 0),
            ReportSessionFailed(name, epoch, "no such program"),
            ReportTurnEnded(name, epoch, turn, outcome),
            ReportOutput(name, epoch, turn, 0, 1, 1),
            ReportError(name, epoch, turn, "oops"),
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

    @rule()
    def stop_cleanly(self) -> None:
        self.do(StopRuntime("it"))
        self.flush(len(self.boundaries))
        self.crash()

    @rule()
    def crash(self) -> None:
        """Memory is gone, and with it all that was not durable. The next runtime knows the log and nothing else."""
        self.project.log = self.project.log[: self.durable]
        self.project.state = replay(self.project.log)
        assert self.project.state == self.disk
        self.boundaries.clear()
        self.begun.clear()
        self.dead = {name: agent for name, agent in self.disk.agents.items() if agent.status in DEAD}
        self.do(StartRuntime("the next"))

    # --- what is always true ---

    @invariant()
    def the_state_is_sound(self) -> None:
        check(self.project.state)

    @invariant()
    def the_log_tells_the_same_story(self) -> None:
        assert replay(self.project.log) == self.project.state

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


Herd.TestCase.settings = settings(
    max_examples=250,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestHerd = pytest.mark.long(pytest.mark.no_cover(Herd.TestCase))
