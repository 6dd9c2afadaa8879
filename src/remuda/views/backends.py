"""The programs that can run an agent: which are here, what they can do, and how to get the others."""

from collections.abc import Sequence

import msgspec

from remuda.agents.presence import Presence
from remuda.views.table import Column, table

COLUMNS = (
    Column("AGENT"),
    Column("TITLE", elastic=True),
    Column("VERSION"),
    Column("CAN"),
    Column("COUNTS"),
    Column("WHERE", elastic=True),
)
ABILITIES = ("resume", "fork", "interrupt", "mcp", "asks", "cost")


class Backend(msgspec.Struct, frozen=True):
    name: str
    title: str
    found: bool
    path: str
    version: str
    resume: bool
    fork: bool
    interrupt: bool
    mcp: bool
    asks: bool  # before it uses a tool
    cost: bool  # tells itself what it costs
    usage: str  # what its numbers count
    usage_exact: bool  # several model calls add up
    ends: str
    install: str


def backend(seen: Presence) -> Backend:
    row = seen.row
    return Backend(
        name=seen.name,
        title=row.title,
        found=bool(seen.path),
        path=seen.path,
        version=seen.version,
        **{ability: getattr(row.can, ability) for ability in ABILITIES},
        usage=row.counting,
        usage_exact=row.counting.exact,
        ends=row.ends,
        install=row.install,
    )


def backends_text(rows: Sequence[Backend], *, width: int | None = None) -> str:
    here = [each for each in rows if each.found]
    missing = [each for each in rows if not each.found]
    shown = table(COLUMNS, [_cells(each) for each in here], width=width) if here else ""
    return shown + "".join(f"{each.name} is not installed: {_how(each)}\n" for each in missing)


def summary(seen: Sequence[Presence]) -> str:
    """One line, for who only wants to know whether there is something to work with."""
    here = [each.name for each in seen if each.path]
    return f"{len(here)} of {len(seen)} agents are installed: {', '.join(here)}"


def _cells(row: Backend) -> tuple[str, ...]:
    can = " ".join(ability for ability in ABILITIES if getattr(row, ability))
    counts = row.usage if row.usage_exact else f"{row.usage} (not all)"
    return row.name, row.title, row.version, can, counts, row.path


def _how(row: Backend) -> str:
    return row.install or "there is no such program; correct its command in remuda.toml"
