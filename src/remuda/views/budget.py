"""Budgets to look at: what each account may spend, has spent, has reserved and has given away."""

from collections.abc import Iterable, Iterator

import msgspec

from remuda.domain.accounts import MEASURES, delegated, in_words, owner
from remuda.domain.ledger import Account, Limits, Measure, limited, percent
from remuda.domain.state import State
from remuda.views.table import Column, table

COLUMNS = (
    Column("BUDGET OF"),
    Column("ALLOCATED", right=True),
    Column("SPENT", right=True),
    Column("RESERVED", right=True, optional=True),
    Column("DELEGATED", right=True, optional=True),
    Column("REMAINING", right=True),
    Column("NOTE", elastic=True, optional=True),
)


class MeasureRow(msgspec.Struct, frozen=True):
    measure: Measure
    limit: int
    spent: int
    reserved: int  # by calls that are under way
    delegated: int  # given to agents below, and not spent by them
    remaining: int


class AccountRow(msgspec.Struct, frozen=True):
    scope: str
    percent: int
    measures: list[MeasureRow]
    assumed_nanousd: int  # of what was spent: at an assumed price, because nobody knows the real one


def budgets(state: State, scopes: Iterable[str] | None = None) -> list[AccountRow]:
    accounts = state.ledger.accounts
    chosen = accounts.values() if scopes is None else [accounts[each] for each in scopes if each in accounts]
    return [_row(state, account) for account in chosen if account.limits != Limits()]


def _row(state: State, account: Account) -> AccountRow:
    return AccountRow(account.scope, percent(account), list(_measures(state, account)), account.assumed_nanousd)


def _measures(state: State, account: Account) -> Iterator[MeasureRow]:
    for index, limit in limited(account.limits):
        spent, reserved = account.spent[index], account.reserved[index]
        given = delegated(state, account.scope, index)
        yield MeasureRow(MEASURES[index], limit, spent, reserved, given, limit - spent - reserved - given)


def budgets_text(rows: list[AccountRow], *, width: int | None = None) -> str:
    if not rows:
        return "nothing is limited; `remuda budget set AGENT --tokens N` sets a budget\n"
    return table(COLUMNS, [_cells(row, each) for row in rows for each in row.measures], width=width)


def _cells(row: AccountRow, each: MeasureRow) -> tuple[str, ...]:
    measure = MEASURES.index(each.measure)

    def words(amount: int) -> str:
        return in_words(measure, amount) if amount else ""

    note = ""
    if each.measure is Measure.NANOUSD and row.assumed_nanousd:
        note = f"{in_words(measure, row.assumed_nanousd)} of it at an assumed price: the real one is unknown"
    elif each.remaining < 0:
        note = f"{in_words(measure, -each.remaining)} more than there is"
    left = in_words(measure, max(0, each.remaining))
    given = (words(each.reserved), words(each.delegated))
    return (owner(row.scope), in_words(measure, each.limit), in_words(measure, each.spent), *given, left, note)


def limits_text(limits: Limits) -> str:
    return ", ".join(in_words(measure, limit) for measure, limit in limited(limits)) or "no limit"
