"""From an HTTP request to what it asks: which API, which model, whose it is, and a body that is JSON."""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from remuda.scripted_model import anthropic_messages, gemini, openai_chat, openai_responses
from remuda.scripted_model.codec import Codec
from remuda.scripted_model.conversation import BadRequest, Json

MOST_BYTES = 128 * 1024 * 1024  # unpacked: enough for any prompt, too little to fill the memory
SECRETS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
SESSIONS = ("x-claude-code-session-id", "session-id", "session_id", "agent-session-id", "x-session-id")
_WINDOW = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>\w+)$")
_ENDINGS: tuple[tuple[str, Codec, bool], ...] = (
    ("/messages", anthropic_messages.CODEC, False),
    ("/messages/count_tokens", anthropic_messages.CODEC, True),
    ("/responses", openai_responses.CODEC, False),
    ("/responses/input_tokens", openai_responses.CODEC, True),
    ("/chat/completions", openai_chat.CODEC, False),
)


@dataclass(frozen=True, slots=True)
class Target:
    codec: Codec
    counts: bool = False  # the client asks for a number of tokens, not for an answer
    facts: tuple[tuple[str, object], ...] = ()  # what the path says and other APIs say in the body
    events: bool = True  # a stream is sent as events; Gemini sends a plain list unless told otherwise


def target(path: str, query: Mapping[str, str]) -> Target | None:
    """The base of the URL is the client's affair, so only its end decides."""
    for ending, codec, counts in _ENDINGS:
        if path.endswith(ending):
            return Target(codec, counts)
    found = _GEMINI.search(path)
    if found and found["verb"] in ("generateContent", "streamGenerateContent", "countTokens"):
        stream = found["verb"] == "streamGenerateContent"
        facts = (("model", found["model"]), ("stream", stream))
        return Target(gemini.CODEC, found["verb"] == "countTokens", facts, query.get("alt") == "sse")
    return None


def body_of(raw: bytes, headers: Mapping[str, str], asked: Target) -> Json:
    try:
        body = json.loads(unpacked(raw, headers.get("content-encoding", "")))
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, BadRequest) else f"the body is not JSON: {error}"
        raise BadRequest(said) from None
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return {**body, **dict(asked.facts)}


def unpacked(raw: bytes, encoding: str) -> bytes:
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return raw
    if kind not in _WINDOW:
        raise BadRequest(f"content-encoding {encoding!r} is not known here; send gzip, deflate or plain")
    try:
        data = zlib.decompressobj(_WINDOW[kind]).decompress(raw, MOST_BYTES + 1)
    except zlib.error as error:
        raise BadRequest(f"the body is not {kind}: {error}") from None
    if len(data) > MOST_BYTES:
        raise BadRequest(f"the body is longer than {MOST_BYTES} bytes")
    return data


def auth_digest(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """Enough to tell keys apart in a test, too little to use one."""
    given = next((headers[name] for name in SECRETS if name in headers), query.get("key", ""))
    secret = given.removeprefix("Bearer ")
    return hashlib.sha256(secret.encode()).hexdigest()[:16] if secret else ""


def session_of(headers: Mapping[str, str]) -> str:
    return next((headers[name] for name in SESSIONS if name in headers), "")
