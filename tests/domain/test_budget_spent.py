"""When a budget runs out: marks are told, agents paused, parents told, and work is taken up again."""

import pytest

from domain.books import DOLLAR, Books
from domain.drive import replay
from remuda.domain.budget import PATIENCE
from remuda.domain.budget_commands import CheckBudget, GrantBudget
from remuda.domain.commands import ReportTurnEnded, ReportUsage, ResumeAgent, SpawnAgent
from remuda.domain.errors import Refused
from remuda.domain.events import BudgetWarned, TurnEnded
from remuda.domain.failure import Failure
from remuda.domain.ledger import UNLIMITED, Limits
from remuda.domain.lifecycle import Status
from remuda.domain.state import Outcome, Usage
from remuda.domain.task_commands import ReplaceWorker
from remuda.domain.trigger import Course, Trigger
from remuda.domain.trigger_commands import FireTrigger, GiveVerdict, SeekVerdict


@pytest.fixture
def books() -> Books:
    return Books()


# --- warnings ---


def test_each_mark_is_told_once_with_who_passed_it(books: Books) -> None:
    boss = books.spawn_with(1_000)
    ada = books.spawn_with(parent=boss)
    for call in range(1, 11):
        books.granted(ada, call, 50, 50)
        books.settle(ada, call, Usage(50, 50, cost_nanousd=0))
    warned = [record.event for record in books.log if isinstance(record.event, BudgetWarned)]
    assert [(each.agent, each.scope, each.percent) for each in warned] == [
        (ada, "agent:crew-1", 50),
        (ada, "agent:crew-1", 80),
        (ada, "agent:crew-1", 95),
    ]
    assert (warned[0].spent, warned[0].limit) == ("500 tokens", "1,000 tokens")


def test_after_a_grant_the_marks_are_told_anew(books: Books) -> None:
    ada = books.spawn_with(100)
    for call, tokens in ((1, 60), (2, 30)):
        books.granted(ada, call, tokens, 1)
        books.settle(ada, call, Usage(tokens, cost_nanousd=0))
        books.do(GrantBudget(f"agent:{ada}", Limits(tokens=60)))
    assert [r.event.percent for r in books.log if isinstance(r.event, BudgetWarned)] == [50, 50]


# --- what follows ---


def test_a_refused_call_ends_the_turn_in_the_programs_own_way_and_then_the_agent_waits_for_a_grant(
    books: Books,
) -> None:
    boss = books.spawn_with()
    ada = books.spawn_with(100, parent=boss)
    letter = books.send(name=ada)
    books.reserve(ada, 1, 300, 10)
    assert books.agent(ada).status is Status.WORKING
    books.do(ReportTurnEnded(ada, 1, books.turn(ada), Outcome.FAILED, "error", "API Error: 400"))
    agent = books.agent(ada)
    assert (agent.status, agent.queue[0].id) == (Status.PAUSED, letter)
    ended = next(record.event for record in reversed(books.log) if isinstance(record.event, TurnEnded))
    assert (ended.outcome, ended.failure) == (Outcome.LIMITED, Failure.BUDGET_SPENT)
    told = books.agent(boss).turn
    assert told is not None
    assert told.message.text == (
        "crew-2 was stopped (budget): the budget of crew-2 is spent: 0 tokens of 100 tokens; the next call may take "
        "301 tokens before it has said a word. Give it more with `remuda budget grant crew-2`, or end it with "
        "`remuda retire crew-2`."
    )
    books.do(GrantBudget(f"agent:{ada}", Limits(tokens=1_000)))
    assert books.agent(ada).trigger is None
    assert books.agent(ada).status in (Status.READY, Status.STARTING)
    books.ended(ada)
    books.started(ada)
    assert books.agent(ada).status is Status.WORKING


def test_a_program_that_goes_on_after_its_calls_were_refused_is_cut_off(books: Books) -> None:
    ada = books.spawn_with(100)
    books.send(name=ada)
    books.reserve(ada, 1, 300, 10)
    books.do(CheckBudget(ada))
    assert books.agent(ada).status is Status.WORKING
    books.now += PATIENCE
    books.do(CheckBudget(ada))
    assert books.agent(ada).status is Status.PAUSED


def test_one_that_is_only_told_of_is_cut_off_by_the_call_that_passes_the_limit(books: Books) -> None:
    ada = books.spawn_with(1_000, metered=False)
    letter = books.send(name=ada)
    turn = books.turn(ada)
    books.do(ReportUsage(ada, 1, turn, 1, Usage(600, cost_nanousd=0)))
    assert books.agent(ada).status is Status.WORKING
    books.do(ReportUsage(ada, 1, turn, 2, Usage(600, cost_nanousd=0)))
    assert books.agent(ada).status is Status.PAUSED
    assert books.agent(ada).queue[0].id == letter
    assert books.account(ada).spent.tokens == 1_200


def test_all_that_draw_on_one_account_are_cut_off_with_the_one_that_spent_the_last_of_it(books: Books) -> None:
    boss = books.spawn_with(1_000)
    ada, bob = (books.spawn_with(parent=boss, metered=False) for _ in range(2))
    for each in (ada, bob):
        books.send(name=each)
    books.do(ReportUsage(ada, 1, books.turn(ada), 1, Usage(1_000, cost_nanousd=0)))
    assert {books.agent(each).status for each in (ada, bob)} == {Status.PAUSED}


def test_a_metered_agents_own_reports_are_not_added_to_what_the_meter_counts(books: Books) -> None:
    ada = books.spawn_with(10_000)
    books.send(name=ada)
    books.granted(ada, 1, 300, 200)
    books.settle(ada, 1, Usage(300, 100, cost_nanousd=7))
    told = Usage(300, 100, context_tokens=400, context_window=200_000, cost_nanousd=9)
    books.do(ReportUsage(ada, 1, books.turn(ada), 1, told))
    metrics = books.agent(ada).metrics
    assert (metrics.input_tokens, metrics.cumulative_cost_nanousd, metrics.context_tokens) == (300, 7, 400)
    assert books.account(ada).spent.tokens == 400


def test_usage_that_repeats_or_goes_backwards_is_counted_once(books: Books) -> None:
    ada = books.spawn_with(10_000, metered=False)
    books.send(name=ada)
    for call in (1, 1, 3, 2):
        books.do(ReportUsage(ada, 1, books.turn(ada), call, Usage(100, cost_nanousd=0)))
    assert books.account(ada).spent.tokens == 200


def test_turns_are_counted_as_they_begin_and_no_more_begin_than_there_are(books: Books) -> None:
    ada = books.spawn_with(turns=2)
    for _ in range(3):
        books.send(name=ada)
    books.answered(ada)
    assert books.agent(ada).status is Status.WORKING
    books.answered(ada)
    assert books.agent(ada).status is Status.PAUSED
    with pytest.raises(
        Refused, match=r"crew-1 cannot go on: the budget of crew-1 is spent: 2 turns of 2 turns; `remuda"
    ):
        books.do(ResumeAgent(ada))
    books.do(GrantBudget(f"agent:{ada}", Limits(turns=1)))
    books.ended(ada)
    books.started(ada)
    assert books.agent(ada).status is Status.WORKING


def test_time_is_that_of_turns_and_ends_a_turn_that_runs(books: Books) -> None:
    ada = books.spawn_with(milliseconds=60_000)
    books.now += 3_600
    books.send(name=ada)
    books.now += 30
    books.do(CheckBudget(ada))
    assert books.agent(ada).status is Status.WORKING
    books.now += 30
    books.do(CheckBudget(ada))
    assert books.agent(ada).status is Status.PAUSED
    assert books.account(ada).spent.milliseconds >= 60_000
    assert "1 min 2 s of 1 min 0 s" in books.agent(ada).why


def test_a_long_turn_is_warned_of_while_it_runs_and_once_for_each_mark(books: Books) -> None:
    ada = books.spawn_with(milliseconds=100_000)
    books.send(name=ada)
    for _ in range(8):
        books.now += 10
        books.do(CheckBudget(ada))
    warned = [record.event for record in books.log if isinstance(record.event, BudgetWarned)]
    assert [(each.percent, each.spent, each.limit) for each in warned] == [
        (50, "55 s", "1 min 40 s"),
        (80, "1 min 28 s", "1 min 40 s"),
    ]


def test_a_log_with_budgets_is_read_back_as_it_was_lived(books: Books) -> None:
    boss = books.spawn_with(10_000, nanousd=DOLLAR, turns=9, milliseconds=10**6)
    ada = books.spawn_with(500, parent=boss)
    books.send(name=ada)
    books.granted(ada, 1, 100, 100)
    books.settle(ada, 1, Usage(90, 80))
    books.granted(ada, 2, 100, 100)
    books.answered(ada)
    assert replay(books.log).ledger == books.state.ledger


# --- who takes a place takes its budget ---


def restarted(books: Books, name: str, budget: Limits = UNLIMITED) -> str:
    books.do(FireTrigger(name, Trigger.SPIN, "round and round"))
    books.do(SeekVerdict(name, 60.0, Course.REAP))
    books.do(GiveVerdict(name, Course.RESTART, "user", budget=budget))
    return next(reversed(books.state.agents))


def test_a_successor_has_what_was_left_and_nobody_has_more_for_it(books: Books) -> None:
    boss = books.spawn_with(1_000)
    ada = books.spawn_with(600, parent=boss)
    books.granted(ada, 1, 50, 50)
    books.settle(ada, 1, Usage(50, 50, cost_nanousd=0))
    assert (books.left(ada), books.left(boss)) == (500, 400)
    heir = restarted(books, ada)
    assert (books.left(heir), books.left(boss)) == (500, 400)
    assert books.account(ada).limits.tokens == 100
    again = restarted(books, heir, budget=Limits(tokens=300))
    assert (books.left(again), books.left(boss)) == (300, 600)
    assert replay(books.log).ledger == books.state.ledger


def test_what_was_given_to_those_below_stays_theirs_and_one_without_a_budget_leaves_none(books: Books) -> None:
    ada = books.spawn_with(1_000)
    bob = books.spawn_with(400, parent=ada)
    heir = restarted(books, ada)
    assert (books.left(heir), books.left(bob)) == (600, 400)
    free = restarted(books, books.spawn_with())
    assert f"agent:{free}" not in books.state.ledger.accounts
    books.do(SpawnAgent("worker", "scripted", name="worker-1", budget=Limits(turns=7)))
    books.started("worker-1")
    books.do(ReplaceWorker("worker-1"))
    assert books.account("worker-2").limits == Limits(turns=7)
