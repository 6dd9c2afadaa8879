"""The agents at a glance."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from remuda.domain.lifecycle import DEAD, Status
from remuda.domain.state import Agent, Metrics
from remuda.views.table import Column, table
from remuda.views.text import age, count, first_line, usd

SCRIPTED = "scripted"
DEAD_MARK = "†"
NANO = 1e-9

COLUMNS = (
    Column("NAME"),
    Column("ROLE"),
    Column("BACKEND"),
    Column("STATUS"),
    Column("PHASE", optional=True),
    Column("TASK", optional=True, elastic=True),
    Column("TURN", right=True),
    Column("QUEUE", right=True),
    Column("SESSION", right=True),
    Column("TOKENS", right=True),
    Column("COST", right=True),
    Column("AGE", right=True),
    Column("WHY", elastic=True),
)

# ANSI styles; each status has one, so that a terminal shows at a glance who works and who needs a look.
COLOURS: Mapping[Status, str] = {
    Status.PENDING: "2",
    Status.STARTING: "36",
    Status.READY: "32",
    Status.WORKING: "1;32",
    Status.PAUSED: "33",
    Status.STOPPED: "33",
    Status.HIBERNATING: "34",
    Status.RETIRED: "2",
    Status.FAILED: "31",
    Status.REAPED: "31",
}


class Row(msgspec.Struct, frozen=True):
    name: str
    role: str
    backend: str
    scripted: bool  # it follows a playbook and is not a model
    status: Status
    alive: bool
    phase: str
    task: str
    turn: int  # the one it is in; 0 for none
    turns: int  # ended ones
    queue_count: int
    epoch: int  # its session's number; 0 before the first
    tokens: int
    cost_usd: float | None  # None: there were calls, and nobody knows what they cost
    unpriced_calls: int
    age_seconds: float
    created_at: float
    active_at: float
    ended_at: float
    parent: str
    why: str


def chosen(agents: Mapping[str, Agent], *, dead: bool = False) -> list[Agent]:
    """Those to be shown: the living, and the dead when asked for, as long as they are not buried."""
    return [agent for agent in agents.values() if agent.status not in DEAD or (dead and not agent.buried_at)]


def roster(agents: Iterable[Agent], now: float) -> list[Row]:
    return [row(agent, now) for agent in agents]


def row(agent: Agent, now: float) -> Row:
    metrics = agent.metrics
    return Row(
        name=agent.name,
        role=agent.role,
        backend=agent.backend,
        scripted=agent.backend == SCRIPTED,
        status=agent.status,
        alive=agent.status not in DEAD,
        phase=agent.phase or "",
        task=agent.task,
        turn=agent.turn.number if agent.turn else 0,
        turns=agent.turns,
        queue_count=len(agent.queue),
        epoch=agent.session.epoch if agent.session else 0,
        tokens=tokens(metrics),
        cost_usd=cost_usd(metrics.cumulative_cost_nanousd, metrics),
        unpriced_calls=metrics.unpriced_calls,
        age_seconds=round((agent.ended_at or now) - agent.created_at, 3),
        created_at=agent.created_at,
        active_at=agent.active_at,
        ended_at=agent.ended_at,
        parent=agent.parent,
        why=agent.why,
    )


def tokens(metrics: Metrics) -> int:
    return metrics.input_tokens + metrics.output_tokens + metrics.cache_read_tokens + metrics.cache_creation_tokens


def cost_usd(nanousd: int, metrics: Metrics) -> float | None:
    """A sum in dollars, or None where it would be zero only because no call had a price."""
    return None if metrics.unpriced_calls and not nanousd else nanousd * NANO


def backend_label(backend: str) -> str:
    return f"{SCRIPTED} (not a model)" if backend == SCRIPTED else backend


def roster_text(agents: Sequence[Agent], now: float, *, width: int | None = None, colour: bool = False) -> str:
    if not agents:
        return "no agents; `remuda spawn` starts one, `remuda ps --all` shows the dead too\n"
    paint = ("STATUS", lambda number: COLOURS[agents[number].status]) if colour else None
    return table(COLUMNS, [_cells(each, now) for each in agents], width=width, paint=paint)


def _cells(agent: Agent, now: float) -> tuple[str, ...]:
    """Straight from the agent and not from its row: `remuda ps` waits for a thousand of these."""
    status, metrics, session = agent.status, agent.metrics, agent.session
    used = tokens(metrics)
    return (
        agent.name,
        agent.role,
        backend_label(agent.backend),
        status if status not in DEAD else f"{DEAD_MARK} {status}",
        agent.phase or "",
        agent.task,
        str(agent.turn.number) if agent.turn else "",
        str(len(agent.queue)) if agent.queue else "",
        str(session.epoch) if session else "",
        count(used) if used else "",
        usd(cost_usd(metrics.cumulative_cost_nanousd, metrics), complete=not metrics.unpriced_calls) if used else "",
        age((agent.ended_at or now) - agent.created_at),
        first_line(agent.why) if agent.why else "",
    )
