"""Finds what a request brings into a call without its bytes standing in it: then bytes are no bound. Pure."""

from typing import Any

# A request that goes on from what the service has kept.
_KEPT = ("previous_response_id", "conversation", "prompt", "cachedContent", "cached_content")
_MESSAGES = ("messages", "input", "contents", "system", "systemInstruction", "system_instruction")
_INSIDE = ("content", "output", "parts")  # where a message, or the result of a tool, has its parts
_REFERENCES = ("item_reference", "container_upload")
_BY_NAME = ("file_id", "file_url", "fileData", "file_data")
_TELLING = frozenset({*_BY_NAME, "source", "file", "image_url"})
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
    return any(_holds_what_is_fetched(body[key]) for key in _MESSAGES if key in body)


def has_hosted_tool(body: dict[str, Any]) -> bool:
    """A tool that the service runs itself, and whose results it puts in."""
    if body.get("mcp_servers") or body.get("web_search_options"):
        return True
    tools = body.get("tools")
    return any(_hosted(tool) for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else False


def _hosted(tool: dict[str, Any]) -> bool:
    return str(tool.get("type", "")).startswith(_HOSTED_KINDS) or any(key in tool for key in _HOSTED_KEYS)


def _holds_what_is_fetched(value: Any) -> bool:
    """Messages and what they are made of. Long conversations are looked through before every call, so it is quick."""
    for each in value if isinstance(value, list) else (value,):
        if not isinstance(each, dict):
            continue
        if each.get("type") in _REFERENCES or (not _TELLING.isdisjoint(each) and _fetched(each)):
            return True
        for key in _INSIDE:
            if key in each and isinstance(each[key], list) and _holds_what_is_fetched(each[key]):
                return True
    return False


def _fetched(part: dict[str, Any]) -> bool:
    source, file, image = part.get("source"), part.get("file"), part.get("image_url")
    address = image.get("url") if isinstance(image, dict) else image
    return (
        any(part.get(key) for key in _BY_NAME)
        or (isinstance(source, dict) and source.get("type") in ("url", "file"))
        or (isinstance(file, dict) and bool(file.get("file_id")))
        or (isinstance(address, str) and not address.startswith("data:"))
    )
