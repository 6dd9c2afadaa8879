"""Tasks as text that people and other programs keep: written as Markdown, read from Markdown, JSON and beads.

What comes in is untrusted: whatever is not as expected is refused with the line that it is in, or left out and said.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remuda.domain.errors import Invalid
from remuda.domain.text import NAME

ITEM = re.compile(r"^(?P<indent>\s*)[-*+]\s+\[(?P<mark>[ xX])\]\s+(?P<text>.+?)\s*$")
OURS = re.compile(r"^(?P<id>[a-z][a-z0-9-]{0,39}): (?P<title>.+)$")
NEEDS = re.compile(r"\s+\(needs (?P<needs>[a-z0-9, -]+)\)$")
FINISHED = ("closed", "tombstone")
OF_WORK = ("task", "bug", "feature", "chore", "epic")
NORMAL = 2


@dataclass(slots=True)
class NewTasks:
    """As the API takes them, and what there is to say about it."""

    tasks: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def parse(text: str, form: str, *, in_order: bool = False, accept: Sequence[str] = ()) -> NewTasks:
    new = {"markdown": _checklist, "beads": _beads, "json": _ours}[form](text)
    if in_order:
        for number in range(1, len(new.tasks)):
            before = new.tasks[number - 1]
            new.tasks[number]["brief"].setdefault("needs", []).append(before["id"] or before["key"])
    for task in new.tasks:
        if accept and task["kind"] == "task":
            task["brief"]["accept"] = [*task["brief"].get("accept", []), *accept]
    return new


def _new(number: int, title: str, *, task_id: str = "", kind: str = "task", **brief: Any) -> dict[str, Any]:
    said = {name: value for name, value in brief.items() if value not in (None, "", [])}
    return {"id": task_id, "key": f"#{number}", "kind": kind, "brief": {"title": title, **said}}


# --- Markdown ---


def to_markdown(tasks: Iterable[dict[str, Any]]) -> str:
    """A checklist that `parse` reads back: what is in it is what a person would write by hand."""
    lines = ["# Tasks", ""]
    for each in tasks:
        row = each["task"]
        done = "x" if row["status"] in ("done", "cancelled") else " "
        needs = f" (needs {', '.join(each['needs'])})" if each["needs"] else ""
        lines.append(f"- [{done}] {row['id']}: {_one_line(row['title'])}{needs}")
        lines += [f"  {line}".rstrip() for line in each["description"].splitlines()]
        lines += [f"  - [{'x' if step['done'] else ' '}] {_one_line(step['text'])}" for step in each["steps"]]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _checklist(text: str) -> NewTasks:
    """Items at the margin are tasks, items below them are their steps, other text below them is their description.
    What is ticked off is left out."""
    new, skipped, margin = NewTasks(), 0, None
    taken: dict[str, Any] | None = None
    for line in text.expandtabs(4).splitlines():
        item = ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if item and (margin is None or indent <= margin):
            margin = indent
            taken = None if item["mark"] != " " else _item(len(new.tasks), item["text"])
            skipped += taken is None
            new.tasks += [taken] if taken else []
        elif taken and item:
            taken["brief"].setdefault("steps", []).append(item["text"])
        elif taken and line.strip() and margin is not None and indent > margin:
            before = taken["brief"].get("description", "")
            taken["brief"]["description"] = f"{before}\n{line.strip()}" if before else line.strip()
        elif line.strip():
            taken = None
    if skipped:
        new.remarks.append(f"{skipped} are ticked off and left out")
    return _without_unknown(new)


def _item(number: int, text: str) -> dict[str, Any]:
    found = NEEDS.search(text)
    needs = [name.strip() for name in found["needs"].split(",")] if found else []
    title = text[: found.start()] if found else text
    ours = OURS.match(title)
    if ours:
        return _new(number, ours["title"], task_id=ours["id"], needs=needs)
    return _new(number, title, needs=needs)


def _without_unknown(new: NewTasks) -> NewTasks:
    """What was left out is taken for done: nothing waits for it."""
    known = {each["id"] for each in new.tasks}
    for each in new.tasks:
        brief = each["brief"]
        if "needs" in brief:
            brief["needs"] = [name for name in brief["needs"] if name in known]
        if brief.get("epic", "") not in ("", *known):
            del brief["epic"]
    return new


# --- ours ---


def _ours(text: str) -> NewTasks:
    try:
        given = json.loads(text)
        tasks = given["tasks"]
        new = NewTasks([_from_ours(number, each) for number, each in enumerate(tasks) if _is_open(each)])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid(f"the file is not one that `remuda task export` writes: {error!r}") from error
    left = len(tasks) - len(new.tasks)
    if left:
        new.remarks.append(f"{left} are finished and left out")
    return _without_unknown(new)


def _is_open(each: dict[str, Any]) -> bool:
    return each["task"]["status"] not in ("done", "cancelled")


def _from_ours(number: int, each: dict[str, Any]) -> dict[str, Any]:
    row = each["task"]
    return _new(
        number,
        row["title"],
        task_id=row["id"],
        kind=row["kind"],
        description=each["description"],
        steps=[step["text"] for step in each["steps"] if not step["done"]],
        needs=each["needs"],
        epic=row["epic"],
        priority=row["priority"],
        labels=row["labels"],
        paths=each["paths"],
        accept=each["accept"],
        target=each["target"],
    )


# --- beads ---


def _beads(text: str) -> NewTasks:
    issues: dict[str, dict[str, Any]] = {}
    left = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        issue = _issue(number, line)
        wanted = issue.get("status") not in FINISHED and issue.get("issue_type", "task") in OF_WORK
        left += not wanted
        if wanted:
            issues[str(issue["id"])] = issue  # a later line of the same id is the newer one
    parents = {parent for issue in issues.values() if (parent := _linked(issue, "parent-child"))}
    new = NewTasks([_from_issue(number, issue, parents) for number, issue in enumerate(issues.values())])
    if left:
        new.remarks.append(f"{left} are closed or no work, and left out")
    return _without_unknown(new)


def _issue(number: int, line: str) -> dict[str, Any]:
    try:
        issue = json.loads(line)
        if not isinstance(issue, dict) or not isinstance(issue["id"], str) or not isinstance(issue["title"], str):
            raise TypeError("an issue needs an id and a title")
    except (ValueError, KeyError, TypeError) as error:
        raise Invalid(f"line {number} is not an issue of beads: {error!r}") from error
    return issue


def _from_issue(number: int, issue: dict[str, Any], parents: set[str]) -> dict[str, Any]:
    name = str(issue["id"])
    epic = name in parents or issue.get("issue_type") == "epic"
    words = [str(issue[each]) for each in ("description", "design", "acceptance_criteria", "notes") if issue.get(each)]
    priority = issue.get("priority", NORMAL)
    labels = issue.get("labels") or []
    parent = _linked(issue, "parent-child")
    return _new(
        number,
        _one_line(issue["title"]),
        task_id=id_of(name),
        kind="epic" if epic else "task",
        description="\n\n".join(words),
        needs=[id_of(each) for each in _links(issue, "blocks")],
        epic=id_of(parent) if parent else "",
        priority=priority if isinstance(priority, int) and 0 <= priority <= 4 else NORMAL,
        labels=[str(each) for each in labels] if isinstance(labels, list) else [],
    )


def _links(issue: dict[str, Any], kind: str) -> list[str]:
    """What it depends on, in that way. Versions of beads differ in the name of the field."""
    links = issue.get("dependencies")
    return [
        str(each.get("depends_on_id", ""))
        for each in (links if isinstance(links, list) else [])
        if isinstance(each, dict) and each.get("type", each.get("dep_type", "blocks")) == kind
    ]


def _linked(issue: dict[str, Any], kind: str) -> str:
    return next(iter(_links(issue, kind)), "")


def id_of(name: str) -> str:
    """Theirs where it can be ours: `bd-a3f8.1` becomes `bd-a3f8-1`."""
    clean = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    clean = clean if clean[:1].isalpha() else f"b-{clean}"
    if not NAME.fullmatch(clean):
        raise Invalid(f"the id {name[:60]!r} is too long to keep; shorten it")
    return clean
