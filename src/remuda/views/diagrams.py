"""The lifecycle, drawn from the tables that the code obeys: docs/lifecycle.md is this page and nothing else."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from remuda.domain.lifecycle import DEAD, FINISHED, PHASE, STAGE, STATUS, TASK, WITH_PROCESS, WORK

_Step = TypeVar("_Step", bound=StrEnum)


def lifecycle_page() -> str:
    """The whole page, in Markdown with Mermaid."""
    dead = ", ".join(f"`{status}`" for status in STATUS if status in DEAD)
    finished = ", ".join(f"`{status}`" for status in TASK if status in FINISHED)
    process = ", ".join(f"`{status}`" for status in STATUS if status in WITH_PROCESS)
    return f"""\
# Lifecycle

Drawn from the tables in `src/remuda/domain/lifecycle.py` by `make docs`; a test fails when this page and the tables
differ. A move that is not here is refused, and the refusal names what is possible.

## An agent's status

{_mermaid(STATUS, start="pending")}

Dead, for good: {dead}. A process may exist only in {process}; in any other status a session that is still there is
owed its end.

{_table(STATUS)}

## A worker's phase

{_mermaid(PHASE, start="idle")}

{_table(PHASE)}

## A session's stage

{_mermaid(STAGE, start="requested")}

{_table(STAGE)}

## A task's status

{_mermaid(TASK, start="open")}

Finished, for good: {finished}. How a task goes its way is told in [tasks](tasks.md).

{_table(TASK)}

## A task's work

Where its worktree stands. What ends in -ing owes the world something, after a restart as well.

{_mermaid(WORK, start="none")}

{_table(WORK)}
"""


def _mermaid(table: Mapping[_Step, Sequence[_Step]], *, start: str) -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start}"]
    for was, after in table.items():
        lines += [f"    {was} --> {now}" for now in after]
        if not after:
            lines.append(f"    {was} --> [*]")
    return "\n".join([*lines, "```"])


def _table(table: Mapping[_Step, Sequence[_Step]]) -> str:
    rows = ["| from | to |", "|---|---|"]
    rows += [f"| {was} | {', '.join(str(now) for now in after) or '—'} |" for was, after in table.items()]
    return "\n".join(rows)
