"""HTTP/1.1 from bytes, on the meter's two sides: the requests of a program, the answer of a service. Pure.

llhttp does the reading, as strict as it comes: two lengths, a length beside chunks, folded or odd headers are refused,
so that nobody behind the meter can see other borders between requests than it does. What it leaves open is closed here:
how long a head may be, trailers that would pass for headers, a body behind the wish to speak another protocol.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import httptools

LONGEST_HEAD = 64 << 10
LARGEST_REQUEST = 64 << 20

_BODY = (b"content-length", b"transfer-encoding")

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Headers
    body: bytes
    keeps: bool  # the program means to use the connection again

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")


class _Refused(Exception):
    """Out of the parser's callbacks; why stands in `broken`."""


class Requests:
    """What a program sends on one connection, cut into requests. `broken` is the status to answer with when nothing
    more can be read from it; the requests before that are whole. `go_on` is called when the program waits for a word
    before it sends a body."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self.broken: int | None = None
        self._go_on = go_on
        self._parser = httptools.HttpRequestParser(self)
        self._whole: list[Request] = []
        self._fed = 0  # bytes since the last border: of a request, or between its head and its body
        self.on_message_begin()

    def feed(self, data: bytes) -> list[Request]:
        if self.broken is not None:
            return []
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
            if self._fed > LONGEST_HEAD + (LARGEST_REQUEST if self._in_body else 0):
                self._refuse(413 if self._in_body else 431)
        except httptools.HttpParserUpgrade:
            self._break(400)  # the request is whole and is answered; what follows it is no HTTP, for all we know
        except (httptools.HttpParserError, _Refused):
            self._break(400)
        whole, self._whole = self._whole, []
        return whole

    def _break(self, status: int) -> None:
        self.broken = self.broken or status

    def _refuse(self, status: int) -> None:
        self._break(status)
        raise _Refused

    # --- what the parser says ---

    def on_message_begin(self) -> None:
        self._in_body = False
        self._size = 0
        self._target = b""
        self._headers: Headers = []
        self._body: bytes | bytearray = b""

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._measure(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # else it is a trailer, and would be believed too late
            self._measure(name, value)
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def _measure(self, *parts: bytes) -> None:
        self._size += sum(map(len, parts))
        if self._size > LONGEST_HEAD:
            self._refuse(431)

    def on_headers_complete(self) -> None:
        self._in_body, self._fed = True, 0
        parser, found = self._parser, dict(self._headers)
        version = parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self._headers)
        codings = [value.lower() for name, value in self._headers if name == b"transfer-encoding"]
        if version not in ("1.0", "1.1"):
            self._refuse(505)
        if hosts > 1 or (not hosts and version == "1.1"):
            self._refuse(400)
        if codings not in ([], [b"chunked"]):
            self._refuse(501)
        if int(found.get(b"content-length", b"0")) > LARGEST_REQUEST:
            self._refuse(413)
        if parser.should_upgrade() and not found.keys().isdisjoint(_BODY):
            self._refuse(400)  # the parser would take the body for the first bytes of the other protocol
        if found.get(b"expect", b"").lower() == b"100-continue" and not self._whole:
            self._go_on()

    def on_body(self, part: bytes) -> None:
        if not self._body:
            self._body = part  # mostly all of it: to copy it costs more than to read the head
        else:
            self._body = self._body if isinstance(self._body, bytearray) else bytearray(self._body)
            self._body += part
        if len(self._body) > LARGEST_REQUEST:
            self._refuse(413)

    def on_message_complete(self) -> None:
        self._fed = 0
        parser = self._parser
        method, target = parser.get_method().decode(), self._target.decode("latin-1")
        keeps = parser.should_keep_alive() and not parser.should_upgrade()
        self._whole.append(Request(method, target, self._headers, bytes(self._body), keeps))


class Response:
    """The answer to one request, as it comes: `head` is called once, `body` with each piece."""

    def __init__(self, method: str, head: Callable[[int, Headers], None], body: Callable[[bytes], None]) -> None:
        self.complete = False
        self.broken = False
        self.keeps = False  # the service means to use the connection again
        self.on_body = body
        self._head = head
        self._bodiless = method == "HEAD"
        self._fed = 0
        self._begun = False  # its head was read, and not that of an interim answer
        self._ends_with_line = False
        self._headers: Headers = []
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.broken = True
        if not self._begun and self._fed > LONGEST_HEAD:
            self.broken = True

    def end(self) -> None:
        """The connection is closed. So ends an answer that tells no length."""
        self.complete = self.complete or (self._ends_with_line and not self.broken)

    # --- what the parser says ---

    def on_message_begin(self) -> None:
        self.broken = self.broken or self.complete  # more than was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._begun:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        headers, self._headers = self._headers, []
        if self._begun or status < 200:
            return
        self._begun = True
        found = dict(headers)
        coding = found.get(b"transfer-encoding", b"").lower()
        self._ends_with_line = b"content-length" not in found and not coding.endswith(b"chunked")
        self.keeps = self._parser.should_keep_alive() and not self._bodiless
        self._head(status, headers)
        self.complete = self._bodiless

    def on_message_complete(self) -> None:
        self.complete = self._begun


class Order(NamedTuple):
    """A request as it goes to the service. All that stands in it was read by the parser above or is our own."""

    method: str
    target: str
    headers: Headers
    body: bytes

    def head(self, authority: str, prefix: str) -> bytes:
        first = f"{self.method} {prefix}{self.target} HTTP/1.1\r\nhost: {authority}\r\n".encode("latin-1")
        length = b"content-length: %d\r\n" % len(self.body) if self.body or self.method == "POST" else b""
        return b"".join((first, *(b"%s: %s\r\n" % pair for pair in self.headers), length, b"\r\n"))
