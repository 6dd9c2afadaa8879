"""turns_index.csv: a view of the records for people and spreadsheets. It is made from them and never believed.

RFC 4180, and no cell can be taken for a formula. Each row follows from one manifest, so that any clone makes the same
file; two that were merged line by line (`merge=union`) are put in order the next time it is made.
"""

import csv
import io
from typing import NamedTuple

from remuda.records.manifest import UUID7, Manifest
from remuda.records.text import one_line

HEADER = (
    "turn_id",
    "started_at",
    "finished_at",
    "elapsed_seconds",
    "branch",
    "commit_sha",
    "task_summary",
    "turn_uuid",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
ATTRIBUTES = b"turns_index.csv merge=union\n"


class Row(NamedTuple):
    turn_id: int
    started_at: str
    finished_at: str
    elapsed_seconds: str
    branch: str
    commit_sha: str
    task_summary: str
    turn_uuid: str


def row(manifest: Manifest) -> Row:
    """`commit_sha` is where the work was at the end: a file cannot hold the id of the commit that it is in. The tag
    has that one."""
    origin = manifest.provenance
    return Row(
        manifest.turn_id,
        origin.started_at,
        origin.finished_at,
        f"{origin.elapsed_seconds:.0f}",
        harmless(origin.branch),
        origin.commit_after,
        harmless(manifest.summary),
        manifest.turn_uuid,
    )


def harmless(text: str) -> str:
    """As a cell: on one line, and nothing that a spreadsheet would calculate."""
    line = one_line(text)
    return f"'{line}" if line.startswith((*FORMULA, "'")) else line


def render(rows: list[Row]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(HEADER)
    ordered: list[Row] = sorted(set(rows), key=lambda each: (each.turn_id, each.turn_uuid))
    writer.writerows(ordered)
    return out.getvalue().encode(errors="backslashreplace")


def parse(data: bytes) -> list[Row] | None:
    """The rows of a file that we could have written, or None. Anything else in it (marks of a merge, another header,
    a number that is none) and nothing of it is used."""
    try:
        lines = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    if not lines or tuple(lines[0]) != HEADER:
        return None
    rows = [_row(line) for line in lines[1:] if tuple(line) != HEADER]
    return None if None in rows else [each for each in rows if each is not None]


def _row(cells: list[str]) -> Row | None:
    if len(cells) != len(HEADER) or not cells[0].isascii() or not cells[0].isdigit() or len(cells[0]) > 18:
        return None
    if any(cell.startswith(FORMULA) or one_line(cell) != cell for cell in cells) or not UUID7.fullmatch(cells[-1]):
        return None
    return Row(int(cells[0]), *cells[1:])


def with_row(data: bytes | None, added: Row) -> bytes | None:
    """The file with one more row in its place; None where the file cannot be used and must be made from the records."""
    rows = parse(data) if data is not None else []
    if rows is None:
        return None
    return render([*(each for each in rows if each.turn_uuid != added.turn_uuid), added])
