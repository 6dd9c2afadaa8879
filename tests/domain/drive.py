"""Drives the domain as the loop does: commands and reports in, events out. No state is ever built by hand."""

from collections.abc import Iterator
from typing import Self

from domain.invariants import check
from remuda.domain.commands import (
    AnswerQuestion,
    Command,
    ReportAnswerGiven,
    ReportQuestion,
    ReportRested,
    ReportSessionEnded,
    ReportSessionFailed,
    ReportSessionStarted,
    ReportTurnEnded,
    ReportUsage,
    SendMessage,
    SpawnAgent,
)
from remuda.domain.decide import decide
from remuda.domain.events import Event, Recorded
from remuda.domain.evolve import evolve
from remuda.domain.failure import Failure
from remuda.domain.questions import find_question
from remuda.domain.state import Agent, Outcome, Question, Sender, State, Usage
from remuda.domain.trigger_commands import ReportWorkKept
from remuda.store.codec import decode_event, encode_event

WORKER = "worker-1"


def replay(log: list[Recorded]) -> State:
    """What a new process would know: every event goes through the codec, as on the disk."""
    state = State()
    for record in log:
        evolve(state, reread(record))
    return state


def reread(record: Recorded) -> Recorded:
    kind = type(record.event).__name__
    return Recorded(record.seq, record.at, record.cause, decode_event(record.seq, kind, encode_event(record.event)))


class Project:
    """A project without a world: the test says what the world would."""

    def __init__(self) -> None:
        self.state = State()
        self.log: list[Recorded] = []
        self.now = 100.0
        self._letters = 0

    def branch(self) -> Self:
        """A second life of the same project. What a state holds is immutable, so its containers are all to copy."""
        other = self.__class__.__new__(self.__class__)
        state = self.state
        other.state = State(
            state.seq,
            state.clock,
            dict(state.agents),
            dict(state.tasks),
            state.staff,
            state.ledger,
            dict(state.recent),
            state.runtime,
            state.stopped_cleanly,
        )
        other.log, other.now, other._letters = list(self.log), self.now, self._letters
        return other

    def do(self, command: Command, *, order: str = "") -> tuple[Event, ...]:
        self.now += 1
        events = decide(self.state, command, self.now)
        for event in events:
            self.apply(Recorded(self.state.seq + 1, self.now, order, event))
        check(self.state)
        return events

    def apply(self, record: Recorded) -> None:
        evolve(self.state, record)
        self.log.append(record)

    def agent(self, name: str = WORKER) -> Agent:
        return self.state.agents[name]

    def all(self, kind: type[Event]) -> Iterator[Event]:
        return (record.event for record in self.log if isinstance(record.event, kind))

    # --- what people ask for ---

    def spawn(self, role: str = "worker", name: str = "", *, hold: bool = False, parent: str = "") -> str:
        self.do(SpawnAgent(role, "scripted", name=name, hold=hold, parent=parent))
        return next(reversed(self.state.agents))

    def ready(self, role: str = "worker", name: str = "") -> str:
        """A new agent whose session has started."""
        name = self.spawn(role, name)
        self.started(name)
        return name

    def send(self, text: str = "hello", name: str = WORKER, sender: Sender = Sender.USER) -> str:
        self._letters += 1
        letter = f"m{self._letters}"
        self.do(SendMessage(name, letter, sender, str(sender), text))
        return letter

    # --- what the world reports, of the present session and turn ---

    def epoch(self, name: str = WORKER) -> int:
        session = self.agent(name).session
        return session.epoch if session else 0

    def turn(self, name: str = WORKER) -> int:
        turn = self.agent(name).turn
        return turn.number if turn else 0

    def started(self, name: str = WORKER, ref: str = "") -> tuple[Event, ...]:
        return self.do(ReportSessionStarted(name, self.epoch(name), ref or f"ref-{self.epoch(name)}"))

    def ended(self, name: str = WORKER, detail: str = "it is gone", code: int | None = 0) -> tuple[Event, ...]:
        return self.do(ReportSessionEnded(name, self.epoch(name), detail, code))

    def could_not_start(self, name: str = WORKER) -> tuple[Event, ...]:
        return self.do(ReportSessionFailed(name, self.epoch(name), "no such program"))

    def answered(self, name: str = WORKER, outcome: Outcome = Outcome.COMPLETED) -> tuple[Event, ...]:
        return self.do(ReportTurnEnded(name, self.epoch(name), self.turn(name), outcome, "end_turn"))

    def limited(
        self, name: str = WORKER, failure: Failure = Failure.RATE_LIMITED, retry_after: float | None = None
    ) -> tuple[Event, ...]:
        """The model's service would not serve the turn."""
        place = (name, self.epoch(name), self.turn(name))
        return self.do(ReportTurnEnded(*place, Outcome.FAILED, "error", "slow down", failure, retry_after))

    def rested(self, name: str = WORKER) -> tuple[Event, ...]:
        return self.do(ReportRested(name, self.epoch(name)))

    def kept(self, name: str = WORKER, size: int = 7) -> tuple[Event, ...]:
        return self.do(ReportWorkKept(name, self.epoch(name), f"commit-{self.epoch(name)}", "", size))

    def asks(self, question: str = "q1", name: str = WORKER, arguments: str = '{"command":"ls"}') -> tuple[Event, ...]:
        return self.do(ReportQuestion(name, self.epoch(name), self.turn(name), question, "bash", arguments))

    def says(self, question: str = "q1", *, allow: bool = True, name: str = WORKER) -> tuple[Event, ...]:
        """A person answers."""
        return self.do(AnswerQuestion(name, question, allow, "user", "so be it"))

    def given(self, question: str = "q1", name: str = WORKER) -> tuple[Event, ...]:
        return self.do(ReportAnswerGiven(name, self.epoch(name), question, self.question(question, name).asking))

    def question(self, question: str = "q1", name: str = WORKER) -> Question:
        found = find_question(self.agent(name), question)
        assert found is not None, f"{name} has no question {question}"
        return found

    def used(self, usage: Usage, call: int, name: str = WORKER) -> tuple[Event, ...]:
        return self.do(ReportUsage(name, self.epoch(name), self.turn(name), call, usage))
