"""What a benchmark says: a number, how sure we are of it, and what it is held against in the same run."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    name: str  # subject.what
    value: float
    unit: str
    spread: str  # the range over the rounds
    compared_with: str  # measured in the same run, interleaved
    goal: str
    ok: bool


def interleaved(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Take turns, so that a noisy moment of the machine falls on all of them alike."""
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, values in zip(measures, taken, strict=True):
            values.append(measure())
    return taken


def spread(values: Sequence[float]) -> str:
    return f"{_short(min(values))}–{_short(max(values))}"


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(figures: Sequence[Figure]) -> str:
    rows = [("figure", "value", "spread", "goal", "", "compared with")]
    for each in figures:
        value = f"{_short(each.value)} {each.unit}"
        rows.append((each.name, value, each.spread, each.goal, "ok" if each.ok else "MISSED", each.compared_with))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
