"""Follows a run: tells what happens, and knows when it is over or gets no further."""

import json
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from remuda.cli.project import read
from remuda.cli.say import out
from remuda.domain.lifecycle import FINISHED
from remuda.runtime.place import Place
from remuda.views.text import first_line, moment, neutral

LOOK_EVERY = 0.25  # seconds
GRACE = 5.0  # seconds in which nothing moves before we say so
LAST_WORDS = 60.0  # seconds that whoever coordinates has to say that all is done, when it is
UNDER_WAY = ("preparing", "checking", "merging")

# type of event -> what to say of it, with the event's own fields
TOLD = {
    "task_added": "{task} is new: {message}",
    "task_assigned": "{task} goes to {agent}",
    "task_released": "{task} is taken from {agent}: {why}",
    "implementation_reported": "{agent} reports {task} complete: {message}",
    "review_assigned": "{task} is reviewed by {agent}",
    "merge_requested": "{task} is approved and being merged",
    "task_merged": "{task} is merged: {commit:.12}",
    "merge_refused": "{task} could not be merged: {why}",
    "work_failed": "{task}: {error}",
    "turn_let_through": "{agent}: {why}",
    "reminded": "{agent} is reminded to say where its work stands",
    "user_notified": "{agent} tells you: {message}",
    "completion_signalled": "{agent} says that all is done: {message}",
    "question_asked": "{agent} asks whether it may use {tool}; `remuda answer` lists what waits for you",
    "rest_began": "{agent} rests: {failure}",
    "spawned": "{agent} is spawned, on {backend}",
    "died": "{agent} is {status}: {why}",
    "error": "{agent}: {error}",
}
BY_OK = {
    ("acceptance_run", True): "{task} has passed its checks",
    ("acceptance_run", False): "{task} has not passed its checks: {why}",
    ("verdict_given", True): "{agent} approves {task}: {message}",
    ("verdict_given", False): "{agent} denies {task}: {message}",
}


class Progress:
    def __init__(
        self, place: Place, scope: list[str], coordinators: Iterable[str] = (), *, after: int, quiet: bool
    ) -> None:
        self.stuck = False
        self._place = place
        self._scope = set(scope)
        self._coordinators = set(coordinators)  # who have not said yet that all is done
        self._after = after
        self._quiet = quiet
        self._moved_at = time.monotonic()

    def follow(self) -> None:
        """Until all is finished, or nothing moves any more."""
        while not self._over():
            time.sleep(LOOK_EVERY)
        self._tell()

    def _over(self) -> bool:
        told = self._tell()
        tasks = self.tasks()
        now = time.monotonic()
        if all(each["status"] in FINISHED for each in tasks):
            return not self._at_it(self._coordinators) or now - self._moved_at > LAST_WORDS
        if told or self._moving(tasks):
            self._moved_at = now
        self.stuck = now - self._moved_at > GRACE
        return self.stuck

    def tasks(self) -> list[dict[str, Any]]:
        """Those of the run, with the parts of what was taken apart and what they wait for."""
        rows: list[dict[str, Any]] = json.loads(read(self._place, "/v1/tasks", {"all": True}))["tasks"]
        known = {each["id"]: each for each in rows}
        reached = list(self._scope)
        for name in reached:
            more = [*known[name]["waits_for"], *(each["id"] for each in rows if each["epic"] == name)]
            reached += [each for each in more if each not in reached]
        return [each for each in rows if each["id"] in reached]

    def _moving(self, tasks: list[dict[str, Any]]) -> bool:
        if any(each["work"] in UNDER_WAY for each in tasks):
            return True
        return self._at_it()

    def _at_it(self, names: Collection[str] | None = None) -> bool:
        """Whether anybody, or one of these, has something to say or is about to be told something."""
        return any(
            each["status"] in ("starting", "working") or (each["status"] == "ready" and each["queue_count"])
            for each in json.loads(read(self._place, "/v1/agents"))["agents"]
            if names is None or each["name"] in names
        )

    def _tell(self) -> bool:
        """What has happened since; whether anything has."""
        page = json.loads(read(self._place, "/v1/events", {"after": self._after, "limit": 1000}))
        moved: bool = page["next"] > self._after
        self._after = page["next"]
        for event in page["events"]:
            if event["type"] == "completion_signalled":  # what it is told from here on it need not answer
                self._coordinators.discard(event["agent"])
            for line in words(event) if not self._quiet else ():
                out(line)
        return moved


def words(event: dict[str, Any]) -> Iterator[str]:
    """For people; nothing where it would only be noise."""
    kind = event["type"]
    template = BY_OK.get((kind, event.get("ok", False))) or TOLD.get(kind)
    if kind == "task_released" and event.get("why") == "merged":
        return  # that it is merged was just said
    if kind == "task_status_changed" and event["task_status"] in ("blocked", "done", "cancelled", "decomposed"):
        template = "{task} is {task_status}: {why}"
    if template:
        fields = {name: first_line(value, 160) if isinstance(value, str) else value for name, value in event.items()}
        yield neutral(f"{moment(event['at'])}  {template.format_map(_Blank(fields))}")


class _Blank(dict[str, Any]):
    """What an event leaves out is empty."""

    def __missing__(self, key: str) -> str:
        return ""
