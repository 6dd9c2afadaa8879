"""What the scripted model answers, in words that no API owns. Each codec writes it in its own wire format."""

import re
from dataclasses import dataclass
from enum import StrEnum

from remuda.scripted_model.conversation import Json

_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call. `input` is all that went in; `cached` and `cache_write` are parts of it."""

    input: int = 1200
    cached: int = 100
    output: int = 34
    cache_write: int = 0

    def __post_init__(self) -> None:
        if min(self.input, self.cached, self.output, self.cache_write) < 0:
            raise ValueError("no number of tokens may be negative")
        if self.cached + self.cache_write > self.input:
            raise ValueError("cached and cache_write are parts of input and cannot be more than it")

    @property
    def fresh(self) -> int:
        return self.input - self.cached - self.cache_write

    @property
    def total(self) -> int:
        return self.input + self.output


USUAL = Usage()
NOTHING = Usage(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: Json | str  # a text for freeform tools
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str


Part = Thought | Text | Call | Refusal


class Stop(StrEnum):
    END = "end"
    TOOLS = "tools"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Failure:
    """The API's own error: an HTTP status before anything was said, an error event after."""

    status: int
    message: str
    retry_after: float | None = None
    too_long: bool = False  # the prompt does not fit the context window


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more comes; the connection stays open until the client leaves."""


@dataclass(frozen=True, slots=True)
class Garbage:
    text: str


Fault = Failure | Cut | Hang | Garbage


@dataclass(frozen=True, slots=True)
class Reply:
    parts: tuple[Part, ...] = ()
    usage: Usage = USUAL
    pace: float = 0.0  # seconds between pieces
    fault: Fault | None = None  # comes after the parts

    @property
    def stop(self) -> Stop:
        if any(isinstance(part, Refusal) for part in self.parts):
            return Stop.REFUSAL
        return Stop.TOOLS if self.calls() else Stop.END

    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]

    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def thoughts(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thought))

    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))


def pieces(text: str) -> list[str]:
    """Words with the space behind them, as a model streams them."""
    return _PIECE.findall(text)


def chunks(text: str, size: int = 48) -> list[str]:
    """Arguments come in chunks that do not care for words, so that clients must join before they parse."""
    return [text[start : start + size] for start in range(0, len(text), size)]
