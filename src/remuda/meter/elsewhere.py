"""Finds what a request brings into a call without its bytes standing in it: then bytes are no bound. Pure."""

from collections.abc import Iterator
from typing import Any

# A request that goes on from what the service has kept.
_KEPT = ("previous_response_id", "conversation", "prompt", "cachedContent", "cached_content")
_MESSAGES = ("messages", "input", "contents", "system", "systemInstruction", "system_instruction")
_INSIDE = ("content", "output", "parts")  # where a message, or the result of a tool, has its parts
_BY_NAME = frozenset({"file_id", "file_url", "fileData", "file_data"})
_HOSTED_KINDS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "code_interpreter",
    "file_search",
    "image_generation",
    "mcp",
)
_HOSTED_KEYS = ("googleSearch", "google_search", "urlContext", "url_context", "codeExecution", "code_execution")


def points_elsewhere(body: dict[str, Any]) -> bool:
    """A file, a page or an earlier answer that the service will fetch itself."""
    if any(body.get(key) for key in _KEPT):
        return True
    return any(_fetched(part) for key in _MESSAGES for part in _parts(body.get(key)))


def has_hosted_tool(body: dict[str, Any]) -> bool:
    """A tool that the service runs itself, and whose results it puts in."""
    if body.get("mcp_servers") or body.get("web_search_options"):
        return True
    tools = body.get("tools")
    return any(_hosted(tool) for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else False


def _hosted(tool: dict[str, Any]) -> bool:
    return str(tool.get("type", "")).startswith(_HOSTED_KINDS) or any(key in tool for key in _HOSTED_KEYS)


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Messages and what they are made of. Long conversations are looked through before every call, so it is quick."""
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, dict):
            yield each
            for key in _INSIDE:
                if isinstance(each.get(key), list):
                    yield from _parts(each[key])


def _fetched(part: dict[str, Any]) -> bool:
    if part.get("type") in ("item_reference", "container_upload"):
        return True
    if not _BY_NAME.isdisjoint(part) and any(part.get(key) for key in _BY_NAME):
        return True
    if "source" in part and isinstance(part["source"], dict):
        return part["source"].get("type") in ("url", "file")
    if "file" in part and isinstance(part["file"], dict):
        return bool(part["file"].get("file_id"))
    if "image_url" in part:
        image = part["image_url"]
        address = image.get("url") if isinstance(image, dict) else image
        return isinstance(address, str) and not address.startswith("data:")
    return False
