"""Tool calls on their way to the loop, each with what tells work from going in circles: how the call reads, and what
the working tree holds after it. They arrive in the order in which they were made, and all before their turn ends."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from remuda.domain.commands import Report, ReportToolCall
from remuda.domain.spin_reading import LONGEST, Step, read
from remuda.domain.spin_tools import Kind, kind_of
from remuda.domain.trigger_commands import ReportSaidAgain
from remuda.git.fingerprint import fingerprint

LONGEST_MESSAGE = 6000  # characters, after which it is looked at in any case
SHORTEST_MESSAGE = 20
REMEMBERED = 20  # messages


class Steps:
    def __init__(self, folder: Path | None, tell: Callable[[Report], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._last: asyncio.Task[None] | None = None
        self._words = ""  # of the message that is being said
        self._said: deque[int] = deque(maxlen=REMEMBERED)
        self.place = ("", 0, 0)  # agent, session, turn

    def add(self, call: ReportToolCall) -> None:
        busy = self._last is not None and not self._last.done()
        looks = kind_of(call.name, call.arguments) in (Kind.LOOK, Kind.WAIT)
        if self._folder is None or (looks and not busy):
            self._tell(_with_reading(call, ""))
            return
        # One measurement at a time: where calls come faster than that, those between go without.
        folder = None if looks or busy else self._folder
        self._last = asyncio.ensure_future(self._measure(call, folder, self._last))

    async def _measure(self, call: ReportToolCall, folder: Path | None, before: asyncio.Task[None] | None) -> None:
        tree = await asyncio.to_thread(fingerprint, folder) if folder is not None else ""
        if before is not None:
            await asyncio.wait({before})
        self._tell(_with_reading(call, tree))

    # --- words ---

    def say(self, text: str) -> None:
        self._words += text
        if len(self._words) > LONGEST_MESSAGE:
            self.end_message()

    def end_message(self) -> None:
        """What was said before, and what is one sentence over and over, is told; all else is in the transcript."""
        words, self._words = self._words.strip(), ""
        if len(words) < SHORTEST_MESSAGE or not self.place[2]:
            return
        reading = read(Step(text=words))
        if reading.kind == Kind.CHANT or reading.exact in self._said:
            self._tell(ReportSaidAgain(*self.place, reading._replace(kind=Kind.CHANT)))
        self._said.append(reading.exact)

    async def settle(self) -> None:
        if self._last is not None:
            await asyncio.wait({self._last})
            self._last = None


def _with_reading(call: ReportToolCall, tree: str) -> ReportToolCall:
    step = Step(call.name, call.arguments, call.result, call.ok, tree=tree, digest=call.arguments[LONGEST:])
    return replace(call, reading=read(step))
