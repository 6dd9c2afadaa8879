"""Whatever is set, reserved, settled and spawned in whatever order: no budget is overspent, and no sum is lost."""

from typing import ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from domain.books import Books
from domain.drive import replay
from remuda.domain.accounts import TOKENS, covers, delegated
from remuda.domain.budget_commands import GrantBudget, ReserveBudget, SetBudget, SettleBudget
from remuda.domain.commands import Command, ReportSessionStarted, RetireAgent, SpawnAgent, StartRuntime
from remuda.domain.errors import RemudaError
from remuda.domain.events import BudgetReserved, Event, TriggerFired, UsageRecorded
from remuda.domain.ledger import PROJECT, Limits, Spend, plus
from remuda.domain.state import Usage

NAMES = ("ada", "bob", "cid", "dan")
names = st.sampled_from(("ada", "bob", "ada", "bob", *NAMES))
seldom = st.sampled_from([False, False, False, False, True])
amounts = st.sampled_from([0, 1, 10, 100, 500, 1_000])
scopes = st.sampled_from([PROJECT, *(f"agent:{name}" for name in NAMES), "own:ada"])


class Treasury(RuleBasedStateMachine):
    seen: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.calls = 0
        self.lowered = False  # then more may be given away than there is

    def do(self, command: Command) -> tuple[Event, ...]:
        try:
            events = self.books.do(command)
        except RemudaError as error:
            self.seen.add(type(error).__name__)
            return ()
        self.seen.update(type(event).__name__ for event in events)
        return events

    @initialize(tokens=st.sampled_from([100, 1_000]))
    def begin(self, tokens: int) -> None:
        """One that has some, and one that draws on it."""
        self.spawn("ada", "", tokens)
        self.spawn("bob", "ada", None)

    @rule(name=names, parent=st.sampled_from(["", *NAMES]), tokens=st.sampled_from([None, 100, 1_000, 5_000]))
    def spawn(self, name: str, parent: str, tokens: int | None) -> None:
        if self.do(SpawnAgent("crew", "scripted", name=name, parent=parent, budget=Limits(tokens=tokens))):
            self.do(ReportSessionStarted(name, 1, "ref", metered=True))

    @rule(scope=scopes, tokens=amounts)
    def limit(self, scope: str, tokens: int) -> None:
        account = self.books.state.ledger.accounts.get(scope)
        lower = account is None or account.limits.tokens is None or account.limits.tokens > tokens
        if self.do(SetBudget(scope, Limits(tokens=tokens))) and lower:
            self.lowered = True

    @rule(scope=scopes, tokens=amounts)
    def grant(self, scope: str, tokens: int) -> None:
        self.do(GrantBudget(scope, Limits(tokens=tokens)))

    @rule(calls=st.lists(st.tuples(names, amounts, st.sampled_from([1, 50, 1_000])), min_size=1, max_size=4))
    def reserve(self, calls: list[tuple[str, int, int]]) -> None:
        for name, into, out in calls:
            self.calls += 1
            epoch = self.books.epoch(name) if name in self.books.state.agents else 1
            self.do(ReserveBudget(name, epoch, self.calls, into, out))

    @rule(data=st.data(), part=st.sampled_from([0, 1, 2]), known=st.booleans())
    def settle(self, data: st.DataObject, part: int, known: bool) -> None:
        """An honest service: it never takes more than was reserved."""
        held = self.books.state.ledger.open
        if not held:
            return
        key = data.draw(st.sampled_from(sorted(held)))
        name, epoch, call = key.split("/")
        usage = Usage(held[key].input_tokens * part // 2, held[key].output_tokens * part // 2, cost_nanousd=0)
        self.do(SettleBudget(name, int(epoch), int(call), usage if known else None))

    @rule(name=names, really=seldom)
    def retire(self, name: str, really: bool) -> None:
        if really:
            self.do(RetireAgent(name))

    @rule(really=seldom)
    def die(self, really: bool) -> None:
        if not really:
            return
        self.do(StartRuntime("next"))
        for name in self.books.state.agents:
            self.do(ReportSessionStarted(name, self.books.epoch(name), "ref", metered=True))

    @invariant()
    def nothing_is_spent_past_a_limit_that_was_not_lowered(self) -> None:
        state = self.books.state
        for account in state.ledger.accounts.values():
            limit = account.limits.tokens
            assert min(*account.spent, *account.reserved) >= 0
            if limit is not None and not self.lowered:
                given = 0 if account.scope.startswith("own:") else delegated(state, account.scope, TOKENS)
                assert account.spent.tokens + account.reserved.tokens + given <= limit, account

    @invariant()
    def what_is_reserved_is_what_is_under_way(self) -> None:
        ledger = self.books.state.ledger
        for account in ledger.accounts.values():
            mine = [made.spend for made in ledger.open.values() if account.scope in made.scopes]
            assert account.reserved == sum_of(mine)

    @invariant()
    def every_account_has_what_was_spent_below_it(self) -> None:
        state = self.books.state
        for account in state.ledger.accounts.values():
            below = [agent for agent in state.agents.values() if covers(state, account.scope, agent)]
            metrics = [agent.metrics for agent in below]
            assert account.spent.tokens == sum(each.input_tokens + each.output_tokens for each in metrics)

    def teardown(self) -> None:
        assert replay(self.books.log).ledger == self.books.state.ledger


def sum_of(spends: list[Spend]) -> Spend:
    total = Spend()
    for each in spends:
        total = plus(total, each)
    return total


@pytest.mark.long
@pytest.mark.no_cover
def test_whatever_is_asked_in_whatever_order_no_budget_is_overspent() -> None:
    Treasury.seen.clear()
    checks = settings(max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Treasury, settings=checks)
    expected = {BudgetReserved.__name__, UsageRecorded.__name__, TriggerFired.__name__, "Conflict", "Refused"}
    assert expected <= Treasury.seen
