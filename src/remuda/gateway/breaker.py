"""Whether a server that failed may be tried again. Pure.

One failure means nothing: a slow start, a lost connection. A server that fails again and again is left alone for a
while, twice as long each time, and then tried again: nothing is ever given up for good.
"""

from typing import NamedTuple

FREE = 3  # failures in a row that are followed by another try at once
SHORTEST, LONGEST = 2.0, 120.0  # seconds to wait after that
STEADY = 60.0  # seconds after which a server that ran so long has failed for the first time again


class Breaker(NamedTuple):
    failures: int = 0
    until: float = 0.0  # no try before that

    def failed(self, now: float, *, ran: float = 0.0) -> "Breaker":
        failures = 1 if ran >= STEADY else self.failures + 1
        wait = 0.0 if failures < FREE else min(LONGEST, SHORTEST * 2.0 ** (failures - FREE))
        return Breaker(failures, now + wait)

    def wait(self, now: float) -> float:
        """Seconds until it may be tried."""
        return max(0.0, self.until - now)
