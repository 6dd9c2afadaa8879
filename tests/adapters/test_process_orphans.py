"""Orphans of an agent come to the runtime, and none of them stays a zombie."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder, alive, fresh_mark, launch_in
from remuda.agents import orphans
from remuda.agents.ladder import rungs
from remuda.agents.process import Child
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a child subreaper is Linux's")

# Leaves a grandchild behind in a session of its own, which says its number and lives on as long as told.
ABANDON = """
import subprocess
p = subprocess.Popen({}, start_new_session=True, stdin=subprocess.DEVNULL)
print(p.pid, flush=True)
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_an_orphan_becomes_our_child_and_leaves_no_zombie(tmp_path: Path) -> None:
    async def story() -> None:
        lines: list[object] = []
        with orphans.adopting():
            child = await Child.start(python(ABANDON.format(["cat"])), launch_in(tmp_path), Recorder(), lines.append)
            await until(lambda: bool(lines))
            left = int(str(lines[0]))
            sleeper = await Child.start(
                python(ABANDON.format(["sleep", "600"])), launch_in(tmp_path), Recorder(), lines.append
            )
            await sleeper.gone()
            stray = next(int(each) for each in reversed(lines) if isinstance(each, str))
            assert parent_of(stray) == os.getpid()
            await until(lambda: not Path(f"/proc/{left}").exists())  # `cat` ended by itself, with nobody to ask for it
            await sleeper.end(gentle=False)
            await until(lambda: not Path(f"/proc/{stray}").exists())
            await child.end(gentle=False)

    asyncio.run(story())


def test_the_kernel_is_asked_only_for_the_time_of_the_block() -> None:
    async def story() -> tuple[bool, bool]:
        before = orphans.subreaper()
        with orphans.adopting():
            inside = orphans.subreaper()
        assert orphans.subreaper() == before
        return before, inside

    assert asyncio.run(story()) == (False, True)


def test_how_our_own_children_ended_is_not_taken_from_who_started_them(tmp_path: Path) -> None:
    """Somebody looks for orphans all the time; every exit code still arrives where it is waited for."""
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            orphans.reap()

    async def story() -> list[int | None]:
        async def one(number: int) -> int | None:
            launch = launch_in(tmp_path, mark=f"{mark}-{number}")
            child = await Child.start(["sh", "-c", "exit 7"], launch, Recorder(), lambda _: None)
            await child.gone()
            return (await child.end(gentle=True)).returncode

        mark = fresh_mark()
        with orphans.adopting():
            return await asyncio.gather(*(one(number) for number in range(30)))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        ours = [subprocess.run(["sh", "-c", "exit 5"], check=False).returncode for _ in range(10)]
        assert asyncio.run(story()) == [7] * 30
        assert ours == [5] * 10
    finally:
        stop.set()
        looking.join()


def test_zombies_that_a_child_leaves_are_no_hindrance(tmp_path: Path) -> None:
    """A program that never asks for its own dead is full of zombies; they go when it does."""
    code = (
        "import subprocess, sys\n"
        "dead = [subprocess.Popen(['true'], start_new_session=bool(n % 2)) for n in range(20)]\n"
        "print(*(p.pid for p in dead), flush=True)\n"
        "sys.stdin.read()\n"
    )

    async def story() -> None:
        lines: list[object] = []
        with orphans.adopting():
            child = await Child.start(python(code), launch_in(tmp_path), Recorder(), lines.append)
            await until(lambda: bool(lines))
            dead = [int(each) for each in str(lines[0]).split()]
            await until(lambda: not any(alive(pid) for pid in dead))
            assert all(orphans.state_of(pid) is not None for pid in dead)
            ended = await child.end(gentle=False)
            assert ended.left == ()
            await until(lambda: all(orphans.state_of(pid) is None for pid in dead))

    asyncio.run(story())


def test_every_rung_is_named_and_one_that_does_not_hold_says_why() -> None:
    found = rungs()
    assert [rung.name for rung in found] == ["cgroup", "subreaper", "group", "pdeathsig", "mark"]
    assert all(rung.in_force == (not rung.why_not) for rung in found)
    assert {rung.name for rung in found if rung.in_force} >= {"subreaper", "group", "mark"}
