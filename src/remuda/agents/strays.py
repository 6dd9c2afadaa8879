"""Finding processes by the mark in their environment, and killing them.

A coding agent starts its own children, some in sessions of their own, so the process group alone does not
reach them all. Every child inherits the environment, though, and with it the mark: what carries it is ours.

This needs /proc. Where there is none (macOS) nothing is found, and the process group is all there is.
"""

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from remuda.domain.errors import EffectFailed, Invalid

MARK = "REMUDA_MARK"
PATIENCE = 2.0  # seconds the kernel gets to carry out a SIGKILL before we say that it did not
_PAUSE = 0.005

Wanted = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Cull:
    """Processes by number, each with its mark."""

    killed: Mapping[int, str]
    left: Mapping[int, str]  # still there when patience ran out

    def of(self, mark: str) -> "Cull":
        return Cull(_with(self.killed, mark), _with(self.left, mark))


def sweep(prefix: str) -> list[int]:
    """Kill every process but ourselves whose mark starts with `prefix`, and wait until all are gone.

    For the start of a runtime whose predecessor was killed. It blocks, so call it in a thread.
    """
    if not prefix:
        raise Invalid("an empty mark would match the agents of every project; give the prefix of one")
    result = cull(lambda mark: mark.startswith(prefix))
    if result.left:
        raise EffectFailed(f"processes {list(result.left)} of an earlier run did not die of SIGKILL")
    return list(result.killed)


async def cull_marked(mark: str) -> Cull:
    """Kill what carries exactly that mark, beside the loop. All who ask at the same time share one look."""
    return await _looks.setdefault(asyncio.get_running_loop(), Look()).cull(mark)


class Look:
    """A look at all processes costs the same for one mark as for hundreds: who comes during one shares the next."""

    def __init__(self) -> None:
        self._marks: set[str] = set()
        self._next: asyncio.Task[Cull] | None = None
        self._running = asyncio.Lock()

    async def cull(self, mark: str) -> Cull:
        self._marks.add(mark)
        if self._next is None:
            self._next = asyncio.create_task(self._go())
        return (await asyncio.shield(self._next)).of(mark)

    async def _go(self) -> Cull:
        async with self._running:
            marks, self._marks, self._next = self._marks, set(), None
            return await asyncio.to_thread(cull, marks.__contains__)


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, Look] = WeakKeyDictionary()


def cull(wanted: Wanted) -> Cull:
    """Kill until a look at all processes finds none: one that was being forked is found by the next look."""
    deadline = time.monotonic() + PATIENCE
    killed: dict[int, str] = {}
    while found := {pid: mark for pid, mark in marked() if wanted(mark)}:
        if time.monotonic() > deadline:
            return Cull(killed, found)
        for pid in found:
            _kill(pid, wanted)
        killed |= found
        time.sleep(_PAUSE)
    return Cull(killed, {})


def marked() -> Iterator[tuple[int, str]]:
    """Every process that carries a mark, except this one."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and int(name) != os.getpid() and (mark := _mark_of(int(name))):
            yield int(name), mark


def _mark_of(pid: int) -> str:
    """The mark, or nothing: of processes without, of other users, gone meanwhile, or zombies."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = b"\0" + file.read()
    except OSError:
        return ""
    _, found, rest = variables.partition(f"\0{MARK}=".encode())
    return rest.partition(b"\0")[0].decode(errors="replace") if found else ""


def _kill(pid: int, wanted: Wanted) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno == errno.ENOSYS and wanted(_mark_of(pid)):  # a kernel before 5.3
            os.kill(pid, signal.SIGKILL)
        return
    try:
        # The handle pins the process. Its number may have changed hands since the scan, so look again first.
        if wanted(_mark_of(pid)):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    finally:
        os.close(handle)


def _with(processes: Mapping[int, str], mark: str) -> dict[int, str]:
    return {pid: its for pid, its in processes.items() if its == mark}
