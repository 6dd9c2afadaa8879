"""Reads the usage off a copy of an answer while it passes: streamed or whole, compressed or not."""

import zlib
from collections.abc import Iterable, Iterator

import msgspec

from remuda.domain.reports import MOST_TOKENS
from remuda.domain.state import Usage
from remuda.meter.apis import Api, Json

LARGEST_ANSWER = 32 << 20  # bytes of a whole answer, or of one event; what is longer is not read
ENCODINGS = ("gzip", "deflate", "identity")  # what can be read here, and so is all that may be asked for

_SPACE = b" \t\r\n"


class Tally:
    """Fed with the body of one answer. `usage` is known once the answer has told it and has come to its end."""

    def __init__(self, api: Api, content_type: str, encoding: str) -> None:
        self._api = api
        self._events = "text/event-stream" in content_type
        self._readable = encoding in ("", *ENCODINGS)
        self._inflate = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
        self._rest = bytearray()
        self._told: Usage | None = None
        self._final = False

    @property
    def usage(self) -> Usage | None:
        """Of the whole call; None where it was never told, or cannot be."""
        return self.seen if self._final else None

    @property
    def seen(self) -> Usage | None:
        """As far as it was told."""
        told = self._told
        if told is None:
            return None
        counts = (told.input_tokens, told.output_tokens, told.cache_read_tokens, told.cache_creation_tokens)
        return told if all(0 <= count <= MOST_TOKENS for count in counts) else None

    def feed(self, data: bytes) -> None:
        if not self._readable:
            return
        try:
            self._rest += self._inflate.decompress(data, LARGEST_ANSWER) if self._inflate else data
        except zlib.error:
            self._readable = False
            return
        if self._inflate is not None and self._inflate.unconsumed_tail:
            self._readable = False
            self._rest.clear()
            return
        if self._events:
            self._read_events()
        if len(self._rest) > LARGEST_ANSWER:
            self._readable = False
            self._rest.clear()

    def end(self) -> None:
        """The answer is complete."""
        if self._readable and not self._events:
            for each in _objects(bytes(self._rest)):
                self._note(each)

    def _read_events(self) -> None:
        whole, found, rest = self._rest.rpartition(b"\n")
        if not found:
            return
        self._rest = bytearray(rest)
        for line in bytes(whole).splitlines():
            # An event of a few bytes has no usage to tell: most are a word of the answer, and are not looked into.
            if line.startswith(b"data:") and (b"usage" in line or b"message_stop" in line):
                for each in _objects(line[5:].strip(_SPACE)):
                    self._note(each)

    def _note(self, event: Json) -> None:
        seen = self._api.read(event)
        self._final = self._final or seen.final
        if seen.usage is not None:
            self._told = _most(self._told or seen.usage, seen.usage)


def _objects(data: bytes) -> Iterator[Json]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, dict):
            yield each


def _most(one: Usage, other: Usage) -> Usage:
    """What was told at first is told again, in part or grown. A number that shrinks on the way is not believed, and one
    that cannot be stays, so that it is seen."""
    return Usage(*(_more(pair) for pair in zip(_counts(one), _counts(other), strict=True)))


def _more(pair: Iterable[int]) -> int:
    low, high = sorted(pair)
    return low if low < 0 else high


def _counts(usage: Usage) -> tuple[int, ...]:
    return (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_creation_tokens)
