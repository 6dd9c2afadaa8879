"""The recent lines of an agent's output, and how entries of a transcript become lines."""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Literal

DEFAULT_LINES = 100
LONGEST_LINE = 16 * 1024  # characters of pieces without an end; then they are a line, so that none grows without bound

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
        self._pieces: list[str] = []
        self._length = 0

    def feed(self, entry: Entry) -> list[str]:
        """The lines that this entry completes."""
        if entry.kind != "text":
            return [*self.rest(), *_told(entry)]
        first, *others = entry.text.split("\n")
        self._begin(first)
        if not others:
            # A text may have no end at all, and every reader of it keeps what was begun.
            return self.rest() if self._length > LONGEST_LINE else []
        complete = ["".join(self._pieces), *others[:-1]]
        self._pieces, self._length = [], 0
        self._begin(others[-1])
        return complete

    def _begin(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    def rest(self) -> list[str]:
        """The line that was begun; the pieces after it begin another."""
        piece = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return [piece] if piece else []


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
