"""Which accounts bear what an agent spends, what is left in them, and how events change them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, assert_never

from remuda.domain.events import BudgetReserved, BudgetSet, BudgetWarned, Event, TurnEnded, TurnStarted, UsageRecorded
from remuda.domain.ledger import (
    ASSUMED_NANOUSD,
    PROJECT,
    Account,
    Ledger,
    Limits,
    Measure,
    Reservation,
    Spend,
    call_key,
    limited,
    minus,
    percent,
    plus,
)
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent, State, Usage

MARKS = (95, 80, 50)  # per cent at which a warning is due
MEASURES = tuple(Measure)
TOKENS, NANOUSD, TURNS, TIME = range(len(MEASURES))


# --- who bears what ---


def lineage(state: State, agent: Agent | None) -> Iterator[Agent]:
    """The agent, its parent, and so on."""
    while agent is not None:
        yield agent
        agent = state.agents.get(agent.parent)


def scopes(state: State, agent: Agent) -> tuple[str, ...]:
    """All accounts that there are over what the agent spends, the nearest first."""
    accounts = state.ledger.accounts
    if not accounts:
        return ()
    found = [f"own:{agent.name}", f"agent:{agent.name}"]
    if agent.parent:
        found += [f"agent:{each.name}" for each in lineage(state, state.agents.get(agent.parent))]
    if agent.task:
        found += [f"task:{each}" for each in _works(state, agent.task)]
    return tuple([scope for scope in (*found, PROJECT) if scope in accounts])


def _works(state: State, task: str) -> Iterator[str]:
    """The task and what it is a part of."""
    seen: set[str] = set()
    while task and task not in seen:
        seen.add(task)
        yield task
        found = state.tasks.get(task)
        task = found.brief.epic if found else ""


def covers(state: State, scope: str, agent: Agent) -> bool:
    """Whether the scope stands over the agent, were there an account for it."""
    kind, _, name = scope.partition(":")
    match kind:
        case "agent":
            return any(each.name == name for each in lineage(state, agent))
        case "own":
            return agent.name == name
        case "task":
            return name in _works(state, agent.task)
        case _:
            return True


def standing(state: State) -> set[str]:
    """Agents that live, or under whom somebody does: their budgets stand. Of the others nothing can be spent any more,
    and what they had left is their parents' again."""
    found: set[str] = set()
    for agent in state.agents.values():
        if agent.status not in DEAD:
            for each in lineage(state, agent):
                if each.name in found:
                    break
                found.add(each.name)
    return found


# --- what is left ---


def pool(state: State, agent: Agent | None, measure: int) -> str:
    """The account that an agent draws on: its own, or that of the nearest above, or the project's."""
    accounts = state.ledger.accounts
    for each in lineage(state, agent):
        account = accounts.get(f"agent:{each.name}")
        if account is not None and account.limits[measure] is not None:
            return account.scope
    project = accounts.get(PROJECT)
    return PROJECT if project is not None and project.limits[measure] is not None else ""


def delegated(state: State, scope: str, measure: int) -> int:
    """What agents below were given out of this account and have not spent."""
    total, stands = 0, None
    for account in state.ledger.accounts.values():
        limit = account.limits[measure]
        if limit is None or not account.scope.startswith("agent:") or account.scope == scope:
            continue
        agent = state.agents[account.scope.removeprefix("agent:")]
        if pool(state, state.agents.get(agent.parent), measure) != scope:
            continue
        if agent.status in DEAD:  # to look at all agents takes its time: only for one that is dead itself
            stands = standing(state) if stands is None else stands
            if agent.name not in stands:
                continue
        total += max(0, limit - account.spent[measure] - account.reserved[measure])
    return total


def remaining(state: State, account: Account, measure: int) -> int:
    """Allocated, less what is spent, reserved, and delegated. Below zero for one that was overspent or lowered."""
    limit = account.limits[measure]
    assert limit is not None, f"{account.scope} has no limit of {MEASURES[measure]}"
    given = delegated(state, account.scope, measure)
    return limit - account.spent[measure] - account.reserved[measure] - given


def left(state: State, agent: Agent, measure: int) -> tuple[str, int, int] | None:
    """The account that has least left for this agent, how much that is, and how much of it only others' calls hold at
    the moment. None: nothing limits it."""
    found: tuple[str, int, int] | None = None
    draws_on = pool(state, agent, measure)
    for scope in scopes(state, agent):
        account = state.ledger.accounts[scope]
        limit = account.limits[measure]
        if limit is None:
            continue
        room = limit - account.spent[measure] - account.reserved[measure]
        if scope == draws_on:
            room = remaining(state, account, measure)
        if found is None or room < found[1]:
            found = scope, room, account.reserved[measure]
    return found


class Short(NamedTuple):
    """An account that has too little left."""

    scope: str
    measure: int
    spent: int
    asked: int = 0  # by the call that does not fit; 0: no call would


def spent_out(state: State, agent: Agent, now: float, *, only: int | None = None) -> Short | None:
    """An account of which nothing is left, in any measure or in this one. No turn is begun then."""
    for scope in scopes(state, agent):
        account = state.ledger.accounts[scope]
        for measure, limit in limited(account.limits):
            if only not in (None, measure):
                continue
            spent = account.spent[measure] + (running(state, scope, now) if measure == TIME else 0)
            given = delegated(state, scope, measure) if scope == pool(state, agent, measure) else 0
            if spent + given >= limit:
                return Short(scope, measure, spent)
    return None


def running(state: State, scope: str, now: float) -> int:
    """Milliseconds of the turns that are under way below this account."""
    turns = (
        now - agent.turn.started_at for agent in state.agents.values() if agent.turn and covers(state, scope, agent)
    )
    return sum(int(seconds * 1000) for seconds in turns)


def marks(state: State, agent: Agent, now: float | None = None) -> Iterator[tuple[Account, int]]:
    """Accounts over the agent that have passed a mark of which nobody was told; with the time of turns that are under
    way, where somebody has a clock."""
    for scope in scopes(state, agent):
        account = state.ledger.accounts[scope]
        if now is not None and account.limits[TIME] is not None:
            account = account._replace(spent=plus(account.spent, Spend(milliseconds=running(state, scope, now))))
        passed = next((mark for mark in MARKS if percent(account) >= mark), 0)
        if passed > account.warned:
            yield account, passed


def shortage(state: State, short: Short) -> tuple[str, tuple[tuple[str, int], ...]]:
    """What is short, in words and in numbers."""
    scope, measure, spent, asked = short
    account, name = state.ledger.accounts[scope], MEASURES[measure]
    limit = account.limits[measure] or 0
    given = delegated(state, scope, measure)
    text = f"the budget of {owner(scope)} is spent: {in_words(measure, spent)} of {in_words(measure, limit)}"
    if given:
        text += f", and {in_words(measure, given)} given to others"
    if asked:
        text += f"; the next call may take {in_words(measure, asked)} before it has said a word"
    if account.assumed_nanousd and measure == NANOUSD:
        assumed = in_words(measure, account.assumed_nanousd)
        text += f" (of that {assumed} at a price that is assumed, because it is unknown)"
    numbers = {"limit": limit, "spent": spent, "delegated": given, "asked": asked}
    return text, tuple((f"{name}_{what}", amount) for what, amount in numbers.items())


def owner(scope: str) -> str:
    kind, _, name = scope.partition(":")
    return {"agent": name, "own": f"{name} itself", "task": f"task {name}"}.get(kind, "the project")


def in_words(measure: int, amount: int) -> str:
    unit = MEASURES[measure]
    match unit:
        case Measure.TOKENS:
            return f"{amount:,} token" + ("" if amount == 1 else "s")
        case Measure.NANOUSD:
            return f"${amount // 10**9:,}.{amount % 10**9 // 10**5:04}"
        case Measure.TURNS:
            return f"{amount:,} turn" + ("" if amount == 1 else "s")
        case Measure.MILLISECONDS:
            seconds, rest = divmod(amount, 1000)
            if seconds >= 3600:
                return f"{seconds // 3600:,} h {seconds // 60 % 60} min"
            if seconds >= 60:
                return f"{seconds // 60} min {seconds % 60} s"
            return f"{seconds}.{rest // 100} s" if rest >= 100 else f"{seconds} s"
        case _:
            assert_never(unit)


# --- how events change them ---


def charge(usage: Usage) -> tuple[Spend, int]:
    """What a call counts as, and how much of its money is assumed."""
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_creation_tokens
    if usage.cost_nanousd is not None:
        return Spend(tokens, usage.cost_nanousd), 0
    return Spend(tokens, tokens * ASSUMED_NANOUSD), tokens * ASSUMED_NANOUSD


def evolve_ledger(state: State, event: Event, at: float) -> None:
    """Before the event is applied to its agent: how long a turn took is known only while there is one."""
    rule = RULES.get(type(event))
    if rule is not None:
        rule(state, event, at)


def _add(state: State, touched: tuple[str, ...], spend: Spend, assumed: int = 0) -> dict[str, Account]:
    accounts = dict(state.ledger.accounts)
    for scope in touched:
        account = accounts[scope]
        accounts[scope] = account._replace(
            spent=plus(account.spent, spend), assumed_nanousd=account.assumed_nanousd + assumed
        )
    return accounts


def _turn_started(state: State, event: TurnStarted, _at: float) -> None:
    touched = scopes(state, state.agents[event.agent])
    if touched:
        state.ledger = replace(state.ledger, accounts=_add(state, touched, Spend(turns=1)))


def _turn_ended(state: State, event: TurnEnded, at: float) -> None:
    agent = state.agents[event.agent]
    touched = scopes(state, agent)
    if touched and agent.turn is not None:
        took = max(0, int((at - agent.turn.started_at) * 1000))
        state.ledger = replace(state.ledger, accounts=_add(state, touched, Spend(milliseconds=took)))


def _usage_recorded(state: State, event: UsageRecorded, _at: float) -> None:
    spend, assumed = charge(event.usage)
    key = call_key(event.agent, event.epoch, event.call)
    reservation = state.ledger.open.get(key) if event.metered else None
    if reservation is None:
        touched = scopes(state, state.agents[event.agent])
        if touched and spend != Spend():
            state.ledger = replace(state.ledger, accounts=_add(state, touched, spend, assumed))
        return
    accounts = _add(state, reservation.scopes, spend, assumed)
    for scope in reservation.scopes:
        account = accounts[scope]
        accounts[scope] = account._replace(reserved=minus(account.reserved, reservation.spend))
    rest = {each: made for each, made in state.ledger.open.items() if each != key}
    state.ledger = Ledger(accounts, rest)


def _reserved(state: State, event: BudgetReserved, _at: float) -> None:
    made = Reservation(
        event.agent,
        event.turn,
        event.scopes,
        event.input_tokens,
        event.output_tokens,
        event.nanousd,
        event.priced,
    )
    accounts = dict(state.ledger.accounts)
    for scope in event.scopes:
        accounts[scope] = accounts[scope]._replace(reserved=plus(accounts[scope].reserved, made.spend))
    opened = {**state.ledger.open, call_key(event.agent, event.epoch, event.call): made}
    state.ledger = Ledger(accounts, opened)


def _set(state: State, event: BudgetSet, _at: float) -> None:
    """A new account knows what was spent before it was opened, and bears the calls that are under way."""
    limits = Limits(event.tokens, event.nanousd, event.turns, event.milliseconds)
    account = state.ledger.accounts.get(event.scope)
    opened = dict(state.ledger.open)
    if account is None:
        account = Account(event.scope, limits, *_history(state, event.scope))
        for key, made in opened.items():
            if covers(state, event.scope, state.agents[made.agent]):
                account = account._replace(reserved=plus(account.reserved, made.spend))
                opened[key] = made._replace(scopes=(*made.scopes, event.scope))
    account = account._replace(limits=limits)
    told = next((mark for mark in MARKS if percent(account) >= mark), 0)
    account = account._replace(warned=min(account.warned, told))
    state.ledger = Ledger({**state.ledger.accounts, event.scope: account}, opened)


def _history(state: State, scope: str) -> tuple[Spend, Spend, int]:
    """Agents know what they spent in their lives; what of it was for a task nobody has written down."""
    spent, assumed = Spend(), 0
    if scope.startswith("task:"):
        return spent, Spend(), assumed
    for agent in state.agents.values():
        if covers(state, scope, agent):
            metrics = agent.metrics
            tokens = metrics.input_tokens + metrics.output_tokens
            tokens += metrics.cache_read_tokens + metrics.cache_creation_tokens
            unknown = metrics.unpriced_tokens * ASSUMED_NANOUSD
            turns = agent.turns + (agent.turn is not None)
            before = Spend(tokens, metrics.cumulative_cost_nanousd + unknown, turns, agent.milliseconds)
            spent, assumed = plus(spent, before), assumed + unknown
    return spent, Spend(), assumed


def _warned(state: State, event: BudgetWarned, _at: float) -> None:
    account = state.ledger.accounts[event.scope]._replace(warned=event.percent)
    state.ledger = replace(state.ledger, accounts={**state.ledger.accounts, event.scope: account})


RULES: Mapping[type, Callable[[State, Any, float], None]] = {
    TurnStarted: _turn_started,
    TurnEnded: _turn_ended,
    UsageRecorded: _usage_recorded,
    BudgetReserved: _reserved,
    BudgetSet: _set,
    BudgetWarned: _warned,
}
