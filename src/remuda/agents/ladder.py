"""Which rungs hold on this machine, for `remuda doctor`. What each is for stands in process.py."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from remuda.agents import cgroup, orphans


@dataclass(frozen=True, slots=True)
class Rung:
    name: str
    in_force: bool
    why_not: str = ""


def rungs() -> list[Rung]:
    """From the surest down. Each is tried out where that is possible; it blocks for some milliseconds."""
    reasons: dict[str, Callable[[], str]] = {
        "cgroup": cgroup.why_not,
        "subreaper": _subreaper,
        "group": lambda: "",
        "pdeathsig": _pdeathsig,
        "mark": _mark,
    }
    return [Rung(name, not (why := ask()), why) for name, ask in reasons.items()]


def _subreaper() -> str:
    before = orphans.subreaper()
    why = orphans.adopt(True)
    if not why and not before:
        orphans.adopt(False)
    return why


def _pdeathsig() -> str:
    if sys.platform != "linux":
        return f"{sys.platform} has no parent-death signal"
    return "" if cgroup.tool("setpriv") else "there is no `setpriv` of util-linux; install util-linux"


def _mark() -> str:
    if not Path("/proc/self/environ").exists():
        return "there is no /proc in which to look for it"
    return "" if hasattr(os, "pidfd_open") else "this Python knows no pidfd"
