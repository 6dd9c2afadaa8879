"""Orphans come to us: a process whose parent died becomes the runtime's child, not that of the machine's first process.

So nothing slips out of our sight, and we owe it what a parent owes: to ask how it ended, or it stays a zombie. The
loop asks only for those it started; this asks for the others, and for no one else's.
"""

import asyncio
import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger("remuda.orphans")

LOOK_EVERY = 0.5  # seconds; a look that finds no zombie is one system call

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


class Own:
    """Children that the loop started and will ask for itself."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.starting = 0  # there may be one whose number we are not told yet

    @contextmanager
    def start(self) -> Iterator[None]:
        self.starting += 1
        try:
            yield
        finally:
            self.starting -= 1


own = Own()


@contextmanager
def adopting() -> Iterator[None]:
    """Within this block orphans become our children and are laid to rest when they die. Linux only; needs a loop."""
    before = subreaper()
    why = adopt(True)
    if why:
        log.info("orphans go to the machine's first process: %s", why)
        yield
        return
    resting = asyncio.create_task(_lay_to_rest())
    try:
        yield
    finally:
        resting.cancel()
        reap()
        if not before:
            adopt(False)


def subreaper() -> bool:
    """Whether orphans among our descendants come to us."""
    if sys.platform != "linux":
        return False
    told = ctypes.c_int(0)
    return _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(told)) == 0 and bool(told.value)


def adopt(yes: bool) -> str:
    """Ask the kernel for it, or to leave off; why it would not, or nothing."""
    if sys.platform != "linux":
        return f"{sys.platform} has no child subreaper"
    return "" if _prctl(_PR_SET_CHILD_SUBREAPER, int(yes)) == 0 else os.strerror(ctypes.get_errno())


def reap() -> list[int]:
    """Ask for every adopted child that has died. Cheap when there is no zombie; reads /proc otherwise."""
    try:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return []
    except ChildProcessError:
        return []
    ours = os.getsid(0)
    return [pid for pid in children() if _is_adopted_zombie(pid, ours) and _ask_for(pid)]


def children() -> list[int]:
    """All children of this process, of every thread of it."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def state_of(pid: int) -> tuple[str, int] | None:
    """The letter of its state and its session; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None
    return fields[0], int(fields[3])


def _is_adopted_zombie(pid: int, our_session: int) -> bool:
    # Programs that we start for ourselves (git) stay in our session and are asked for by who started them. An agent's
    # program leads a session of its own, and the loop asks for it; while one is being started we cannot tell it from
    # an orphan, so all wait for the next look. The order matters: a zombie that was seen has been registered by now.
    seen = state_of(pid)
    if seen is None or seen[0] != "Z" or seen[1] == our_session:
        return False
    return not own.starting and pid not in own.pids


def _ask_for(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


async def _lay_to_rest() -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY)
        await asyncio.to_thread(reap)


def _prctl(option: int, value: int) -> int:
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return int(call(option, value, 0, 0, 0))
