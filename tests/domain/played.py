"""What the machine of everything remembers: the log, how much of it is durable, what was begun, what reached whom."""

from collections import Counter, deque
from collections.abc import Callable
from typing import TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from domain.drive import Project
from remuda.domain.commands import Command, Report, ReportSessionEnded
from remuda.domain.due import due
from remuda.domain.effects import AgentEffect, Key, key
from remuda.domain.errors import RemudaError
from remuda.domain.state import Agent, State

T = TypeVar("T")


class Played(RuleBasedStateMachine):
    """A runtime, its disk and the world it acts on, as far as they remember anything."""

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

    def do(self, *commands: Command) -> None:
        """In one transaction; what follows from a command that was refused is not asked for."""
        try:
            for command in commands:
                self.project.do(command)
        except RemudaError:
            pass
        if self.boundaries and self.boundaries[-1] == len(self.project.log):
            return
        self.boundaries.append(len(self.project.log))

    def heir(self, name: str) -> str:
        """Whoever has its place now."""
        places = {agent.after: agent.name for agent in self.project.state.agents.values() if agent.after}
        while name in places:
            name = places[name]
        return name

    def about(self, name: str, pick: Callable[[Agent], T], default: T) -> T:
        agent = self.project.state.agents.get(name)
        return pick(agent) if agent else default

    def epoch(self, name: str) -> int:
        return self.about(name, lambda agent: agent.session.epoch if agent.session else 0, 0)

    def turn(self, name: str) -> int:
        return self.about(name, lambda agent: agent.turn.number if agent.turn else 0, 0)

    def ready(self, name: str) -> list[AgentEffect]:
        ahead = self.owed(self.project.state, name)
        begun = [each for each in self.owed(self.disk, name) if each in ahead and key(each) not in self.begun]
        return [each for each in begun if self.project.now >= getattr(each, "until", 0.0)]

    def owed(self, state: State, name: str) -> tuple[AgentEffect, ...]:
        return due(state.agents[name]) if name in state.agents else ()

    def gone(self, name: str) -> Report:
        return ReportSessionEnded(name, self.epoch(name), "gone", -9)
