"""Time, on two clocks: one that people read and may set back, and one that only goes forward."""

import os
import time

from remuda.records.files import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def now() -> "dict[str, Any]":
    return {"wall": time.time(), "steady": time.monotonic(), "boot": boot()}


def boot() -> str:
    """Which start of the machine the steady clock counts from."""
    return (read("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def elapsed(start: "dict[str, Any]", end: "dict[str, Any]") -> float:
    """Seconds, never negative, also when somebody sets the clock back in between."""
    if start["boot"] and start["boot"] == end["boot"]:
        return max(0.0, float(end["steady"]) - float(start["steady"]))
    return max(0.0, float(end["wall"]) - float(start["wall"]))


def finish(start: "dict[str, Any]", end: "dict[str, Any]") -> float:
    """When it was over, on the wall. A clock that went back would have it end before it began."""
    wall = float(end["wall"])
    return wall if wall >= float(start["wall"]) else float(start["wall"]) + elapsed(start, end)


def iso(wall: float) -> str:
    """Kept to the range that a date can be written in: a broken clock must not cost a record."""
    seconds = time.gmtime(min(max(wall, 0.0), 253402300799.0))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", seconds)


def process_start(pid: int) -> str:
    """Tells a process from a later one with the same number; empty where the system does not say."""
    try:
        stat = read(f"/proc/{pid}/stat") or b""
    except OSError:
        return ""
    fields = stat.rpartition(b")")[2].split()
    return fields[19].decode() if len(fields) > 19 else ""


def alive(pid: int, start: str, booted: str) -> bool:
    """Whether the process that began a turn is still there to end it."""
    if booted != boot():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process_start(pid) == start
