"""Rows as a plain text table.

Worked out a column at a time: a column of plain ASCII, which is nearly every one, is then padded in one go. A
thousand agents are shown in a few milliseconds, and `remuda ps` waits for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remuda.views.text import columns, cut, neutral, pad

GAP = "  "
NARROWEST = 8  # an elastic column is cut to no less than this


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    elastic: bool = False  # may be cut to make the table fit
    optional: bool = False  # left out when no row has a value for it


Paint = Callable[[int], str]  # the number of a row -> an ANSI style


def table(
    heads: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    paint: tuple[str, Paint] | None = None,
) -> str:
    """The whole table, each line ended. Fitted to `width` where it is given, that is on a terminal; `paint` names
    the one column that is coloured, and how."""
    shown = [
        (head, _clean([head.title, *cells]))
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
        if not head.optional or any(cells)
    ]
    rooms = _fit([head for head, _ in shown], [_widest(cells) for _, cells in shown], width)
    padded = []
    for (head, cells), room in zip(shown, rooms, strict=True):
        column = _padded(cells, room, right=head.right)
        if paint is not None and head.title == paint[0]:
            column[1:] = [f"\x1b[{paint[1](number)}m{cell}\x1b[0m" for number, cell in enumerate(column[1:])]
        padded.append(column)
    return "".join([f"{GAP.join(line).rstrip()}\n" for line in zip(*padded, strict=True)])


def _clean(cells: list[str]) -> list[str]:
    if not all(cells):
        cells = [cell or "-" for cell in cells]
    if "".join(cells).isprintable():
        return cells
    return [neutral(cell.replace("\t", " ")) for cell in cells]


def _widest(cells: list[str]) -> int:
    return max(map(len if "".join(cells).isascii() else columns, cells))


def _fit(heads: Sequence[Column], rooms: list[int], width: int | None) -> list[int]:
    if width is None:
        return rooms
    over = sum(rooms) + len(GAP) * (len(rooms) - 1) - width
    for index in reversed(range(len(rooms))):
        if over > 0 and heads[index].elastic:
            given = min(over, max(0, rooms[index] - NARROWEST))
            rooms[index] -= given
            over -= given
    return rooms


def _padded(cells: list[str], room: int, *, right: bool) -> list[str]:
    if _widest(cells) > room:
        cells = [cut(cell, room) for cell in cells]
    if "".join(cells).isascii():
        return [cell.rjust(room) for cell in cells] if right else [cell.ljust(room) for cell in cells]
    return [pad(cell, room, right=right) for cell in cells]
