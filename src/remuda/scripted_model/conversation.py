"""What a client asked, in words that no API owns. Each codec reads its own wire format into this."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Schema = Mapping[str, Any]


class BadRequest(ValueError):
    """The body is not what the API allows; the message says where."""


@dataclass(frozen=True, slots=True)
class Said:
    by: Literal["user", "assistant", "system"]
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """The model called a tool."""

    name: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The client gave a tool's result back."""

    text: str


Item = Said | Called | Returned


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    schema: Schema
    freeform: bool = False  # takes a text, not an object (OpenAI's custom tools)
    namespace: str = ""

    @property
    def properties(self) -> Schema:
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Conversation:
    model: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    schema: Schema | None = None  # set when the answer must be JSON of this shape
    usage_wanted: bool = True  # Chat Completions streams usage only on request

    def system(self) -> str:
        return "\n".join(item.text for item in self.items if isinstance(item, Said) and item.by == "system")

    def last_prompt(self) -> str:
        said = (item.text for item in reversed(self.items) if isinstance(item, Said) and item.by == "user")
        return next(said, "")

    def last_result(self) -> str:
        return next((item.text for item in reversed(self.items) if isinstance(item, Returned)), "")


# Reading JSON from strangers: each of these gives the type that the codec needs, or names the place that is wrong.


def a_list(body: Mapping[str, Any], key: str) -> list[Any]:
    value = body.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest(f"{key}: must be a list")
    return value


def objects(body: Mapping[str, Any], key: str) -> list[Json]:
    found = a_list(body, key)
    for index, each in enumerate(found):
        if not isinstance(each, dict):
            raise BadRequest(f"{key}[{index}]: must be an object")
    return found


def an_object(body: Mapping[str, Any], key: str) -> Json:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{key}: must be an object")
    return value


def a_text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def joined(content: object) -> str:
    """The text in a content: a text itself, an object that has one, or a list of such."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(joined, content)))
    if isinstance(content, dict):
        return joined(content.get("text")) or joined(content.get("content"))
    return ""
