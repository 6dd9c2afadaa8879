"""Drives budgets: agents that are given some, calls that are reserved and settled, and the watches over them."""

from domain.drive import Project
from remuda.domain.accounts import remaining
from remuda.domain.budget_commands import ReserveBudget, SettleBudget
from remuda.domain.commands import Command, ReportSessionStarted, SpawnAgent
from remuda.domain.errors import Refused
from remuda.domain.events import BudgetReserved, Event
from remuda.domain.ledger import PROJECT, Account, Limits
from remuda.domain.state import Usage
from remuda.watch.budget import budget, trigger

DOLLAR = 10**9


class Books(Project):
    """A project with its watches over budgets."""

    def do(self, command: Command, *, order: str = "") -> tuple[Event, ...]:
        events = super().do(command, order=order)
        more: list[Event] = []
        for event in events:
            for watch in (budget, trigger):
                for reaction in watch(self.state, event):
                    try:
                        more += self.do(reaction)
                    except Refused:
                        continue
        return (*events, *more)

    def spawn_with(
        self, tokens: int | None = None, *, name: str = "", parent: str = "", metered: bool = True, **more: int
    ) -> str:
        limits = Limits(tokens=tokens, **more)
        self.do(SpawnAgent("crew", "scripted", name=name, parent=parent, budget=limits))
        made = next(reversed(self.state.agents))
        self.do(ReportSessionStarted(made, self.epoch(made), "ref", metered))
        return made

    def account(self, name: str) -> Account:
        return self.state.ledger.accounts[name if name == PROJECT or ":" in name else f"agent:{name}"]

    def left(self, name: str) -> int:
        return remaining(self.state, self.account(name), 0)

    def reserve(self, name: str, call: int, into: int, out: int, **more: int) -> tuple[Event, ...]:
        return self.do(ReserveBudget(name, self.epoch(name), call, into, out, **more))

    def granted(self, name: str, call: int, into: int, out: int, **more: int) -> int:
        events = [event for event in self.reserve(name, call, into, out, **more) if isinstance(event, BudgetReserved)]
        assert len(events) == 1
        return events[0].output_tokens

    def settle(self, name: str, call: int, usage: Usage | None, epoch: int = 0) -> tuple[Event, ...]:
        return self.do(SettleBudget(name, epoch or self.epoch(name), call, usage))
