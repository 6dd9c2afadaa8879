"""What every codec gives the server, and the frames of an event stream that all of them write."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from remuda.scripted_model.conversation import Conversation, Json
from remuda.scripted_model.reply import Failure, Reply, Usage


class Mark(Enum):
    OPEN = "open"  # begins the message or a part of it
    PIECE = "piece"  # carries content: the pace is kept before it, and a fault comes after the last one
    CLOSE = "close"  # ends a part or the message


@dataclass(frozen=True, slots=True)
class Frame:
    mark: Mark
    data: str
    event: str = ""

    def encode(self) -> bytes:
        name = f"event: {self.event}\n" if self.event else ""
        return f"{name}data: {self.data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an answer needs that is not in the reply: the clock and the identity come from outside."""

    model: str
    seed: str  # unique for each request; all ids of the answer are made from it
    created: int
    usage_wanted: bool = True

    def id(self, prefix: str, number: int = 0) -> str:
        return f"{prefix}{self.seed}{number:02d}"


@dataclass(frozen=True, slots=True)
class Codec:
    name: str
    read: Callable[[Json], Conversation]
    whole: Callable[[Envelope, Reply], Json]
    frames: Callable[[Envelope, Reply], list[Frame]]
    failure: Callable[[Failure], Json]
    # The frames that tell of a failure when the stream has begun already.
    failed: Callable[[Envelope, Failure], list[Frame]]
    count: Callable[[Usage], Json]
    too_long: str
    piece: str = ""  # the name of the events that carry content; what has none of it is passed over by some clients
    # The Responses API streams even the first word about a prompt that is too long; the others answer with a status.
    too_long_in_stream: bool = False


def frame(mark: Mark, body: Json, event: str = "") -> Frame:
    return Frame(mark, compact(body), event)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def unfinished(frames: Iterable[Frame]) -> list[Frame]:
    """The stream as far as a fault lets it come: to its last piece, or just opened if it has none."""
    kept = list(frames)
    last = max((index for index, each in enumerate(kept) if each.mark is Mark.PIECE), default=-1)
    return kept[: last + 1] if last >= 0 else kept[: _opening(kept)]


def _opening(frames: list[Frame]) -> int:
    return next((index for index, each in enumerate(frames) if each.mark is not Mark.OPEN), len(frames))
