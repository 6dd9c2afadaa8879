"""From an idea to commits, in one go."""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click

from remuda.cli.down import LOOK_EVERY, PATIENCE, stop, wait_for_end
from remuda.cli.project import Answered, agent_path, read, write
from remuda.cli.run_report import Report, report_of, report_text
from remuda.cli.run_watch import Progress
from remuda.cli.say import json_option, note, out, out_json
from remuda.cli.task_files import form_of
from remuda.cli.up import place_here, start
from remuda.cli.words import from_file, text_of
from remuda.domain.errors import EffectFailed, Invalid, RemudaError
from remuda.domain.lifecycle import FINISHED
from remuda.domain.task_decide import LONGEST_TITLE
from remuda.runtime.config import load_settings
from remuda.runtime.place import Place, find_holder
from remuda.views.task_files import parse

INTERRUPTED = 130
COORDINATES = "coordinator-of-"  # and the epic: so a later run knows the one that an earlier one has hired
PAUSED = "the run was interrupted"
TO_PAUSE = frozenset({"ready", "working"})
ON_THE_WAY = frozenset({"pending", "starting"})

COORDINATE = """\
You coordinate the work on this project; you write no code yourself. The idea is the epic {epic}:

{idea}

Take it apart into tasks that one worker can do in one sitting each, with what they need of one another. Then assign
them, have each reviewed by another worker than its author, and approve or send back. You are told when something has
happened; end your turn when there is nothing to decide. When all is done, signal that it is complete.
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was said on the command line."""

    idea: str
    accept: tuple[str, ...]
    task_file: str
    workers: int
    backend: str
    model: str
    coordinator: str
    reviewed: bool


@click.command()
@click.argument("idea", default="")
@click.option("--accept", multiple=True, metavar="COMMAND", help="Must succeed before anything is done; repeatable.")
@click.option("--task-file", default="", help="Tasks to do: a checklist (.md), of beads (.jsonl), or exported by us.")
@click.option("--workers", type=click.IntRange(1, 1000), default=2, show_default=True, help="How many work at once.")
@click.option("--backend", default="", help="Who runs them; otherwise the project's own (remuda.toml).")
@click.option("--model", default="", help="The backend's name of a model.")
@click.option("--coordinator", default="", metavar="BACKEND", help="Have an agent plan and direct the work.")
@click.option("--review/--no-review", "review", default=None, help="Otherwise as the settings say.")
@json_option
def run(review: bool | None, as_json: bool, **given: Any) -> None:
    """Turn an IDEA into reviewed, verified commits by several agents, and show how it goes.

    Without an idea it goes on with what is not finished. Ctrl-C pauses; the next run goes on. Exit codes: 0 all is
    done, 1 some of it is not, 130 interrupted.
    """
    place = place_here()
    reviewed = load_settings(place.settings).tasks.review == "other" if review is None else review
    wishes = Wishes(reviewed=reviewed, **given)
    if wishes.reviewed and wishes.workers < 2:
        raise Invalid("nobody reviews their own work: take --workers 2 or more, or say --no-review")
    for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal is a pause too
        signal.signal(number, signal.default_int_handler)
    ours = find_holder(place) is None
    try:
        if ours:
            start(place)
        report = _run(place, wishes, quiet=as_json)
        out_json(report.as_json()) if as_json else out(report_text(report))
        if ours:
            _stop_ours(place)
    except KeyboardInterrupt:
        _interrupted(place, ours)
        raise SystemExit(INTERRUPTED) from None
    except Exception:
        if ours:
            _stop_ours(place)
        raise
    if not report.done:
        raise SystemExit(1)


def _run(place: Place, wishes: Wishes, *, quiet: bool) -> Report:
    health = json.loads(read(place, "/v1/health"))
    before = {each["name"] for each in _agents(place)}
    staff = {"workers": wishes.workers, "backend": wishes.backend, "model": wishes.model, "reviewed": wishes.reviewed}
    write(place, "/v1/staff", staff)  # first: if there is no such backend, nothing else has happened
    try:
        scope = _tasks_for(place, wishes)
    except RemudaError:
        write(place, "/v1/staff", {"workers": 0})
        raise
    _resume(place)
    progress = Progress(place, scope, {f"{COORDINATES}{each}" for each in scope}, after=health["seq"], quiet=quiet)
    progress.follow()
    write(place, "/v1/staff", {"workers": 0})
    report = report_of(place, progress)
    _let_go(place, before, report)
    return report


def _let_go(place: Place, before: set[str], report: Report) -> None:
    """The workers that came with this run, and whoever coordinated what is done now: while one lives, nobody else
    gives work out."""
    finished = {f"{COORDINATES}{each['task']['id']}" for each in report.tasks if each["task"]["status"] in FINISHED}
    for each in _agents(place):
        name = each["name"]
        if name in finished or (name not in before and each["phase"] == "idle"):
            write(place, agent_path(name, "retire"), {"why": "the run is over"})


def _agents(place: Place) -> list[dict[str, Any]]:
    agents: list[dict[str, Any]] = json.loads(read(place, "/v1/agents"))["agents"]
    return agents


# --- what is to be done ---


def _tasks_for(place: Place, wishes: Wishes) -> list[str]:
    """The tasks of this run: new ones, or those that an earlier run has left."""
    unfinished: list[dict[str, Any]] = json.loads(read(place, "/v1/tasks"))["tasks"]
    if wishes.task_file:
        return _from_file(place, wishes, {each["id"] for each in unfinished})
    if not wishes.idea.strip():
        if not unfinished:
            raise Invalid("say what is to be done: remuda run IDEA, or --task-file FILE")
        return [each["id"] for each in unfinished]
    idea = text_of("the idea", wishes.idea.strip())
    title = idea.splitlines()[0][:LONGEST_TITLE]
    for each in unfinished:
        if each["title"] == title:
            note(f"{each['id']} is that idea, and not finished yet; going on with it")
            return [each["id"]]
    kind = "epic" if wishes.coordinator else "task"
    brief = {"title": title, "description": idea if idea != title else "", "accept": list(wishes.accept)}
    added: list[str] = write(place, "/v1/tasks", {"tasks": [{"kind": kind, "brief": brief}]})["added"]
    if wishes.coordinator:
        message = COORDINATE.format(epic=added[0], idea=idea)
        agent = {"role": "coordinator", "name": f"{COORDINATES}{added[0]}", "backend": wishes.coordinator}
        write(place, "/v1/agents", {**agent, "message": message})
    return added


def _from_file(place: Place, wishes: Wishes, known: set[str]) -> list[str]:
    file = wishes.task_file
    new = parse(from_file("the tasks", file), form_of(file), accept=wishes.accept)
    for remark in new.remarks:
        note(remark)
    there = [each["id"] for each in new.tasks if each["id"] in known]
    tasks = [each for each in new.tasks if each["id"] not in known]
    if not tasks and not there:
        raise Invalid(f"there is no task to do in {file}")
    return [*there, *(write(place, "/v1/tasks", {"tasks": tasks})["added"] if tasks else [])]


# --- now and later ---


def _interrupted(place: Place, ours: bool) -> None:
    """Once is a pause. Twice is impatience: we leave, and say what goes on without us. So a runtime of our own is told
    before anything else, in a way that needs no answer."""
    holder = find_holder(place) if ours else None
    if holder is not None:
        with suppress(ProcessLookupError):
            os.kill(holder.pid, signal.SIGTERM)
    try:
        _say("pausing; again, and this ends without waiting for it")
        if holder is not None:
            wait_for_end(place, holder)
        elif not ours:
            _pause(place)
        _say("paused; `remuda run` goes on with it")
    except KeyboardInterrupt:
        if ours:
            _say("the runtime is stopping by itself; `remuda run` goes on with it")
        else:
            _say("some may still be at work; `remuda ps` shows them, `remuda down` stops them all")


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal may be gone, which may be why
        if sys.stderr.isatty():
            click.echo(err=True)  # after the ^C that stands there
        note(text)


def _stop_ours(place: Place) -> None:
    """Nothing is lost by it."""
    holder = find_holder(place)
    if holder is not None:
        stop(place, holder)


def _pause(place: Place) -> None:
    """In a runtime that others use, only those are paused who work for us: the workers, and whoever a run has hired to
    coordinate. One that is starting cannot be paused yet, and would be at work as soon as it can."""
    if find_holder(place) is None:
        return
    write(place, "/v1/staff", {"workers": 0})
    until = time.monotonic() + PATIENCE
    while active := [each for each in _agents(place) if _of_ours(each) and each["status"] in TO_PAUSE | ON_THE_WAY]:
        for each in active:
            if each["status"] in TO_PAUSE:
                with suppress(Answered):  # it has gone on meanwhile; we look again
                    write(place, agent_path(each["name"], "pause"), {"why": PAUSED})
        if time.monotonic() > until:
            names = ", ".join(each["name"] for each in active)
            raise EffectFailed(f"not paused yet: {names}; `remuda ps` shows them, `remuda down` stops them all")
        time.sleep(LOOK_EVERY)


def _of_ours(agent: dict[str, Any]) -> bool:
    return bool(agent["phase"]) or agent["name"].startswith(COORDINATES)


def _resume(place: Place) -> None:
    for each in _agents(place):
        if each["status"] == "paused" and each["why"] == PAUSED:
            write(place, agent_path(each["name"], "resume"))
