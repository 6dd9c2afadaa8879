"""The recent lines of an agent's output, and how entries of a transcript become lines."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

DEFAULT_LINES = 100

Kind = Literal["prompt", "text", "thought", "tool", "stderr", "note"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a transcript. `text` of kind "text" is a piece: pieces join to lines."""

    at: float
    turn: int
    kind: Kind
    text: str
    name: str = ""  # of the tool, or who wrote the prompt
    status: str = ""  # of the tool call


class OutputRing:
    """The last lines, and no more of them than there is room for."""

    def __init__(self, capacity: int = DEFAULT_LINES) -> None:
        self._lines: deque[str] = deque(maxlen=capacity)

    def append(self, line: str) -> None:
        self._lines.append(line)

    def lines(self) -> list[str]:
        return list(self._lines)

    def last(self, count: int) -> list[str]:
        return list(islice(self._lines, max(0, len(self._lines) - max(0, count)), None))

    def clear(self) -> None:
        self._lines.clear()


class Lines:
    """Joins pieces to lines. What an agent says arrives in pieces that end anywhere."""

    def __init__(self) -> None:
        self._pieces: list[str] = []  # joined only when the line is complete: an agent may never break its line

    def feed(self, entry: Entry) -> list[str]:
        """The lines that this entry completes."""
        if entry.kind != "text":
            return [*self.rest(), *_told(entry)]
        first, *others = entry.text.split("\n")
        self._pieces.append(first)
        if not others:
            return []
        complete = ["".join(self._pieces), *others[:-1]]
        self._pieces = [others[-1]]
        return complete

    def rest(self) -> list[str]:
        """The line that was begun; the pieces after it begin another."""
        line, self._pieces = "".join(self._pieces), []
        return [line] if line else []


def to_lines(entries: Iterable[Entry]) -> list[str]:
    lines = Lines()
    return [line for entry in entries for line in lines.feed(entry)] + lines.rest()


def _told(entry: Entry) -> list[str]:
    match entry.kind:
        case "prompt":
            return [f"» {entry.name}: {line}" for line in entry.text.splitlines()]
        case "tool":
            first, *rest = entry.text.strip().splitlines() or [""]
            return [f"· {entry.name} {entry.status}" + (f": {first}" if first else ""), *(f"  {line}" for line in rest)]
        case "thought":
            return [f"(thinks) {line}" for line in entry.text.splitlines()]
        case "stderr":
            return [f"stderr: {line}" for line in entry.text.splitlines()]
        case _:
            return entry.text.splitlines()
