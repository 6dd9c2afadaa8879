"""Clearing away all that a session started, with proof, beside the loop.

One look finds what is alive, by cgroup and by mark, and kills it; the look that finds nothing is the proof. A look
at all processes costs the same for one session as for hundreds, so those who come while one is under way share the
next: two hundred sessions die in about as many looks as one.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from weakref import WeakKeyDictionary

from remuda.agents import orphans
from remuda.agents.cgroup import Leaf
from remuda.agents.strays import PATIENCE, kill, marked

_PAUSE, _LONGEST_PAUSE = 0.005, 0.1

Groups = dict[int, int]  # processes, each with its process group; 0 when it is gone before it could be asked


@dataclass(frozen=True, slots=True)
class Cleared:
    killed: Mapping[int, int]
    left: Mapping[int, int]  # still there when patience ran out


async def clear(mark: str, leaf: Leaf | None) -> Cleared:
    """Kill whatever is in the cgroup or carries the mark until nothing is found, and remove the cgroup."""
    deadline, pause = monotonic() + PATIENCE, _PAUSE
    killed: Groups = {}
    while found := await _looks.setdefault(asyncio.get_running_loop(), Looks()).share(mark, leaf):
        killed |= found
        if monotonic() > deadline:
            return Cleared(killed, found)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return Cleared(killed, {})


class Looks:
    """One at a time; who asks during one is served by the next."""

    def __init__(self) -> None:
        self._asked: dict[str, Leaf | None] = {}
        self._next: asyncio.Task[dict[str, Groups]] | None = None
        self._one = asyncio.Lock()

    async def share(self, mark: str, leaf: Leaf | None) -> Groups:
        self._asked[mark] = leaf
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        return (await asyncio.shield(self._next))[mark]

    async def _look(self) -> dict[str, Groups]:
        async with self._one:
            asked, self._asked, self._next = self._asked, {}, None
            return await asyncio.to_thread(look, asked)


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, Looks] = WeakKeyDictionary()


def look(asked: Mapping[str, Leaf | None]) -> dict[str, Groups]:
    """Kill all that is found alive of these sessions, once, and tell what it was."""
    found: dict[str, Groups] = {mark: {} for mark in asked}
    for mark, leaf in asked.items():
        if leaf is None:
            continue
        if leaf.populated():
            found[mark] = {pid: _group_of(pid) for pid in leaf.pids()} or {0: 0}  # someone we cannot see
            leaf.kill()
        else:
            leaf.remove()
    for pid, mark in list(marked()):
        if mark in found:
            found[mark][pid] = _group_of(pid)
            kill(pid, mark.__eq__)
    orphans.reap()
    return found


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0
