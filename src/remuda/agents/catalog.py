"""Backends as data: one row for each program that can run an agent."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from remuda.agents import Ask, Backend, Launch, Listen, Session, claude, codex
from remuda.agents.acp import open_session
from remuda.domain.errors import Invalid


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    argv: tuple[str, ...]
    options: Mapping[str, str]  # an option of the agent -> the flag that carries its value
    opens: Backend | None = None  # how to speak to it, if not in ACP; it then finds its own program and options


CATALOG: Mapping[str, Row] = {
    "scripted": Row(
        title="Scripted agent (follows a playbook; it is not a model)",
        # Without site-packages (-S) and apart from the user's Python settings (-I): it starts in half the time.
        argv=(sys.executable, "-I", "-S", str(Path(__file__).parent / "scripted")),
        options={"playbook": "--playbook", "memory": "--memory"},
    ),
    "claude": Row("Claude Code", argv=("claude",), options={}, opens=claude.open_session),
    "codex": Row("Codex", argv=("codex",), options={}, opens=codex.open_session),
}


def backend(name: str) -> Backend:
    """How to start a session of that name; raises Invalid for a name that is not in the catalog."""
    if name not in CATALOG:
        raise Invalid(f"there is no backend {name!r}", possible=_nearest_first(name, CATALOG))
    row = CATALOG[name]
    if row.opens:
        return row.opens

    async def start(launch: Launch, listen: Listen, ask: Ask) -> Session:
        return await open_session(command(row, launch.options), launch, listen, ask)

    return start


def command(row: Row, options: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    argv = row.argv
    for option, value in options:
        if option not in row.options:
            raise Invalid(f"{row.title} has no option {option!r}", possible=_nearest_first(option, row.options))
        argv = (*argv, row.options[option], value)
    return argv


def _nearest_first(name: str, known: Iterable[str]) -> list[str]:
    return sorted(known, key=lambda each: SequenceMatcher(None, name, each).ratio(), reverse=True)
