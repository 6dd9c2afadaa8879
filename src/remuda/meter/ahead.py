"""Calls that leave ahead of the disk, written down where a process that is killed leaves them: in memory of the kernel.

The ledger on the disk has foreseen them: an earlier call of the same turn was about as large (`Foreseen`). To flush
takes longer than all the rest that is done to a call, so it is not waited for. Who dies in the meantime has left the
exact call here. Only a machine that goes down takes it along, which is known by the boot that stands first: then what
was foreseen counts as spent in its place.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from remuda.domain.budget import lost_at_most
from remuda.domain.budget_commands import RecallCall
from remuda.domain.ledger import Ledger

BOOT = Path("/proc/sys/kernel/random/boot_id")
ROOM = 64 << 10  # bytes; some hundreds of calls

_call = msgspec.json.Decoder(tuple[str, int, int, int, int, int, bool])


class Ahead:
    def __init__(self, path: Path) -> None:
        """Calls of the last runtime can be read until it is begun anew."""
        self._boot = _boot()
        self._end = ROOM  # of what is written
        with path.open("a+b") as file:
            # All of it is there before it is written to: there is nobody to tell of a full disk in the middle of it.
            os.posix_fallocate(file.fileno(), 0, ROOM)
            self._map = mmap.mmap(file.fileno(), ROOM)

    def left(self, ledger: Ledger) -> list[RecallCall]:
        """Calls of the last runtime that may be missing in the log."""
        boot, *lines = self._map[:].split(b"\n")
        return list(_exactly(lines) if boot == self._boot != b"" else lost_at_most(ledger))

    def begin(self) -> None:
        """Forget them: they are kept."""
        head = self._boot + b"\n"
        self._map[:] = head + bytes(ROOM - len(head))
        self._end = len(head)

    def note(self, call: RecallCall) -> bool:
        """Whether it is written down, and so may leave: not where one boot cannot be told from another."""
        fields = (getattr(call, name) for name in RecallCall.__slots__)
        line = msgspec.json.encode(tuple(fields)) + b"\n"
        start, end = self._end, self._end + len(line)
        if not self._boot or end > ROOM:
            return False
        self._map[start:end] = line  # and not by a call of the kernel: another thread would take its turn
        self._end = end
        return True

    def tidy(self) -> None:
        """None of them is on its way to the disk any more."""
        if self._end > ROOM // 2:
            self.begin()


def _exactly(lines: list[bytes]) -> Iterator[RecallCall]:
    for line in lines:
        with suppress(msgspec.MsgspecError):  # half a line, of a call that did not leave
            yield RecallCall(*_call.decode(line))


def _boot() -> bytes:
    try:
        return BOOT.read_bytes().strip()
    except OSError:
        return b""
