"""What came of a run: what is done and where it is, what is not and why, what to do next."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from remuda.cli.project import read
from remuda.cli.run_watch import Progress
from remuda.runtime.place import Place
from remuda.views.text import first_line, neutral, usd


@dataclass(frozen=True, slots=True)
class Report:
    done: bool
    tasks: list[dict[str, Any]] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)
    tokens: int = 0
    cost_usd: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def report_of(place: Place, progress: Progress) -> Report:
    tasks = [json.loads(read(place, f"/v1/tasks/{each['id']}")) for each in progress.tasks()]
    agents = json.loads(read(place, "/v1/agents", {"all": True}))["agents"]
    costs = [each["cost_usd"] for each in agents]
    known = [each for each in costs if each is not None]
    return Report(
        done=all(each["task"]["status"] == "done" for each in tasks),
        tasks=tasks,
        next_steps=_next_steps(tasks),
        tokens=sum(each["tokens"] for each in agents),
        cost_usd=sum(known) if known or not costs else None,
    )


def _next_steps(tasks: list[dict[str, Any]]) -> list[str]:
    steps = [each["merge"]["next_step"] for each in tasks if each["merge"] and each["merge"]["next_step"]]
    left = [each["task"]["id"] for each in tasks if each["task"]["status"] not in ("done", "cancelled")]
    stopped = [f"remuda task show {name}" for name in left]
    blocked = [each["task"]["id"] for each in tasks if each["task"]["status"] == "blocked"]
    again = [f"remuda task reopen {name}" for name in blocked]
    return list(dict.fromkeys([*steps, *stopped, *again, *(["remuda run"] if left else [])]))


def report_text(report: Report) -> str:
    lines = ["", "All is done." if report.done else "Not all of it is done."]
    for each in report.tasks:
        task, merge = each["task"], each["merge"]
        lines.append(f"  {task['id']:<6} {task['status']:<12} {first_line(task['title'], 80)}")
        if merge:
            lines.append(f"         {merge['commit'][:12]} in {merge['target']}, by {', '.join(each['authors'])}")
        elif task["why"] and task["status"] != "open":
            lines.append(f"         {first_line(task['why'], 160)}")
        if task["waits_for"]:
            lines.append(f"         waits for {', '.join(task['waits_for'])}")
        if each["kept"]:
            lines.append(f"         its worktree is kept in {each['folder']}: {first_line(each['kept'], 160)}")
    lines.append(f"  {report.tokens} tokens, {usd(report.cost_usd)}")
    if report.next_steps:
        lines += ["Next:", *(f"  {step}" for step in report.next_steps)]
    return "\n".join(neutral(line) for line in lines)
