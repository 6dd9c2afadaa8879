"""Where a request goes and in whose name: the token at this door becomes the key at the service's. Pure."""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from remuda.meter.apis import ANTHROPIC, GEMINI, RESPONSES, Action, Api, api_of
from remuda.meter.tally import ENCODINGS
from remuda.meter.wire import Headers, Order, Request

# The hop's own, and what stands for the caller at this door alone.
_NOT_PASSED = frozenset(
    b"host connection keep-alive proxy-authorization proxy-connection te trailer transfer-encoding upgrade expect"
    b" content-length accept-encoding authorization x-api-key x-goog-api-key cookie"
    # By these some gateways do something else than what stands in the first line.
    b" x-http-method x-http-method-override x-method-override x-original-url x-rewrite-url".split()
)
# A path that everyone reads alike: it goes nowhere but where it seems to go.
_PLAIN_PATH = re.compile(r"(/(?!\.\.?(/|$))[A-Za-z0-9_.~:@+,=-]+)+")
_LISTS = re.compile(r"(/[^/]+){0,3}/models(/[^/]+){0,3}")
_KEY = "key"  # in the query: Gemini's


class Target(NamedTuple):
    api: Api
    action: Action | None  # None: it is not passed on
    path: str
    query: str


def target_of(request: Request) -> Target:
    """By the end of its path: programs are told one address, whichever API they speak."""
    path, _, query = request.target.partition("?")
    if query:
        query = urlencode([pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != _KEY])
    plain = _PLAIN_PATH.fullmatch(path) is not None
    found = api_of(request.method, path)
    if found is not None:
        return Target(found[0], found[1] if plain else None, path, query)
    lists = plain and request.method in ("GET", "HEAD") and _LISTS.fullmatch(path) is not None
    return Target(_by_headers(request), Action.ASK if lists else None, path, query)


def _by_headers(request: Request) -> Api:
    """Which models there are is asked at the same path by all; only how the key is shown tells them apart."""
    if request.header(b"x-goog-api-key") or "/v1beta/" in request.target:
        return GEMINI
    return ANTHROPIC if request.header(b"x-api-key") or request.header(b"anthropic-version") else RESPONSES


def token_of(request: Request) -> str:
    """Wherever the program puts its key."""
    scheme, _, bearer = request.header(b"authorization").partition(" ")
    named = request.header(b"x-api-key") or request.header(b"x-goog-api-key")
    if named or scheme.lower() == "bearer":
        return named or bearer.strip()
    return dict(parse_qsl(request.target.partition("?")[2])).get(_KEY, "")


def headers_of(request: Request, key: str | None, *, packed: bool) -> Headers:
    """As the program sent them, with the service's key in the place of the token. `packed`: the body stays as it is."""
    left_out = _NOT_PASSED if packed else _NOT_PASSED | {b"content-encoding"}
    headers = [pair for pair in request.headers if pair[0] not in left_out]
    if key is not None:
        headers.append(_credential(request, key))
    headers.append((b"accept-encoding", _readable(request.header(b"accept-encoding"))))
    return headers


def _credential(request: Request, key: str) -> tuple[bytes, bytes]:
    if request.header(b"x-api-key"):
        return b"x-api-key", key.encode()
    if request.header(b"authorization"):
        return b"authorization", f"Bearer {key}".encode()
    return b"x-goog-api-key", key.encode()


def _readable(wanted: str) -> bytes:
    """Of the packings that the program takes, those that can be read here: else nobody would see what a call cost."""
    names = [each.partition(";")[0].strip().lower() for each in wanted.split(",")]
    return ", ".join(each for each in ENCODINGS if each in names or each == "identity").encode()


def order_of(request: Request, target: Target, headers: Headers, body: bytes) -> Order:
    return Order(request.method, target.path + (f"?{target.query}" if target.query else ""), headers, body)
