"""Whether the processes of a session do anything, though it says nothing: a build that burns the processor, a copy that
fills the disk. Known from /proc; where there is none nothing is known, and silence is silence."""

import os
from dataclasses import dataclass

from remuda.agents.strays import marked

BUSY = 0.02  # of one processor: programs that wait wake up now and then, and take less than a tenth of that
BUSY_BYTES = 1 << 20  # read or written, whether or not it reached a disk


@dataclass(frozen=True, slots=True)
class Activity:
    """What the processes of one session have used so far, those included that they have waited for."""

    pids: frozenset[int] = frozenset()
    seconds: float = 0.0  # of processor time
    bytes: int = 0


def activity(mark: str) -> Activity:
    """Of everything that carries the mark, and of what that has started. It blocks."""
    own = {pid for pid, each in marked() if each == mark}
    if not own:
        return Activity()
    table = {pid: read for pid in _pids() if (read := _stat(pid)) is not None}
    while more := {pid for pid, (parent, _) in table.items() if parent in own} - own:
        own |= more
    used = sum(seconds for pid, (_, seconds) in table.items() if pid in own)
    return Activity(frozenset(own), used, sum(map(_moved, own)))


def busy(before: Activity, after: Activity, seconds: float) -> bool:
    """Whether anything was done between two looks. To start a process is to do something; that one has ended says
    nothing by itself, and takes its numbers along."""
    if after.pids - before.pids:
        return True
    return after.seconds - before.seconds > BUSY * seconds or after.bytes - before.bytes > BUSY_BYTES


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> tuple[int, float] | None:
    """Its parent and its processor time, with that of the children it has waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before may hold anything
    except OSError:
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _moved(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            counts = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:  # gone, or not ours to see
        return 0
    return int(counts.get(b"rchar", 0)) + int(counts.get(b"wchar", 0))
