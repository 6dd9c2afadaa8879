"""Finding processes by the mark in their environment, and killing them.

A coding agent starts its own children, some in sessions of their own, so the process group alone does not
reach them all. Every child inherits the environment, though, and with it the mark: what carries it is ours.

This needs /proc. Where there is none (macOS) nothing is found, and the process group is all there is.
"""

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remuda.domain.errors import EffectFailed, Invalid

MARK = "REMUDA_MARK"
PATIENCE = 2.0  # seconds the kernel gets to carry out a SIGKILL before we say that it did not
_PAUSE = 0.005

Wanted = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Cull:
    killed: tuple[int, ...]
    left: tuple[int, ...]  # still there when patience ran out


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


def cull(wanted: Wanted) -> Cull:
    """Kill until a look at all processes finds none: one that was being forked is found by the next look."""
    deadline = time.monotonic() + PATIENCE
    killed: dict[int, None] = {}
    while found := [pid for pid, mark in marked() if wanted(mark)]:
        if time.monotonic() > deadline:
            return Cull(tuple(killed), tuple(found))
        for pid in found:
            kill(pid, wanted)
            killed[pid] = None
        time.sleep(_PAUSE)
    return Cull(tuple(killed), ())


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


def kill(pid: int, wanted: Wanted) -> None:
    """Kill that process if its mark is wanted. Does not wait."""
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
