"""A whole project at work: a real repository, the runtime with its tools, agents, and a log to ask afterwards."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from remuda.domain.commands import SpawnAgent
from remuda.domain.events import Recorded
from remuda.domain.lifecycle import FINISHED, TaskStatus, Work
from remuda.domain.task import NewTask, Task
from remuda.domain.task_commands import AddTasks
from remuda.runtime.runtime import Runtime
from remuda.whole import open_project
from waiting import until_shown

E = TypeVar("E")


class Site:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @property
    def tasks(self) -> Mapping[str, Task]:
        return self.runtime.loop.shown.tasks

    async def hire(self, backend: str, **wishes: Any) -> str:
        return await self.runtime.spawn(SpawnAgent("worker", backend, works=True, **wishes))

    async def add(self, *new: NewTask) -> None:
        await self.runtime.submit(AddTasks(new))

    async def until(self, check: Callable[[], bool], within: float) -> None:
        await until_shown(self.runtime, check, within)

    async def until_finished(self, within: float) -> None:
        """All tasks are, and nothing is owed to them any more. One that is blocked ends the wait, and the test."""
        await self.until(lambda: any(_is_blocked(each) for each in self.tasks.values()) or self.finished, within)
        assert {task.id: task.why for task in self.tasks.values() if _is_blocked(task)} == {}

    @property
    def finished(self) -> bool:
        return all(task.status in FINISHED and task.work is Work.NONE for task in self.tasks.values())

    async def events(self, kind: type[E]) -> list[E]:
        records: list[Recorded] = []
        while more := await self.runtime.store.read(records[-1].seq if records else 0, 10_000):
            records += more
        return [each.event for each in records if isinstance(each.event, kind)]


def _is_blocked(task: Task) -> bool:
    return task.status is TaskStatus.BLOCKED


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    async with open_project(folder) as runtime:
        yield Site(runtime)


def playbook(path: Path, turns: Iterable[tuple[str, list[dict[str, Any]]]]) -> tuple[tuple[str, str], ...]:
    """For the scripted agent: what it does when a prompt holds these words."""
    path.write_text(json.dumps({"turns": [{"when": when, "do": steps} for when, steps in turns]}))
    return (("playbook", str(path)),)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"name": tool, "arguments": arguments}}
