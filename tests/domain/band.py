"""A crew with its coordinator: watches react in the same breath, as they do in the loop."""

from collections import deque
from collections.abc import Callable, Iterable

from domain.crew import Crew
from domain.invariants import check
from remuda.domain.commands import Command
from remuda.domain.decide import decide
from remuda.domain.errors import RemudaError
from remuda.domain.events import Event, Recorded
from remuda.domain.state import State
from remuda.domain.task_commands import ReportImplementationComplete, ReportReviewVerdict
from remuda.watch.briefing import briefing
from remuda.watch.coordinator import Rules, coordinator

Watch = Callable[[State, Event], Iterable[Command]]


class Band(Crew):
    def __init__(self, workers: int = 2, rules: Rules | None = None) -> None:
        self.watches: tuple[Watch, ...] = (briefing, coordinator(rules or Rules(backend="scripted")))
        super().__init__(workers)

    def do(self, command: Command, *, order: str = "") -> tuple[Event, ...]:
        self.now += 1
        events = decide(self.state, command, self.now)
        self._keep(events, order)
        unseen = deque(events)
        while unseen:
            event = unseen.popleft()
            for watch in self.watches:
                for reaction in list(watch(self.state, event)):
                    unseen.extend(self._react(reaction, order))
        return events

    def _react(self, reaction: Command, order: str) -> tuple[Event, ...]:
        try:
            follows = decide(self.state, reaction, self.now)
        except RemudaError as error:
            raise AssertionError(f"the coordinator asks for what is refused: {reaction}: {error}") from error
        self._keep(follows, order)
        return follows

    def _keep(self, events: Iterable[Event], order: str) -> None:
        for event in events:
            self.apply(Recorded(self.state.seq + 1, self.now, order, event))
        check(self.state)

    # --- agents that do as they are told, and a world that does as it should ---

    def play(self, *, most: int = 500, approve: Callable[[str], bool] = lambda _: True) -> None:
        """Until nothing happens any more."""
        for _ in range(most):
            if not self._step(approve):
                return
        raise AssertionError(f"it never ends: {self.state.tasks}")

    def _step(self, approve: Callable[[str], bool]) -> bool:
        for task in list(self.state.tasks):
            if report := self.answer_to(task):
                self.do(report)
                return True
        return self.work(approve)

    def work(self, approve: Callable[[str], bool]) -> bool:
        """One of the agents does the next thing that it has to do; whether any had."""
        for name, agent in list(self.state.agents.items()):
            before = self.state.seq
            self.settle(name)
            if self.state.seq > before:
                return True
            if agent.turn is not None:
                self._work(name, approve)
                return True
        return False

    def _work(self, name: str, approve: Callable[[str], bool]) -> None:
        agent = self.agent(name)
        if agent.phase in ("implementing", "addressing_feedback"):
            self.do(ReportImplementationComplete(name, self.epoch(name), "done"))
        elif agent.phase == "reviewing":
            self.do(ReportReviewVerdict(name, self.epoch(name), approve(agent.task), "see line 3"))
        self.answered(name)
