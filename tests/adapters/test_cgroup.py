"""A cgroup for each session: whatever its program does to hide, it is found and ended."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.agent_kit import WITHIN, Recorder, alive, fresh_mark, launch_in
from remuda.agents import Ended, cgroup
from remuda.agents.cgroup import Leaf
from remuda.agents.process import Child, sweep
from remuda.domain.errors import EffectFailed
from waiting import until

HERE = cgroup.why_not()
needs_cgroup = pytest.mark.skipif(bool(HERE), reason=f"NO CGROUP, THE FIRST RUNG IS UNTESTED: {HERE}")

# Forks twice, leaves the session, forgets its environment: neither the group nor the mark knows it any more.
VANISH = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sh", ["sh", "-c", "echo $$; exec sleep 600"], {{"PATH": os.environ["PATH"]}})
    os._exit(0)
{}
"""
# Is never twice the same process: by the time its number is read it has gone on as another.
RUN_AWAY = """
import os, sys, time
print(os.getpid(), flush=True)
if os.fork():
    sys.stdin.read()
os.setsid()
while True:
    if os.fork():
        os._exit(0)
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, heard: object) -> None:
        if isinstance(heard, str):
            self.lines.append(heard)


async def start(folder: Path, code: str, heard: Heard, mark: str) -> Child:
    return await Child.start(python(code), launch_in(folder, mark=mark), Recorder(), heard)


def leaf_of(mark: str) -> Leaf:
    base = cgroup.base()
    assert isinstance(base, Path)
    return Leaf(base / f"remuda.{mark}")


@pytest.fixture
def mark() -> Iterator[str]:
    made = fresh_mark()
    yield made
    sweep(made)


# --- where it is ---

HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
IN_CONTAINER = "55 50 0:30 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("mounts", "membership", "folder"),
    [
        (HYBRID, "4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified"),
        (HYBRID, "0::/user.slice/a.scope\n", "/sys/fs/cgroup/unified/user.slice/a.scope"),
        (IN_CONTAINER, "0::/docker/abc/job\n", "/sys/fs/cgroup/job"),
        ("41 31 0:38 / /with\\040space rw - cgroup2 none rw\n", "0::/a\n", "/with space/a"),
    ],
    ids=["at the root", "in a scope", "in a container", "a space in the path"],
)
def test_our_own_cgroup_is_found(mounts: str, membership: str, folder: str) -> None:
    assert cgroup.find(mounts, membership) == Path(folder)


@pytest.mark.parametrize(
    ("mounts", "membership", "why"),
    [
        (HYBRID, "4:memory:/x\n", "no cgroup v2"),
        ("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n", "is mounted"),
        (IN_CONTAINER, "0::/elsewhere\n", "is mounted"),
    ],
    ids=["only v1", "not mounted", "we are outside of what is mounted"],
)
def test_what_is_missing_is_said(mounts: str, membership: str, why: str) -> None:
    with pytest.raises(EffectFailed, match=why):
        cgroup.find(mounts, membership)


def test_a_folder_that_is_no_cgroup_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cgroup.NAMED_BY, str(tmp_path / "nowhere"))
    cgroup.base.cache_clear()
    try:
        assert "nowhere" in cgroup.why_not()
        with pytest.raises(EffectFailed, match="nowhere"):
            cgroup.make(fresh_mark())
    finally:
        monkeypatch.undo()
        cgroup.base.cache_clear()


# --- what it holds ---


@needs_cgroup
def test_the_program_is_inside_before_its_first_instruction(tmp_path: Path, mark: str) -> None:
    async def story() -> list[str]:
        heard = Heard()
        children = [
            await Child.start(["cat", "/proc/self/cgroup"], launch_in(tmp_path, mark=f"{mark}{n}"), Recorder(), heard)
            for n in range(20)
        ]
        await asyncio.gather(*(child.gone() for child in children))
        await asyncio.gather(*(child.end(gentle=False) for child in children))
        return heard.lines

    own = [line for line in asyncio.run(story()) if line.startswith("0::")]
    assert sorted(line.rpartition("/")[2] for line in own) == sorted(f"remuda.{mark}{n}" for n in range(20))


@needs_cgroup
@pytest.mark.parametrize("leader", ["sys.stdin.read()", "sys.exit(3)"], ids=["its parent lives", "its parent is gone"])
def test_one_that_forks_twice_and_forgets_its_environment_is_ended(tmp_path: Path, mark: str, leader: str) -> None:
    async def story() -> Ended:
        heard = Heard()
        child = await start(tmp_path, VANISH.format(leader), heard, mark)
        await until(lambda: bool(heard.lines))
        vanished = int(heard.lines[0])
        assert alive(vanished)
        ended = await child.end(gentle=False)
        assert not alive(vanished)
        return ended

    assert "killed 1 stray" in asyncio.run(story()).detail
    assert not leaf_of(mark).folder.exists()


@needs_cgroup
def test_one_that_runs_away_by_forking_is_caught(tmp_path: Path, mark: str) -> None:
    async def story() -> Ended:
        heard = Heard()
        child = await start(tmp_path, RUN_AWAY, heard, mark)
        await until(lambda: bool(heard.lines))
        async with asyncio.timeout(WITHIN):
            return await child.end(gentle=False)

    assert asyncio.run(story()).left == ()
    assert not leaf_of(mark).folder.exists()


@needs_cgroup
def test_cgroups_that_the_program_made_inside_its_own_go_too(tmp_path: Path, mark: str) -> None:
    async def story() -> None:
        heard = Heard()
        child = await start(tmp_path, VANISH.format("sys.stdin.read()"), heard, mark)
        await until(lambda: bool(heard.lines))
        deep = leaf_of(mark).folder / "a" / "b"
        deep.mkdir(parents=True)
        Leaf(deep).admit(int(heard.lines[0]))
        assert int(heard.lines[0]) in leaf_of(mark).pids()
        await child.end(gentle=False)
        assert not alive(int(heard.lines[0]))

    asyncio.run(story())
    assert not leaf_of(mark).folder.exists()


@needs_cgroup
def test_a_sweep_ends_what_an_earlier_runtime_left_and_takes_the_empty_ones_away(mark: str) -> None:
    stray = subprocess.Popen(["sleep", "600"])  # it has no mark: only the cgroup tells whose it is
    left, empty, other = (cgroup.make(f"{mark}{end}") for end in ("/ada/1", "/bob/1", "-of-another"))
    left.admit(stray.pid)
    try:
        assert sweep(f"{mark}/") == [stray.pid]
        assert stray.wait(WITHIN) == -signal.SIGKILL
        assert [leaf.folder.exists() for leaf in (left, empty, other)] == [False, False, True]
    finally:
        stray.kill()
        other.remove()


@needs_cgroup
def test_a_kernel_without_cgroup_kill_ends_them_one_by_one(mark: str) -> None:
    strays = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    leaf = cgroup.make(mark)
    for stray in strays:
        leaf.admit(stray.pid)
    leaf.kill_one_by_one()
    assert [stray.wait(WITHIN) for stray in strays] == [-signal.SIGKILL] * 3
    assert not leaf.populated()
    assert leaf.remove()


@needs_cgroup
def test_a_program_that_cannot_be_started_leaves_no_cgroup(tmp_path: Path, mark: str) -> None:
    with pytest.raises(Exception, match="nowhere"):
        asyncio.run(Child.start(["cat"], launch_in(tmp_path / "nowhere", mark=mark), Recorder(), Heard()))
    assert not leaf_of(mark).folder.exists()


@needs_cgroup
def test_a_start_that_is_called_off_leaves_nothing(tmp_path: Path, mark: str) -> None:
    async def story() -> None:
        for ticks in range(30):
            starting = asyncio.ensure_future(
                start(tmp_path, "import sys; sys.stdin.read()", Heard(), f"{mark}/{ticks}")
            )
            ready = asyncio.get_running_loop().time() + ticks * 0.0005
            await until(lambda ready=ready: asyncio.get_running_loop().time() >= ready)  # type: ignore[misc]
            starting.cancel()
            (result,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(result, Child):
                await result.end(gentle=False)
            else:
                assert isinstance(result, asyncio.CancelledError)

    asyncio.run(story())
    assert sweep(f"{mark}/") == []


def test_without_a_cgroup_the_other_rungs_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    monkeypatch.setattr(cgroup, "base", lambda: "none here")

    async def story() -> None:
        heard = Heard()
        code = "import subprocess; p=subprocess.Popen(['sleep','600'],start_new_session=True); print(p.pid,flush=True)"
        child = await start(tmp_path, code, heard, mark)
        await child.gone()
        assert os.getpgid(int(heard.lines[0])) != child.pid
        ended = await child.end(gentle=False)
        assert "killed 1 stray" in ended.detail
        assert not alive(int(heard.lines[0]))

    asyncio.run(story())
