"""Which of those who wait to be merged are tried together. Pure: numbers in, a number out.

A long queue is tried whole: each on top of the one before, one run of the acceptance commands for all. When that
fails, halves are tried until it is known who breaks it; those ahead of it are merged, it goes back to its worker, and
those behind it are tried again without it.
"""

from dataclasses import dataclass

LONGEST = 8  # tried together: more would make the first of them wait too long for what the last of them breaks


@dataclass(frozen=True, slots=True)
class Batch:
    size: int
    passed: int = 0  # so many of the first are known to pass together
    failed: int = 0  # with so many of the first it is known to fail; 0: nothing has failed yet

    @property
    def next_try(self) -> int:
        """How many of the first to try now; 0 when all is known."""
        if not self.failed:
            return self.size - self.passed and self.size
        return (self.passed + self.failed) // 2 if self.failed - self.passed > 1 else 0

    @property
    def culprit(self) -> int | None:
        """The one that breaks those ahead of it, counted from 0, when all is known."""
        return self.failed - 1 if self.failed and not self.next_try else None

    def tried(self, count: int, *, ok: bool) -> "Batch":
        return Batch(self.size, count, self.failed) if ok else Batch(self.size, self.passed, count)
