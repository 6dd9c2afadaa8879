"""A cgroup for each session: the kernel's own list of everything that a program has started.

Nobody leaves it by forking twice or by a session of their own, and one write ends all who are in it. It needs
cgroup v2 and a place in it where we may make a folder: under our own cgroup (as root, or in a scope that systemd
delegated to the user), or under the one that REMUDA_CGROUP names. No other cgroup is ever touched.

The program must be inside before its first instruction. Python cannot ask clone(2) for that, so the program waits at
a gate: we lock the new folder, start `flock` (of util-linux) that waits for this lock and then becomes the program,
put its number into the cgroup, and unlock. The gate costs 2 ms; a Python launcher would cost 16. To move a process
takes the kernel another 15 ms when nobody has moved one just before; that wait is a thread's and not the loop's.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import quote

from remuda.domain.errors import EffectFailed

PREFIX = "remuda."
NAMED_BY = "REMUDA_CGROUP"
PATIENCE = 5.0  # seconds for the kernel to carry out a kill
_PAUSE = 0.005


class Leaf:
    """The cgroup of one session. What is in it was started by that session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def gate(self) -> tuple[str, ...]:
        """Goes ahead of the program: wait until `closed` is left, then become the program."""
        return (tool("flock"), "--shared", "--no-fork", str(self.folder))

    @contextmanager
    def closed(self) -> Iterator[None]:
        """The gate is closed until the block is left."""
        lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the folder is new: nobody else can hold it
            yield
        finally:
            os.close(lock)

    def admit(self, pid: int) -> None:
        with suppress(ProcessLookupError):  # it is dead already
            (self.folder / "cgroup.procs").write_text(str(pid))

    def pids(self) -> list[int]:
        found: list[int] = []
        for folder in (self.folder, *_below(self.folder)):
            with suppress(OSError):  # a cgroup that went away meanwhile
                found += map(int, (folder / "cgroup.procs").read_text().split())
        return found

    def kill(self) -> None:
        """Send everything in it SIGKILL, also what is being forked right now. Does not wait."""
        try:
            (self.folder / "cgroup.kill").write_text("1")
        except FileNotFoundError:
            if self.folder.exists():  # a kernel before 5.14
                self.kill_one_by_one()

    def kill_one_by_one(self) -> None:
        """Not proof against one who forks faster than we look; ask `populated` and do it again."""
        for pid in self.pids():
            with suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    # The handle pins the process. Its number may have changed hands since, so look again first.
                    if pid in self.pids():
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)

    def populated(self) -> bool:
        """Whether anything lives in it or below; zombies do not count. This is the proof that nothing remains."""
        try:
            return "populated 1" in (self.folder / "cgroup.events").read_text()
        except OSError:
            return False

    def remove(self) -> bool:
        """Whether it is gone: it can only go when it is empty."""
        for folder in (*_below(self.folder), self.folder):
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


def make(mark: str) -> Leaf:
    """The cgroup of the session of that mark. Raises EffectFailed where there can be none: `why_not` tells why."""
    found = base()
    if isinstance(found, str):
        raise EffectFailed(found)
    leaf = Leaf(found / _name(mark))
    _end(leaf)  # a mark is for one session: what is there by that name is a try that nobody saw through
    try:
        leaf.folder.mkdir()
    except OSError as error:
        raise EffectFailed(f"{leaf.folder} cannot be made: {error.strerror}") from error
    return leaf


def sweep(prefix: str) -> list[int]:
    """End everything in the cgroups that an earlier runtime left for marks of that prefix, and remove them. Blocks."""
    found = base()
    if isinstance(found, str):
        return []
    killed: list[int] = []
    for folder in sorted(found.glob("*")):
        if folder.name.startswith(_name(prefix)) and folder.is_dir():
            killed += _end(Leaf(folder))
    return killed


def why_not() -> str:
    """Why sessions get no cgroup here; nothing when they do."""
    found = base()
    return found if isinstance(found, str) else ""


@cache
def base() -> Path | str:
    """The folder in which leaves can be made, tried out with a process that does nothing; or why there is none."""
    try:
        folder = _ours()
        _try_out(folder)
    except EffectFailed as error:
        return error.message
    except OSError as error:
        return f"{error.filename or 'cgroup'}: {error.strerror}"
    return folder


def _ours() -> Path:
    if sys.platform != "linux":
        raise EffectFailed(f"{sys.platform} has no cgroups")
    if named := os.environ.get(NAMED_BY):
        return Path(named)
    mounts = Path("/proc/self/mountinfo").read_text()
    return find(mounts, Path("/proc/self/cgroup").read_text())


def find(mounts: str, membership: str) -> Path:
    """Our own cgroup's folder, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    ours = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    if ours is None:
        raise EffectFailed("this kernel has no cgroup v2")
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if not after.startswith("cgroup2 "):
            continue
        root, point = (_unescape(each) for each in before.split()[3:5])
        if (Path("/") / ours.lstrip("/")).is_relative_to(root):
            return Path(point) / os.path.relpath(ours, root)
    raise EffectFailed("no cgroup v2 that we are in is mounted")


def _try_out(folder: Path) -> None:
    if not tool("flock"):
        raise EffectFailed("there is no `flock` of util-linux; install util-linux")
    leaf = Leaf(folder / f"{PREFIX}trial.{os.getpid()}.{time.monotonic_ns()}")
    leaf.folder.mkdir()
    try:
        with leaf.closed():
            trial = subprocess.Popen([*leaf.gate, "true"], stdin=subprocess.DEVNULL)
            try:
                leaf.admit(trial.pid)
            except OSError:
                trial.kill()
                trial.wait()
                raise
        if trial.wait(PATIENCE) != 0:
            raise EffectFailed(f"a program could not be started in {folder}")
    finally:
        leaf.remove()


def _end(leaf: Leaf) -> list[int]:
    killed: dict[int, None] = {}
    deadline = time.monotonic() + PATIENCE
    while leaf.populated():
        killed.update(dict.fromkeys(leaf.pids()))
        leaf.kill()
        if time.monotonic() > deadline:
            raise EffectFailed(f"processes {leaf.pids()} of an earlier run did not die of SIGKILL")
        time.sleep(_PAUSE)
    leaf.remove()
    return list(killed)


@cache
def tool(name: str) -> str:
    """Where the util-linux program of that name is; nothing when there is none. Others of the name can do less."""
    path = shutil.which(name) or ""
    if not path:
        return ""
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return path if "util-linux" in said.stdout else ""


def _name(mark: str) -> str:
    return PREFIX + quote(mark, safe="")  # letter by letter, so that what begins a mark begins its name


def _below(folder: Path) -> list[Path]:
    """The cgroups that were made inside, the deepest first."""
    return [Path(at) for at, _, _ in os.walk(folder, topdown=False)][:-1]


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
