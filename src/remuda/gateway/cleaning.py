"""What servers say of their tools, without what people cannot see. Pure.

A description is read by the model and by nobody else, so it is where instructions are hidden. Only prose is cleaned:
names, patterns and values are the server's own affair, and changing them would change the call.
"""

import re
from typing import Any

PROSE = frozenset({"description", "title"})
DEEPEST = 64

# Controls but for tab and line feed, soft hyphen, zero-width and directional marks, fillers, annotations, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    return _UNSEEN.sub("", text)


def clean(value: Any, *, depth: int = 0) -> Any:
    """A tool's definition with clean prose, however deep it stands. Beyond any depth that people write it is cut."""
    if depth > DEEPEST:
        return {}
    if isinstance(value, dict):
        return {
            key: clean_text(inner) if key in PROSE and isinstance(inner, str) else clean(inner, depth=depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [clean(inner, depth=depth + 1) for inner in value]
    return value
