"""What the server remembers: every request, for tests to read, and how often each fault has happened."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from remuda.scripted_model.play import Kind
from remuda.scripted_model.reply import Usage

MOST_CALLS = 10_000
MOST_CONVERSATIONS = 4_096


@dataclass(frozen=True, slots=True)
class ModelCall:
    number: int
    api: str
    path: str
    auth: str = ""  # a digest, never the key itself
    session: str = ""  # what the client calls its session, if it says so
    model: str = ""
    stream: bool = False
    kind: Kind | None = None
    move: int | None = None  # which model call of its script
    played: tuple[str, ...] = ()
    status: int | None = None  # None as long as nothing was answered
    usage: Usage | None = None  # what the client was told; None if it was told nothing
    ended: str = ""  # "", then finished, failed, cut, garbage, client left, or stopped

    @property
    def side(self) -> bool:
        return self.kind is Kind.SIDE

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "side": self.side}


class Record:
    def __init__(self) -> None:
        self._calls: OrderedDict[int, ModelCall] = OrderedDict()
        self._last = 0
        self._news = asyncio.Event()

    @property
    def calls(self) -> list[ModelCall]:
        return list(self._calls.values())

    def begin(self, api: str, path: str, auth: str, session: str) -> int:
        self._last += 1
        self._calls[self._last] = ModelCall(self._last, api, path, auth, session)
        if len(self._calls) > MOST_CALLS:
            self._calls.popitem(last=False)
        return self._last

    def note(self, number: int, **facts: Any) -> None:
        if number in self._calls:  # not cleared meanwhile
            self._calls[number] = replace(self._calls[number], **facts)
            self._news.set()

    def clear(self) -> None:
        self._calls.clear()

    async def until(self, enough: Callable[[list[ModelCall]], bool]) -> None:
        while not enough(self.calls):
            self._news.clear()
            await self._news.wait()


class Faults:
    """Bounded: the conversations longest not heard of are forgotten first."""

    def __init__(self) -> None:
        self._happened: OrderedDict[str, Counter[int]] = OrderedDict()

    def of(self, key: str) -> Mapping[int, int]:
        return self._happened.get(key, Counter())

    def count(self, key: str, step: int) -> None:
        self._happened.setdefault(key, Counter())[step] += 1
        self._happened.move_to_end(key)
        if len(self._happened) > MOST_CONVERSATIONS:
            self._happened.popitem(last=False)
