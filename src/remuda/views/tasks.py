"""The tasks at a glance, and one of them in full."""

from collections.abc import Iterable, Mapping

import msgspec

from remuda.domain.lifecycle import FINISHED, TASK, TaskStatus
from remuda.domain.task import Check, Kind, Merge, Note, Task, Verdict
from remuda.domain.task_graph import parts_of, ready, unmet
from remuda.views.table import Column, table
from remuda.views.text import age, columns, first_line, moment, neutral

COLUMNS = (
    Column("TASK"),
    Column("P", right=True),
    Column("STATUS"),
    Column("WORK", optional=True),
    Column("HOLDER", optional=True),
    Column("REVIEWER", optional=True),
    Column("WAITS FOR", optional=True, elastic=True),
    Column("PART OF", optional=True),
    Column("AGE", right=True),
    Column("TITLE", elastic=True),
)

COLOURS: Mapping[TaskStatus, str] = {
    TaskStatus.OPEN: "0",
    TaskStatus.IN_PROGRESS: "1;32",
    TaskStatus.IN_REVIEW: "36",
    TaskStatus.BLOCKED: "31",
    TaskStatus.DONE: "2",
    TaskStatus.DECOMPOSED: "34",
    TaskStatus.CANCELLED: "2",
}


class TaskRow(msgspec.Struct, frozen=True):
    id: str
    kind: Kind
    title: str
    status: TaskStatus
    why: str
    priority: int
    work: str
    holder: str
    reviewer: str
    waits_for: list[str]
    epic: str
    labels: list[str]
    branch: str
    created_at: float
    changed_at: float
    ended_at: float


class StepRow(msgspec.Struct, frozen=True):
    text: str
    done: bool


class TaskDetail(msgspec.Struct, frozen=True):
    task: TaskRow
    by: str
    description: str
    steps: list[StepRow]
    needs: list[str]
    parts: list[str]
    paths: list[str]
    accept: list[str]
    target: str
    notes: list[Note]
    authors: list[str]
    attempt: int
    setbacks: int
    folder: str
    summary: str
    check: Check | None
    verdict: Verdict | None
    merge: Merge | None
    kept: str
    possible: list[TaskStatus]


def chosen(tasks: Mapping[str, Task], *, finished: bool = False, only_ready: bool = False) -> list[Task]:
    if only_ready:
        return ready(tasks)
    return [task for task in tasks.values() if finished or task.status not in FINISHED]


def task_row(tasks: Mapping[str, Task], task: Task) -> TaskRow:
    waits = [] if task.status in FINISHED else [each.id for each in unmet(tasks, task)]
    return TaskRow(
        id=task.id,
        kind=task.kind,
        title=task.brief.title,
        status=task.status,
        why=task.why,
        priority=task.brief.priority,
        work=task.work,
        holder=task.holder,
        reviewer=task.reviewer,
        waits_for=waits,
        epic=task.brief.epic,
        labels=list(task.brief.labels),
        branch=task.branch,
        created_at=task.created_at,
        changed_at=task.changed_at,
        ended_at=task.ended_at,
    )


def task_rows(tasks: Mapping[str, Task], shown: Iterable[Task]) -> list[TaskRow]:
    return [task_row(tasks, task) for task in shown]


def task_detail(tasks: Mapping[str, Task], task: Task) -> TaskDetail:
    brief = task.brief
    return TaskDetail(
        task=task_row(tasks, task),
        by=task.by,
        description=brief.description,
        steps=[StepRow(step, number in task.steps_done) for number, step in enumerate(brief.steps, 1)],
        needs=list(brief.needs),
        parts=[part.id for part in parts_of(tasks, task.id)],
        paths=list(brief.paths),
        accept=list(brief.accept),
        target=brief.target,
        notes=list(task.notes),
        authors=list(task.authors),
        attempt=task.attempt,
        setbacks=task.setbacks,
        folder=task.folder,
        summary=task.summary,
        check=task.check,
        verdict=task.verdict,
        merge=task.merge,
        kept=task.kept,
        possible=list(TASK[task.status]),
    )


# --- as text ---


def tasks_text(rows: list[TaskRow], now: float, *, width: int | None = None, colour: bool = False) -> str:
    if not rows:
        return "no tasks; `remuda task add` makes one, `remuda task list --all` shows the finished too\n"
    paint = ("STATUS", lambda number: COLOURS[rows[number].status]) if colour else None
    return table(COLUMNS, [_cells(each, now) for each in rows], width=width, paint=paint)


def _cells(row: TaskRow, now: float) -> tuple[str, ...]:
    return (
        row.id,
        str(row.priority),
        row.status,
        "" if row.work == "none" else row.work,
        row.holder,
        row.reviewer,
        ", ".join(row.waits_for),
        row.epic,
        age((row.ended_at or now) - row.created_at),
        f"({row.kind}) {row.title}" if row.kind is Kind.EPIC else row.title,
    )


def task_text(shown: TaskDetail) -> str:
    pairs = [*_what(shown), *_how_far(shown), *_words(shown)]
    room = max(columns(label) for label, _ in pairs)
    return "".join(f"{label:<{room}}  {neutral(value)}\n" for label, value in pairs)


def _what(shown: TaskDetail) -> list[tuple[str, str]]:
    task = shown.task
    why = f" ({first_line(task.why)})" if task.why else ""
    pairs = [
        (task.kind, f"{task.id}: {task.title}"),
        ("status", task.status + why),
        ("possible", ", ".join(shown.possible) or "nothing: it is finished"),
        ("priority", str(task.priority)),
        ("asked by", f"{shown.by}, {moment(task.created_at)}"),
    ]
    listed = (
        ("needs", shown.needs),
        ("waits for", task.waits_for),
        ("parts", shown.parts),
        ("labels", task.labels),
        ("paths", shown.paths),
        ("part of", [task.epic] if task.epic else []),
    )
    pairs += [(label, ", ".join(names)) for label, names in listed if names]
    return pairs + [("accept", command) for command in shown.accept]


def _how_far(shown: TaskDetail) -> list[tuple[str, str]]:
    task = shown.task
    pairs = [("holder", task.holder or "-"), ("reviewer", task.reviewer or "-")]
    if shown.folder:
        pairs.append(("worktree", f"{shown.folder}, branch {task.branch}, {task.work}"))
    if shown.kept:
        pairs.append(("kept", shown.kept))
    if shown.check:
        said = "passed" if shown.check.ok else f"failed: {first_line(shown.check.tail)}"
        pairs.append(("check", f"{said} at {shown.check.commit[:12]} ({shown.check.evidence or 'no output'})"))
    if shown.verdict:
        said = "approved" if shown.verdict.approved else "denied"
        pairs.append(("verdict", f"{said} by {shown.verdict.reviewer}: {first_line(shown.verdict.comments)}"))
    if shown.merge:
        pairs.append(("merged", f"{shown.merge.commit[:12]} into {shown.merge.target}"))
        pairs.append(("next", first_line(shown.merge.next_step)))
    if shown.setbacks:
        pairs.append(("setbacks", str(shown.setbacks)))
    return pairs


def _words(shown: TaskDetail) -> list[tuple[str, str]]:
    marks = {True: "x", False: " "}
    pairs = [(f"  {number}.", f"[{marks[each.done]}] {each.text}") for number, each in enumerate(shown.steps, 1)]
    pairs += [("note", f"{moment(each.at)} {each.by}: {first_line(each.text)}") for each in shown.notes]
    if shown.summary:
        pairs.append(("summary", first_line(shown.summary)))
    return [*pairs, *(("", line) for line in shown.description.splitlines())]
