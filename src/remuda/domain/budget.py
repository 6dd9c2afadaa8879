"""What is decided about budgets: who gets how much, which call may be made, and what happens when it is spent.

Nothing is spent that was not reserved, where calls go through the meter; a call that does not fit is made smaller, or
waits for others to be settled, or is refused. Where calls are only told of afterwards, the agent is cut off by the
first that passes the limit.
"""

from remuda.domain.accounts import (
    MEASURES,
    NANOUSD,
    TIME,
    TOKENS,
    TURNS,
    Short,
    in_words,
    left,
    marks,
    owner,
    pool,
    remaining,
    scopes,
    shortage,
    spent_out,
)
from remuda.domain.budget_commands import CheckBudget, GrantBudget, ReserveBudget, SetBudget, SettleBudget
from remuda.domain.draft import Decision, Draft
from remuda.domain.errors import Conflict, Invalid, Refused
from remuda.domain.events import BudgetReserved, BudgetSet, BudgetWarned, ReportIgnored, UsageRecorded
from remuda.domain.ledger import ASSUMED_NANOUSD, PROJECT, Limits, Reservation, call_key, limited
from remuda.domain.lifecycle import DEAD, Stage, Status
from remuda.domain.reports import usage_fault
from remuda.domain.state import Agent, Outcome, Usage
from remuda.domain.text import LONGEST_REASON, check_text
from remuda.domain.trigger import Trigger

LARGEST = 10**15  # of any measure; more is a slip of the hand
PATIENCE = 20.0  # seconds for a program whose calls are refused to end its turn by itself
KINDS = ("agent", "own", "task")
NAMES = ("tokens", "dollars", "turns", "time")  # of the measures, to people


# --- limits ---


def set_budget(decision: Decision, command: SetBudget) -> None:
    _check_scope(decision, command.scope)
    _check_limits(command.limits)
    now = _limits(decision, command.scope)
    after = (
        None if measure in command.lift else had if wanted is None else wanted
        for measure, had, wanted in zip(MEASURES, now, command.limits, strict=True)
    )
    _put(decision, command.scope, Limits(*after), command.by, command.why)


def grant(decision: Decision, command: GrantBudget) -> None:
    _check_scope(decision, command.scope)
    _check_limits(command.more)
    now = _limits(decision, command.scope)
    for measure, _more in limited(command.more):
        if now[measure] is None:
            raise Refused(
                f"{owner(command.scope)} has no limit of {NAMES[measure]} to be raised; `remuda budget set` sets one"
            )
    after = Limits(
        *(limit if more is None else (limit or 0) + more for limit, more in zip(now, command.more, strict=True))
    )
    _put(decision, command.scope, after, command.by, command.why)


def _limits(decision: Decision, scope: str) -> Limits:
    account = decision.state.ledger.accounts.get(scope)
    return account.limits if account else Limits()


def endow(decision: Decision, agent: str, limits: Limits, by: str) -> None:
    """What an agent is given as it is spawned."""
    if limits != Limits():
        _check_limits(limits)
        _put(decision, f"agent:{agent}", limits, by, "spawned")


def inherit(decision: Decision, old: str, heir: str) -> None:
    """What an agent has left goes to the one that takes its place: a restart neither makes a budget nor loses one. What
    it has given to others below it stays theirs."""
    account = decision.state.ledger.accounts.get(f"agent:{old}")
    if account is None:
        return
    rest = Limits(
        *(
            None if limit is None else max(0, remaining(decision.state, account, measure))
            for measure, limit in enumerate(account.limits)
        )
    )
    keeps = Limits(
        *(had if each is None else (had or 0) - each for had, each in zip(account.limits, rest, strict=True))
    )
    decision.events.append(BudgetSet(account.scope, *keeps, by="remuda", why=f"{heir} takes over"))
    decision.events.append(BudgetSet(f"agent:{heir}", *rest, by="remuda", why=f"what {old} had left"))


def _put(decision: Decision, scope: str, limits: Limits, by: str, why: str) -> None:
    check_text("the reason", why, longest=LONGEST_REASON, empty=True)
    if scope.startswith("agent:"):
        _check_delegation(decision, scope, limits)
    decision.events.append(BudgetSet(scope, *limits, by=by, why=why))


def _check_delegation(decision: Decision, scope: str, limits: Limits) -> None:
    """What is given to an agent is taken from what its parent has left."""
    state, name = decision.state, scope.removeprefix("agent:")
    account = state.ledger.accounts.get(scope)
    draft = decision.drafts.get(name)
    parent = state.agents.get(draft.agent.parent if draft else state.agents[name].parent)
    for measure, limit in limited(limits):
        source = pool(state, parent, measure)
        if not source:
            continue
        had = (account.limits[measure] if account else None) or 0
        unspent = max(0, had - account.spent[measure]) if account else 0
        spent = account.spent[measure] if account else 0
        more = max(0, limit - spent) - unspent
        has = remaining(state, state.ledger.accounts[source], measure)
        if more > max(0, has):
            raise Refused(
                f"{owner(source)} has {in_words(measure, max(0, has))} left to give, not {in_words(measure, more)}; "
                f"grant it more first, or give less"
            )


def _check_scope(decision: Decision, scope: str) -> None:
    kind, _, name = scope.partition(":")
    if scope == PROJECT:
        return
    if kind not in KINDS:
        raise Invalid(
            f"{scope[:60]!r} is nothing that has a budget", possible=(PROJECT, *(f"{each}:NAME" for each in KINDS))
        )
    if kind == "task":
        decision.task(name)
    elif decision.agent(name).agent.status in DEAD:
        raise Refused(f"{name} is dead, and spends nothing any more")


def _check_limits(limits: Limits) -> None:
    for measure, limit in limited(limits):
        if not 0 <= limit <= LARGEST:
            most = in_words(measure, LARGEST)
            raise Invalid(f"a budget of {in_words(measure, limit)} cannot be; it must be from 0 to {most}")


# --- calls ---


def reserve(decision: Decision, command: ReserveBudget) -> None:
    draft = decision.agent(command.agent)
    agent, state = draft.agent, decision.state
    if not speaks(agent, command.epoch):
        raise Refused(f"session {command.epoch} of {agent.name} is over, and makes no calls any more")
    if call_key(agent.name, command.epoch, command.call) in state.ledger.open:
        raise Refused(f"call {command.call} of {agent.name} is under way already")
    turn = agent.turn.number if agent.turn else 0
    over = scopes(state, agent)
    if not over:
        draft.emit(BudgetReserved(agent.name, command.epoch, turn, command.call, (), 0, 0, 0, priced=False))
        return
    output = _room_for(draft, command)
    if isinstance(output, Short):
        evidence, numbers = shortage(state, output)
        if not draft.fire(Trigger.BUDGET, evidence, numbers):
            raise Refused(evidence)  # it was said in this turn, and stands in the log
        return
    priced = command.input_nanousd is not None
    nanousd = _input_nanousd(command) + output * _rate(command)
    draft.emit(
        BudgetReserved(
            agent.name, command.epoch, turn, command.call, over, command.input_tokens, output, nanousd, priced
        )
    )


def speaks(agent: Agent, epoch: int) -> bool:
    """Whether this is its present session. What is left of an earlier one, or of one that has ended, spends nothing."""
    session = agent.session
    return session is not None and session.epoch == epoch and session.stage is not Stage.ENDED


def _room_for(draft: Draft, command: ReserveBudget) -> int | Short:
    """How much output the call may ask for: all that it wants, or, where nothing else is under way, what is left."""
    state, agent, wanted = draft.whole.state, draft.agent, command.output_tokens
    out_of_time = spent_out(state, agent, draft.now, only=TIME)
    if out_of_time is not None:
        return out_of_time
    rooms = ((TOKENS, command.input_tokens, 1), (NANOUSD, _input_nanousd(command), _rate(command)))
    for measure, first, each in rooms:
        found = left(state, agent, measure)
        if found is None:
            continue
        scope, room, held = found
        fits = (room - first) // each if each else (command.output_tokens if room >= first else -1)
        if fits >= command.output_tokens:
            continue
        if held:
            raise Conflict(f"other calls hold what is left of {scope}; this one may go through when they are settled")
        if fits < command.floor:
            spent = state.ledger.accounts[scope].spent[measure]
            return Short(scope, measure, spent, first + command.floor * each)
        wanted = min(wanted, fits)
    return wanted


def _rate(command: ReserveBudget) -> int:
    return ASSUMED_NANOUSD if command.input_nanousd is None else command.output_nanousd


def _input_nanousd(command: ReserveBudget) -> int:
    return command.input_tokens * ASSUMED_NANOUSD if command.input_nanousd is None else command.input_nanousd


def settle(decision: Decision, command: SettleBudget) -> None:
    """Money that was spent is spent, whatever has become of the session: only the reservation must be open."""
    draft = decision.agent(command.agent)
    key = call_key(command.agent, command.epoch, command.call)
    made = decision.state.ledger.open.get(key)
    if made is None:
        why = f"call {command.call} is not under way: it was settled, or never reserved"
        draft.emit(ReportIgnored(command.agent, command.epoch, 0, type(command).__name__, why))
        return
    usage = command.usage
    if usage is None or usage_fault(usage):
        usage = whole(made)
    draft.emit(UsageRecorded(command.agent, command.epoch, made.turn, command.call, usage, metered=True))


def whole(made: Reservation) -> Usage:
    """All that was reserved: what counts where nobody knows what was spent."""
    return Usage(made.input_tokens, made.output_tokens, cost_nanousd=made.nanousd if made.priced else None)


def settle_lost(decision: Decision) -> None:
    """The runtime died under calls that were under way. What they cost nobody knows, and so it is all of it."""
    for key, made in decision.state.ledger.open.items():
        epoch, call = key.rsplit("/", 2)[1:]
        draft = decision.agent(made.agent)
        draft.emit(UsageRecorded(made.agent, int(epoch), made.turn, int(call), whole(made), metered=True))


# --- what follows ---


def check_resume(draft: Draft) -> None:
    """An agent that waits for a grant cannot be told to go on without one: it would be paused again at once."""
    out_of = spent_out(draft.whole.state, draft.agent, draft.now)
    if out_of is not None:
        why, _ = shortage(draft.whole.state, out_of)
        raise Refused(f"{draft.agent.name} cannot go on: {why}; `remuda budget grant` gives it more")


def check(decision: Decision, command: CheckBudget) -> None:
    """Tell of marks that were passed, and cut off an agent that has spent what it had. One whose calls are refused by
    the meter spends nothing more, and is given time to end its turn in its own way."""
    draft = decision.agent(command.agent)
    agent = draft.agent
    for account, mark in marks(decision.state, agent, decision.now):
        measure = max(limited(account.limits), key=lambda each: account.spent[each[0]] / max(each[1], 1))[0]
        spent, limit = in_words(measure, account.spent[measure]), in_words(measure, account.limits[measure] or 0)
        draft.emit(BudgetWarned(agent.name, account.scope, mark, spent, limit))
    if agent.turn is None or agent.status is not Status.WORKING:
        return
    out_of = spent_out(decision.state, agent, decision.now)
    fired = agent.trigger
    stopped = fired is not None and fired.trigger is Trigger.BUDGET and fired.turn == agent.turn.number
    if fired is not None and stopped and decision.now - fired.at > PATIENCE:
        _cut(draft, fired.evidence)
    elif out_of is not None and not stopped and _cuts(draft, out_of.measure):
        evidence, numbers = shortage(decision.state, out_of)
        draft.fire(Trigger.BUDGET, evidence, numbers)
        _cut(draft, evidence)


def _cuts(draft: Draft, measure: int) -> bool:
    """A turn is not cut for the number of turns, and for tokens and money only where no meter stops the calls."""
    metered = draft.agent.session is not None and draft.agent.session.metered
    return measure == TIME or (measure != TURNS and not metered)


def _cut(draft: Draft, why: str) -> None:
    draft.move(Status.PAUSED, why)
    draft.cut_turn(Outcome.INTERRUPTED, why)
