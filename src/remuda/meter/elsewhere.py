"""Finds what a request brings into a call beyond its own bytes: then they are no bound on its tokens. Pure.

What the service fetches by a name or an address; pictures, sounds and documents, which count by what they show and not
by how well they are packed; the results of tools that the service runs itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LARGEST_CONTEXT = 1_000_000  # tokens: of what is fetched, and of documents, sounds and films
PICTURE = 10_000  # tokens of one picture, at most
_DEAR_PICTURE = 50_000  # ... for the one model that counts them by thirty times as many
_COUNTS_PICTURES_DEAR = "gpt-4o-mini"

# A request that goes on from what the service has kept.
_KEPT = ("previous_response_id", "conversation", "prompt", "cachedContent", "cached_content")
_MESSAGES = ("messages", "input", "contents", "system", "systemInstruction", "system_instruction")
# Where a message, or the result of a tool, has its parts.
_INSIDE = frozenset({"content", "output", "parts", "source", "functionResponse", "function_response"})
_NESTED = (list, dict)
_REFERENCES = ("item_reference", "container_upload")
_BY_NAME = ("file_id", "file_url", "fileData", "file_data")
_INLINE = ("inlineData", "inline_data")
_TELLING = frozenset({*_BY_NAME, *_INLINE, "source", "file", "image_url", "input_audio"})

# Tools that the program runs itself. Any other kind is taken to be the service's: there are more every year.
_OWN_KINDS = (
    "function",
    "custom",
    "bash",
    "text_editor",
    "computer",
    "memory",
    "local_shell",
    "apply_patch",
    "namespace",
    "tool_search",
)
_OWN_KEYS = frozenset({"functionDeclarations", "function_declarations", "computerUse", "computer_use"})


@dataclass(slots=True)
class Beyond:
    fetched: bool = False
    # By what it is: how much it may count as, and how often it is there.
    media: dict[tuple[Any, ...], tuple[int, int]] = field(default_factory=dict)

    def add(self, what: tuple[Any, ...], tokens: int) -> None:
        self.media[what] = tokens, self.media.get(what, (0, 0))[1] + 1

    def more_than(self, known: "Beyond") -> int:
        """Tokens of what was not there before."""
        return sum(
            tokens * max(0, times - known.media.get(what, (0, 0))[1]) for what, (tokens, times) in self.media.items()
        )


NOTHING = Beyond()


def beyond(body: dict[str, Any], model: str) -> Beyond:
    found = Beyond(fetched=any(body.get(key) for key in _KEPT))
    picture = _DEAR_PICTURE if _COUNTS_PICTURES_DEAR in model else PICTURE
    for key in _MESSAGES:
        if key in body:
            _look(body[key], found, picture)
    return found


def has_hosted_tool(body: dict[str, Any], model: str) -> bool:
    """A tool that the service runs itself, and whose results it puts in."""
    if any(body.get(key) for key in ("mcp_servers", "web_search_options", "plugins")) or model.endswith(":online"):
        return True
    tools = body.get("tools")
    return any(_hosted(tool) for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else False


def _hosted(tool: dict[str, Any]) -> bool:
    kind, inner = tool.get("type"), tool.get("tools")
    if isinstance(inner, list) and any(_hosted(each) for each in inner if isinstance(each, dict)):
        return True
    if kind is not None:
        return not str(kind).startswith(_OWN_KINDS)
    return "name" not in tool and any(value is not None for key, value in tool.items() if key not in _OWN_KEYS)


def _look(value: Any, found: Beyond, picture: int) -> None:
    """At messages and what they are made of. Long conversations are looked through before every call: it is quick."""
    for each in value if type(value) is list else (value,):
        if type(each) is not dict:
            continue
        if not _TELLING.isdisjoint(each):
            _part(each, found, picture)
        for key, inner in each.items():
            if key == "type":
                found.fetched = found.fetched or inner in _REFERENCES
            elif key in _INSIDE and type(inner) in _NESTED:
                _look(inner, found, picture)


def _part(part: dict[str, Any], found: Beyond, picture: int) -> None:
    source, file, image = part.get("source"), part.get("file"), part.get("image_url")
    address = image.get("url") if isinstance(image, dict) else image
    detail = image.get("detail") if isinstance(image, dict) else part.get("detail")
    if (
        any(part.get(key) for key in _BY_NAME)
        or (isinstance(source, dict) and source.get("type") in ("url", "file"))
        or isinstance(file, dict)
        or (isinstance(address, str) and not address.startswith("data:"))
    ):
        found.fetched = True
    for kind, data in _inline(part, source, address):
        found.add((kind, hash(data), str(detail)), picture if kind.startswith("image/") else LARGEST_CONTEXT)


def _inline(part: dict[str, Any], source: Any, address: Any) -> Iterator[tuple[str, str]]:
    """What it is and its data, of what stands in the request itself."""
    if isinstance(source, dict) and source.get("type") == "base64":
        yield str(source.get("media_type")), str(source.get("data"))
    if isinstance(address, str) and address.startswith("data:"):
        yield address.removeprefix("data:")[:100], address
    if isinstance(part.get("input_audio"), dict):
        yield "audio/", str(part["input_audio"].get("data"))
    for key in _INLINE:
        if isinstance(part.get(key), dict):
            inline = part[key]
            yield str(inline.get("mimeType") or inline.get("mime_type")), str(inline.get("data"))
