"""What an agent gives to the record of the turn that it is in: a decision, a summary. Plain calls, for a tool or a
command."""

import os

import msgspec

from remuda.domain.errors import Invalid, Refused
from remuda.records.begin import find_open
from remuda.records.facts import Decision
from remuda.records.journal import OpenTurn
from remuda.records.redact import redactor
from remuda.records.repository import Repository

LONGEST = 20_000  # characters of one field
MOST = 20  # items of one list


def give_decision(repository: Repository, decision: Decision, *, agent: str = "") -> int:
    """For adr.md; the number of the turn. An agent that is supervised gives its name, for there may be many."""
    for name in ("title", "context", "decision"):
        if not getattr(decision, name).strip():
            raise Invalid(f"a decision needs a {name}")
    redact = redactor(os.environ)
    made = msgspec.to_builtins(decision)
    kept = {
        name: [redact(item)[:LONGEST] for item in value[:MOST]] if isinstance(value, list) else redact(value)[:LONGEST]
        for name, value in made.items()
    }
    turn = _under_way(repository, agent)
    turn.add("said", {"decision": kept})
    return turn.number


def give_summary(repository: Repository, text: str, *, agent: str = "") -> int:
    if not text.strip():
        raise Invalid("a summary cannot be empty")
    turn = _under_way(repository, agent)
    turn.add("said", {"summary": redactor(os.environ)(text)[:LONGEST]})
    return turn.number


def _under_way(repository: Repository, agent: str) -> OpenTurn:
    turn = find_open(repository, agent=agent, top="" if agent else repository.top)
    if turn is None:
        raise Refused("no turn is under way here" + (f" for {agent}" if agent else ""))
    return turn
