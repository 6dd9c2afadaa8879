"""Whether processes do anything, told by what they use: real ones, with and without children."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from e2e.work_kit import Site, playbook, site
from remuda.agents.activity import BUSY_BYTES, Activity, activity, busy
from remuda.agents.strays import MARK
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import SessionEnded
from remuda.domain.failure import Failure
from remuda.effects.live import Live
from waiting import until, until_true

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

BURN = "while :; do :; done"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def mark() -> str:
    return f"test/{uuid.uuid4().hex[:8]}"


@pytest.fixture
def start(mark: str) -> Iterator[Start]:
    children: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen(argv, env={**os.environ, MARK: mark}, start_new_session=True))
        return children[-1]

    yield begin
    for child in children:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


async def active(mark: str, seconds: float) -> bool:
    """Whether it comes to be busy by the measure of so many seconds, from the first look on."""
    first = activity(mark)
    await until(lambda: busy(first, activity(mark), seconds))
    return True


def _heard_since(live: Live, then: float) -> bool:
    return live.heard_at > then


def test_one_that_waits_does_nothing_and_one_that_computes_does(mark: str, start: Start) -> None:
    assert activity(mark) == Activity()
    child = start("sleep", "100")
    until_true(lambda: activity(mark).pids)  # its surroundings can be read a moment after it has begun
    first = activity(mark)
    assert first.pids == {child.pid}
    assert not busy(first, activity(mark), 1.0)
    start("sh", "-c", BURN)
    until_true(lambda: busy(first, activity(mark), 1000.0))  # it has started something
    assert asyncio.run(active(mark, 1.0))


def test_what_a_child_does_that_has_lost_its_mark_counts_too(mark: str, start: Start) -> None:
    parent = start("sh", "-c", f"env -u {MARK} sh -c '{BURN}' & wait")
    asyncio.run(_until_two(mark))
    assert parent.pid in activity(mark).pids
    assert asyncio.run(active(mark, 1.0))


async def _until_two(mark: str) -> None:
    await until(lambda: len(activity(mark).pids) >= 2)


def test_a_program_that_copies_is_busy_though_it_computes_little(mark: str, start: Start) -> None:
    start("dd", "if=/dev/zero", "of=/dev/null", f"bs={BUSY_BYTES}")
    first = activity(mark)

    async def moved() -> None:
        await until(lambda: activity(mark).bytes > first.bytes + BUSY_BYTES)

    asyncio.run(moved())
    assert busy(first, activity(mark), 1e9)


def test_that_a_process_has_ended_is_no_activity() -> None:
    assert not busy(Activity(frozenset({1, 2}), 50.0, 10**9), Activity(frozenset({1}), 1.0, 0), 10.0)


# --- in a turn ---


@pytest.mark.timeout(120)
def test_an_agent_that_says_nothing_while_its_build_runs_is_left_alone_and_given_up_when_nothing_runs(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    (root / ".remuda").mkdir(parents=True)
    (root / "remuda.toml").write_text("[turns]\nsilence_seconds = 1.5\nrecords = 'off'\n")
    build = {"spawn": ["sh", "-c", f"echo $$ > build.pid; {BURN}"]}
    options = playbook(tmp_path / "book.json", [("", [build, {"hang": True}])])

    async def story(at: Site) -> None:
        name = await at.runtime.spawn(SpawnAgent("crew", "scripted", options=options))
        await at.runtime.send(name, "build it")
        file = root / "build.pid"
        await until(lambda: file.exists() and file.read_text().endswith("\n"))
        live = at.runtime.world.live[name]
        await until(lambda: not live.waits)
        for _ in range(2):  # it is noticed to be at work, again and again, and nothing else is heard of it
            heard, said = live.heard_at, live.ring.last(3)
            await until(partial(_heard_since, live, heard))
        assert live.ring.last(3) == said
        assert at.runtime.agent(name).crashes == 0
        os.kill(int(file.read_text()), signal.SIGKILL)
        await at.until(lambda: at.runtime.agent(name).crashes == 1, 60)
        (ended,) = await at.events(SessionEnded)
        assert ended.failure is Failure.SILENT

    async def whole() -> None:
        async with site(root) as at:
            await story(at)

    asyncio.run(whole())
