"""Bodies, put together from the log, the transcripts and git."""

import asyncio
from collections.abc import Awaitable, Callable

from remuda.domain.draft import find
from remuda.domain.due import Debtors
from remuda.domain.errors import EffectFailed, Refused
from remuda.domain.events import Recorded
from remuda.domain.lifecycle import DEAD
from remuda.domain.state import Agent
from remuda.domain.task import Task
from remuda.git import ask
from remuda.runtime.place import Place
from remuda.store.transcript import last_lines
from remuda.views.body import Body, Remains, body, last_task, of_agent

LINES = 20  # of its last output
AT_ONCE = 10_000  # events
LONGEST_DIFF = 200_000  # characters

Read = Callable[[int, int], Awaitable[list[Recorded]]]


async def body_of(place: Place, read: Read, known: Debtors, name: str) -> Body:
    agent = find(known.agents, name)
    if agent.status not in DEAD:
        raise Refused(f"{name} is {agent.status}; only the dead leave a body: see `remuda show {name}`")
    story = await story_of(read, name)
    task = known.tasks.get(last_task(story))
    remains = await asyncio.to_thread(_remains, place, agent, task)
    return body(agent, story, known.tasks, remains)


async def story_of(read: Read, name: str) -> list[Recorded]:
    story: list[Recorded] = []
    after = 0
    while records := await read(after, AT_ONCE):
        after = records[-1].seq
        story += of_agent(name, records)
    return story


def _remains(place: Place, agent: Agent, task: Task | None) -> Remains:
    folder = place.transcripts / agent.name
    files = sorted(str(each.relative_to(place.root)) for each in folder.glob("*.jsonl"))
    return Remains(last_lines(place.transcripts, agent.name, LINES), files, _diff(place, task))


def _diff(place: Place, task: Task | None) -> str:
    """Of the task's branch against where it began, and of what was not committed; else of the project's own folder."""
    try:
        if task is None or not task.branch:
            return _said(place, "HEAD")
        base = task.base or task.brief.target or "HEAD"
        committed = _said(place, f"{base}...{task.branch}")
        where = place.root / task.folder if task.folder else None
        loose = ask(where, "diff", "HEAD").out.decode(errors="replace") if where and where.is_dir() else ""
        return (committed + loose)[:LONGEST_DIFF]
    except EffectFailed as error:
        return f"(no diff: {error})"


def _said(place: Place, what: str) -> str:
    answered = ask(place.root, "diff", what, "--")
    return answered.out.decode(errors="replace")[:LONGEST_DIFF] if answered.code == 0 else ""
