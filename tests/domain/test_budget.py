"""Budgets: a tree, reserved before it is spent and settled after; whatever is told, never more than there is."""

import pytest

from domain.books import DOLLAR, Books
from remuda.domain.accounts import NANOUSD, TIME, TOKENS, TURNS, in_words
from remuda.domain.budget import LARGEST
from remuda.domain.budget_commands import GrantBudget, ReserveBudget, SetBudget
from remuda.domain.commands import ReportUsage, RetireAgent, SpawnAgent, StartRuntime
from remuda.domain.errors import Conflict, Invalid, Refused
from remuda.domain.events import BudgetReserved, BudgetSet, ReportIgnored, TriggerFired, UsageRecorded
from remuda.domain.ledger import ASSUMED_NANOUSD, PROJECT, Limits, Spend
from remuda.domain.lifecycle import Status
from remuda.domain.state import Usage
from remuda.domain.task import Brief, Kind, NewTask
from remuda.domain.task_commands import AddTasks, AssignTask
from remuda.domain.trigger import Trigger


@pytest.fixture
def books() -> Books:
    return Books()


# --- the tree ---


def test_what_an_agent_is_given_is_taken_from_what_its_parent_has_left(books: Books) -> None:
    boss = books.spawn_with(10_000)
    child = books.spawn_with(4_000, parent=boss)
    grandchild = books.spawn_with(1_000, parent=child)
    assert [books.left(each) for each in (boss, child, grandchild)] == [6_000, 3_000, 1_000]
    assert isinstance(books.log[1].event, BudgetSet)


def test_what_a_child_spends_is_spent_of_what_its_parent_gave_it_and_of_nothing_else(books: Books) -> None:
    boss = books.spawn_with(10_000)
    child = books.spawn_with(4_000, parent=boss)
    books.granted(child, 1, 1_000, 500)
    books.settle(child, 1, Usage(1_000, 200, cost_nanousd=0))
    assert books.left(child) == 2_800
    assert books.left(boss) == 6_000
    assert books.account(boss).spent.tokens == 1_200


def test_more_than_the_parent_has_left_cannot_be_given(books: Books) -> None:
    boss = books.spawn_with(10_000)
    books.spawn_with(7_000, parent=boss)
    with pytest.raises(Refused, match=r"crew-1 has 3,000 tokens left to give, not 4,000 tokens; grant it more"):
        books.do(SpawnAgent("crew", "scripted", parent=boss, budget=Limits(tokens=4_000)))
    books.do(GrantBudget(f"agent:{boss}", Limits(tokens=1_000)))
    books.spawn_with(4_000, parent=boss)
    assert books.left(boss) == 0


def test_what_a_dead_agent_left_is_its_parents_again(books: Books) -> None:
    boss = books.spawn_with(10_000)
    child = books.spawn_with(4_000, parent=boss)
    books.granted(child, 1, 1_000, 500)
    books.settle(child, 1, Usage(1_000, cost_nanousd=0))
    books.do(RetireAgent(child))
    assert books.left(boss) == 9_000


def test_a_budget_stands_as_long_as_anyone_below_it_lives(books: Books) -> None:
    boss = books.spawn_with(10_000)
    child = books.spawn_with(4_000, parent=boss)
    rich = books.spawn_with(1_000, parent=child)
    poor = books.spawn_with(parent=child)
    books.do(RetireAgent(child))
    assert (books.left(boss), books.left(child), books.left(rich)) == (6_000, 3_000, 1_000)
    assert books.granted(poor, 1, 2_000, 5_000) == 1_000
    books.settle(poor, 1, Usage(500, cost_nanousd=0))
    books.do(RetireAgent(poor))
    assert books.left(boss) == 6_000
    books.do(RetireAgent(rich))
    assert books.left(boss) == 9_500


def test_an_orphan_is_not_freed_of_the_budget_that_it_was_born_under(books: Books) -> None:
    boss = books.spawn_with(1_000)
    child = books.spawn_with(parent=boss)
    books.do(RetireAgent(boss))
    assert books.granted(child, 1, 500, 9_000) == 500


def test_one_without_a_budget_draws_on_the_nearest_above_that_has_one(books: Books) -> None:
    boss = books.spawn_with(10_000)
    child = books.spawn_with(parent=boss)
    assert books.granted(child, 1, 1_000, 20_000) == 9_000
    assert books.left(boss) == 0


def test_a_measure_is_limited_by_whoever_limits_it(books: Books) -> None:
    boss = books.spawn_with(nanousd=DOLLAR)
    child = books.spawn_with(4_000, parent=boss)
    assert books.granted(child, 1, 1_000, 5_000, input_nanousd=DOLLAR // 2, output_nanousd=10**6) == 500


def test_the_project_is_the_root_of_the_tree(books: Books) -> None:
    books.do(SetBudget(PROJECT, Limits(tokens=5_000)))
    ada, bob = books.spawn_with(3_000), books.spawn_with()
    assert books.left(PROJECT) == 2_000
    assert books.granted(bob, 1, 500, 9_000) == 1_500
    assert books.granted(ada, 1, 500, 9_000) == 2_500


def test_an_agent_can_be_limited_apart_from_what_it_spawns(books: Books) -> None:
    boss = books.spawn_with(10_000)
    books.do(SetBudget(f"own:{boss}", Limits(tokens=1_000)))
    child = books.spawn_with(parent=boss)
    assert books.granted(boss, 1, 600, 5_000) == 400
    assert books.granted(child, 1, 600, 5_000) == 5_000


def test_a_task_is_limited_with_all_its_parts_whoever_works_on_them(books: Books) -> None:
    books.do(AddTasks((NewTask(Brief("All"), Kind.EPIC, id="all"), NewTask(Brief("Part", epic="all"), id="part"))))
    books.do(SetBudget("task:all", Limits(tokens=1_000)))
    worker = books.ready()
    books.do(AssignTask("part", worker))
    assert books.granted(worker, 1, 600, 5_000) == 400
    books.settle(worker, 1, Usage(600, 100, cost_nanousd=0))
    assert books.account("task:all").spent.tokens == 700


def test_a_budget_that_comes_late_knows_what_was_spent_and_what_is_under_way(books: Books) -> None:
    ada = books.spawn_with()
    books.send(name=ada)
    books.reserve(ada, 1, 100, 100)
    books.settle(ada, 1, Usage(700, 50, cost_nanousd=None))
    books.answered(ada)
    books.do(SetBudget(PROJECT, Limits(tokens=10_000)))
    books.granted(ada, 2, 1_000, 1_000)
    books.do(SetBudget(f"agent:{ada}", Limits(tokens=5_000, nanousd=9 * DOLLAR)))
    account = books.account(ada)
    assert account.spent == Spend(750, 750 * ASSUMED_NANOUSD, 1, 3_000)
    assert account.reserved.tokens == 2_000
    books.settle(ada, 2, Usage(10, 10, cost_nanousd=0))
    assert (books.account(ada).reserved, books.account(ada).spent.tokens) == (Spend(), 770)


def test_a_budget_for_a_task_that_comes_late_bears_the_calls_of_those_who_work_on_it(books: Books) -> None:
    books.do(AddTasks((NewTask(Brief("All"), id="all"),)))
    ada, bob = books.ready(), books.ready()
    books.do(SetBudget(PROJECT, Limits(tokens=10_000)))
    books.do(AssignTask("all", ada))
    books.granted(ada, 1, 100, 100)
    books.granted(bob, 1, 1_000, 1_000)
    books.do(SetBudget("task:all", Limits(tokens=1_000)))
    assert (books.account("task:all").reserved.tokens, books.account("task:all").spent.tokens) == (200, 0)


# --- calls ---


def test_a_call_gets_all_that_it_wants_or_what_is_left_or_nothing(books: Books) -> None:
    ada = books.spawn_with(1_000)
    assert books.granted(ada, 1, 300, 200) == 200
    books.settle(ada, 1, Usage(300, 200, cost_nanousd=0))
    assert books.granted(ada, 2, 300, 900) == 200
    books.settle(ada, 2, Usage(300, 100, cost_nanousd=0))
    events = books.reserve(ada, 3, 300, 10)
    assert not any(isinstance(event, BudgetReserved) for event in events)
    fired = next(event for event in events if isinstance(event, TriggerFired))
    assert fired.trigger is Trigger.BUDGET
    assert fired.evidence == (
        "the budget of crew-1 is spent: 900 tokens of 1,000 tokens; "
        "the next call may take 301 tokens before it has said a word"
    )
    assert dict(fired.numbers) == {
        "tokens_limit": 1_000,
        "tokens_spent": 900,
        "tokens_delegated": 0,
        "tokens_asked": 301,
    }


def test_a_call_that_only_others_stand_in_the_way_of_waits_for_them(books: Books) -> None:
    boss = books.spawn_with(1_000)
    ada, bob = books.spawn_with(parent=boss), books.spawn_with(parent=boss)
    books.granted(ada, 1, 300, 500)
    with pytest.raises(Conflict, match="other calls hold what is left of agent:crew-1"):
        books.reserve(bob, 1, 300, 500)
    books.settle(ada, 1, Usage(100, 50, cost_nanousd=0))
    assert books.granted(bob, 1, 300, 500) == 500


def test_a_call_is_said_to_be_refused_once_in_a_turn(books: Books) -> None:
    ada = books.spawn_with(100)
    books.send(name=ada)
    books.reserve(ada, 1, 300, 10)
    with pytest.raises(Refused, match="the budget of crew-1 is spent"):
        books.reserve(ada, 2, 300, 10)
    assert sum(isinstance(record.event, TriggerFired) for record in books.log) == 1


def test_a_call_is_reserved_once(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 100, 100)
    with pytest.raises(Refused, match="call 1 of crew-1 is under way already"):
        books.reserve(ada, 1, 100, 100)


def test_no_call_is_made_when_the_time_is_up(books: Books) -> None:
    ada = books.spawn_with(10_000, milliseconds=5_000)
    books.send(name=ada)
    assert books.granted(ada, 1, 100, 100) == 100
    books.now += 10
    assert not any(isinstance(event, BudgetReserved) for event in books.reserve(ada, 2, 100, 100))


def test_a_call_is_settled_once_and_only_if_it_was_reserved(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200)
    books.settle(ada, 1, Usage(10, 5, cost_nanousd=0))
    for call in (1, 7):
        assert isinstance(books.settle(ada, call, Usage(10, 5, cost_nanousd=0))[0], ReportIgnored)
    assert books.account(ada).spent.tokens == 15
    assert books.agent(ada).metrics.input_tokens == 10


def test_a_call_of_which_nobody_knows_counts_as_all_that_was_reserved(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200, input_nanousd=30, output_nanousd=2)
    books.settle(ada, 1, None)
    assert books.account(ada).spent == Spend(500, 430)


@pytest.mark.parametrize("lie", [Usage(-1, 5), Usage(10**12), Usage(1, cost_nanousd=-1)])
def test_a_settlement_that_lies_counts_as_all_that_was_reserved(books: Books, lie: Usage) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200)
    books.settle(ada, 1, lie)
    assert books.account(ada).spent.tokens == 500


def test_more_than_was_reserved_is_counted_where_it_was_spent_all_the_same(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200)
    books.settle(ada, 1, Usage(900, 200, cost_nanousd=0))
    assert books.left(ada) == -100


def test_calls_of_a_session_that_is_over_are_refused_but_settled(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200)
    books.ended(ada)
    books.send(name=ada)
    with pytest.raises(Refused, match="session 1 of crew-1 is over"):
        books.do(ReserveBudget(ada, 1, 2, 1, 1))
    books.settle(ada, 1, Usage(10, 5, cost_nanousd=0), epoch=1)
    assert books.account(ada).spent.tokens == 15


def test_a_call_that_was_under_way_when_the_runtime_died_counts_as_all_that_was_reserved(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.granted(ada, 1, 300, 200)
    events = books.do(StartRuntime("second"))
    settled = [event for event in events if isinstance(event, UsageRecorded)]
    assert settled == [UsageRecorded(ada, 1, 0, 1, Usage(300, 200), metered=True)]
    assert (books.account(ada).spent.tokens, books.state.ledger.open) == (500, {})


def test_where_nothing_is_limited_nothing_is_held_back(books: Books) -> None:
    ada = books.spawn_with()
    assert books.granted(ada, 1, 10**9, 10**9) == 0
    books.settle(ada, 1, None)
    assert books.agent(ada).metrics.input_tokens == 0


# --- money ---


def test_an_unknown_price_is_assumed_to_be_high_and_said_to_be_assumed(books: Books) -> None:
    ada = books.spawn_with(nanousd=DOLLAR)
    most = DOLLAR // ASSUMED_NANOUSD
    assert books.granted(ada, 1, 1_000, 10**6) == most - 1_000
    books.settle(ada, 1, Usage(1_000, 200, cost_nanousd=None))
    assert books.account(ada).spent.nanousd == books.account(ada).assumed_nanousd == 1_200 * ASSUMED_NANOUSD
    events = books.reserve(ada, 2, most, 1)
    fired = next(event for event in events if isinstance(event, TriggerFired))
    assert "at a price that is assumed, because it is unknown" in fired.evidence


def test_a_price_that_is_known_to_be_nothing_costs_nothing(books: Books) -> None:
    ada = books.spawn_with(nanousd=0)
    assert books.granted(ada, 1, 1_000, 500, input_nanousd=0, output_nanousd=0) == 500


def test_sums_of_money_are_exact(books: Books) -> None:
    ada = books.spawn_with(nanousd=DOLLAR)
    for call in range(1, 11):
        books.granted(ada, call, 1, 1, input_nanousd=1, output_nanousd=1)
        books.settle(ada, call, Usage(1, 1, cost_nanousd=100_000_001))
    assert books.account(ada).spent.nanousd == 1_000_000_010


# --- limits that cannot be ---


@pytest.mark.parametrize("limit", [-1, LARGEST + 1, 10**40])
def test_budgets_that_cannot_be_are_invalid(books: Books, limit: int) -> None:
    ada = books.spawn_with()
    for ask in (SetBudget, GrantBudget):
        with pytest.raises(Invalid, match="cannot be"):
            books.do(ask(f"agent:{ada}", Limits(tokens=limit)))
    with pytest.raises(Invalid, match="cannot be"):
        books.do(SpawnAgent("crew", "scripted", budget=Limits(turns=limit)))


def test_a_budget_of_nothing_lets_nothing_through(books: Books) -> None:
    ada = books.spawn_with(0)
    books.send(name=ada)
    assert books.agent(ada).status is Status.PAUSED
    assert books.agent(ada).turn is None


@pytest.mark.parametrize("scope", ["", "agent", "agent:", "agent:nobody", "task:none", "role:worker", "own:nobody"])
def test_what_does_not_exist_has_no_budget(books: Books, scope: str) -> None:
    with pytest.raises((Invalid, Refused)):
        books.do(SetBudget(scope, Limits(tokens=1)))


def test_a_grant_raises_only_what_is_limited(books: Books) -> None:
    ada = books.spawn_with(1_000)
    with pytest.raises(Refused, match="has no limit of turns to be raised"):
        books.do(GrantBudget(f"agent:{ada}", Limits(turns=3)))
    books.do(GrantBudget(f"agent:{ada}", Limits(tokens=500)))
    assert books.account(ada).limits == Limits(tokens=1_500)


def test_the_dead_get_nothing(books: Books) -> None:
    ada = books.spawn_with(1_000)
    books.do(RetireAgent(ada))
    with pytest.raises(Refused, match="is dead, and spends nothing any more"):
        books.do(SetBudget(f"agent:{ada}", Limits(tokens=1)))


def test_a_budget_that_is_lowered_below_what_is_spent_stops_its_agent_and_all_below_it(books: Books) -> None:
    boss = books.spawn_with(10_000, metered=False)
    child = books.spawn_with(4_000, parent=boss)
    books.send(name=boss)
    books.do(ReportUsage(boss, 1, books.turn(boss), 1, Usage(3_000, cost_nanousd=0)))
    books.do(SetBudget(f"agent:{boss}", Limits(tokens=2_000)))
    assert books.agent(boss).status is Status.PAUSED
    assert books.left(boss) == -5_000
    assert not any(isinstance(event, BudgetReserved) for event in books.reserve(child, 1, 10, 10))


@pytest.mark.parametrize(
    ("measure", "amount", "words"),
    [
        (TOKENS, 1, "1 token"),
        (TOKENS, 1_500, "1,500 tokens"),
        (NANOUSD, 2_500_000_000, "$2.5000"),
        (TURNS, 1, "1 turn"),
        (TIME, 99, "0 s"),
        (TIME, 400, "0.4 s"),
        (TIME, 2_000, "2 s"),
        (TIME, 62_900, "1 min 2 s"),
        (TIME, 7_500_000, "2 h 5 min"),
    ],
)
def test_amounts_are_said_as_people_say_them(measure: int, amount: int, words: str) -> None:
    assert in_words(measure, amount) == words
