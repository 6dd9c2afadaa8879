"""Parts of the log: a page of it, the end of it, all of it or what concerns one agent."""

from collections.abc import Awaitable, Callable

from remuda.domain.events import Recorded

Read = Callable[[int, int], Awaitable[list[Recorded]]]

STEP = 2000


async def page(read: Read, after: int, limit: int, agent: str = "") -> tuple[list[Recorded], int]:
    """Up to `limit` events after a cursor, and the cursor behind them."""
    found: list[Recorded] = []
    while len(found) < limit:
        records = await read(after, STEP if agent else min(STEP, limit - len(found)))
        if not records:
            break
        for record in records:
            after = record.seq
            if not agent or about(record) == agent:
                found.append(record)
                if len(found) == limit:
                    break
    return found, after


async def last(read: Read, head: int, count: int, agent: str = "") -> int:
    """The cursor behind which the last `count` events stand."""
    if not agent or not count:
        return max(0, head - count)
    start = head
    while start > 0:
        begin = max(0, start - STEP)
        for record in reversed(await read(begin, start - begin)):
            if about(record) == agent:
                count -= 1
                if not count:
                    return record.seq - 1
        start = begin
    return 0


def about(record: Recorded) -> str:
    return getattr(record.event, "agent", "")
