"""Orchestration: from an assignment to the prompt, tasks through the whole workflow, and what that leaves of the loop.

The peer is the least that could come to the same commits: a script that makes the worktree, writes the file, commits,
runs the acceptance command, rebases, runs it again, moves the branch and removes the worktree. It has no agents, asks
nobody for a review, keeps no log and can be killed at no point. For the way from an assignment to the prompt it makes
the worktree and starts the same agent in it.
"""

import asyncio
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.figure import Figure, interleaved, median, spread
from remuda.agents import Answered, Asked, Launch
from remuda.agents.catalog import backend
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import Recorded, TurnStarted
from remuda.domain.lifecycle import FINISHED, Work
from remuda.domain.task import Brief, NewTask
from remuda.domain.task_commands import AddTasks
from remuda.domain.task_events import TaskAssigned
from remuda.git.repository import head, open_repository
from remuda.git.worktree import mark_ready, prepare
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.whole import open_project

FILES = 2_000
WORKERS = 20
TASKS = 20
ASSIGNED = 10


def figures() -> list[Figure]:
    return [worktrees(), assign_to_prompt(), *workflow()]


# --- a worktree ---


def worktrees() -> Figure:
    with repository(FILES) as root:
        opened = open_repository(root)
        start, counter = head(opened), iter(range(1000))
        ours, bare = interleaved(
            7,
            lambda: _seconds(lambda: mark_ready(prepare(opened, f"ours{next(counter)}", start))),
            lambda: _seconds(lambda: bare_worktree(root, f"bare{next(counter)}")),
        )
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    peer = f"bare `git worktree add`: {median(bare) * 1000:.0f} ms; {median(ratios):.2f} × of it"
    goal = "≤ 1.5 × of bare"
    value = [each * 1000 for each in ours]
    name = f"orchestration.worktree_of_{FILES}_files"
    return Figure(name, median(value), "ms", spread(value), peer, goal, median(ratios) <= 1.5)


def bare_worktree(root: Path, name: str) -> Path:
    path = root.parent / "bare" / name
    git(root, "worktree", "add", "-q", "-b", f"bare/{name}", str(path))
    return path


# --- from an assignment to the prompt ---


def assign_to_prompt() -> Figure:
    with repository(100) as root:
        ours, bare = uvloop.run(_assigned(root))
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    peer = f"worktree and agent, started bare: {median(bare) * 1000:.0f} ms; {median(ratios):.2f} × of it"
    value = [each * 1000 for each in ours]
    ok = median(ratios) <= 3
    return Figure("orchestration.assign_to_prompt", median(value), "ms", spread(value), peer, "≤ 3 × of bare", ok)


async def _assigned(root: Path) -> tuple[list[float], list[float]]:
    bare: list[float] = []
    async with site(root, workers=2) as runtime:
        for number in range(ASSIGNED):
            bare.append(await _bare_start(root, f"start{number}"))
            await runtime.submit(AddTasks((_task(number),)))
            await _finished(runtime)
        records = await _log(runtime)
    return _latencies(records), bare


def _latencies(records: list[Recorded]) -> list[float]:
    found = []
    for index, record in enumerate(records):
        if isinstance(record.event, TaskAssigned):
            holder = record.event.holder
            prompts = (each for each in records[index:] if isinstance(each.event, TurnStarted))
            found.append(next(each.at for each in prompts if getattr(each.event, "agent", "") == holder) - record.at)
    return found


async def _bare_start(root: Path, name: str) -> float:
    began = time.perf_counter()
    path = await asyncio.to_thread(bare_worktree, root, name)
    launch = Launch("bare", 1, "scripted", path, f"bench-{name}-{began}")
    session = await backend("scripted")(launch, lambda _: None, _allow)
    seconds = time.perf_counter() - began
    await session.end(gentle=False)
    return seconds


async def _allow(_: Asked) -> Answered:
    return Answered(True)


# --- the whole workflow ---


def workflow() -> list[Figure]:
    busy: list[float] = []

    def with_agents() -> float:
        with repository(100) as root:
            seconds, share = uvloop.run(_worked(root))
            busy.append(share)
            return TASKS / seconds

    ours, bare = interleaved(3, with_agents, by_script)
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    peer = f"a script with two threads and no agents: {median(bare):.2g} tasks/s; {median(ratios):.2f} × of it"
    idle = [100 * (1 - each) for each in busy]
    name = f"orchestration.tasks_with_{WORKERS}_workers"
    return [
        Figure(name, median(ours), "tasks/s", spread(ours), peer, "≥ 0.1 × of the script", median(ratios) >= 0.1),
        Figure(
            "orchestration.loop_idle",
            median(idle),
            "% of the time",
            spread(idle),
            f"the same run: {WORKERS} workers, {TASKS} tasks",
            "≥ 50",
            median(idle) >= 50,
        ),
    ]


async def _worked(root: Path) -> tuple[float, float]:
    """Seconds for all tasks, and the share of them in which the loop's thread was at work."""
    async with site(root, workers=WORKERS) as runtime:
        began, at_work = time.perf_counter(), time.thread_time()
        await runtime.submit(AddTasks(tuple(_task(number) for number in range(TASKS))))
        await _finished(runtime)
        seconds = time.perf_counter() - began
        return seconds, (time.thread_time() - at_work) / seconds


def by_script() -> float:
    with repository(100) as root:
        git(root, "branch", "merged")
        merging = threading.Lock()

        def one(number: int) -> None:
            path = bare_worktree(root, f"w{number}")
            (path / f"{number}.txt").write_text("done\n")
            git(path, "add", "--all")
            git(path, "commit", "-q", "-m", f"Task {number}")
            accepted(path, number)
            with merging:
                git(path, "rebase", "-q", "merged")
                accepted(path, number)
                git(root, "update-ref", "refs/heads/merged", f"bare/w{number}")
            git(root, "worktree", "remove", str(path))

        def everything() -> None:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(one, range(TASKS)))

        return TASKS / _seconds(everything)


def accepted(path: Path, number: int) -> None:
    subprocess.run(["/bin/sh", "-c", f"test -e {number}.txt"], cwd=path, check=True)


# --- what they share ---


def _task(number: int) -> NewTask:
    return NewTask(Brief(f"Task {number}", accept=(f"test -e {number}.txt",)))


def _playbook(path: Path) -> tuple[tuple[str, str], ...]:
    verdict = {"name": "report_review_verdict", "arguments": {"verdict": "APPROVED", "comments": "Good."}}
    done = {"name": "report_implementation_complete", "arguments": {"summary": "Done."}}
    turns: list[dict[str, Any]] = [{"when": "Review the task", "do": [{"call": verdict}]}]
    for number in range(max(TASKS, ASSIGNED)):
        steps = [{"write": {"path": f"{number}.txt", "text": "done\n"}}, {"call": done}]
        turns.append({"when": f": Task {number}\n", "do": steps})
    path.write_text(json.dumps({"turns": turns}))
    return (("playbook", str(path)),)


@asynccontextmanager
async def site(root: Path, *, workers: int) -> AsyncIterator[Runtime]:
    options = _playbook(root.parent / "playbook.json")
    # Else those whose work is done would be let go between two tasks, and nobody would be left to review.
    (root / "remuda.toml").write_text("[watch]\nidle = false\n")
    async with open_project(make_place(root).root) as runtime:
        await asyncio.gather(
            *(runtime.spawn(SpawnAgent("worker", "scripted", options=options)) for _ in range(workers))
        )
        yield runtime


async def _finished(runtime: Runtime) -> None:
    async with asyncio.timeout(600):
        while not all(_is_over(task.status in FINISHED, task.work) for task in runtime.loop.shown.tasks.values()):
            await runtime.store.past(runtime.loop.shown.seq)
            await asyncio.sleep(0)


def _is_over(finished: bool, work: Work) -> bool:
    return finished and work is Work.NONE


async def _log(runtime: Runtime) -> list[Recorded]:
    records: list[Recorded] = []
    while more := await runtime.store.read(records[-1].seq if records else 0, 10_000):
        records += more
    return records


@contextmanager
def repository(files: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        git(root, "init", "-q", "--initial-branch=main")
        git(root, "config", "user.name", "Bench")
        git(root, "config", "user.email", "bench@example.org")
        for number in range(files):
            path = root / f"d{number % 20}" / f"f{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number}\n" * 50)
        git(root, "add", "--all")
        git(root, "commit", "-q", "-m", "Begin")
        yield root


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
