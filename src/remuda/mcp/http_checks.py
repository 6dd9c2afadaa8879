"""What a request must look like before anybody reads its body. Pure: headers in, a refusal or nothing out.

A page in a browser can reach whatever listens on loopback; it cannot choose the headers Host and Origin. So these are
checked as well as the token, which a page might have got hold of.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Refusal(NamedTuple):
    status: int
    why: str


def check_place(headers: Mapping[str, str], hosts: frozenset[str] = LOOPBACK) -> Refusal | None:
    """Whether it was meant for us, and comes from nowhere else than it should."""
    host = _name(headers.get("host", ""))
    if host not in hosts:
        return Refusal(421, f"this server does not go by the name {host[:100]!r}")
    origin = headers.get("origin")
    if origin is not None and (_name(origin.partition("://")[2]) not in hosts):
        return Refusal(403, f"pages of {origin[:100]!r} may not call this server")
    return None


def check_post(headers: Mapping[str, str]) -> Refusal | None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Refusal(415, "the body must be application/json")
    if not accepts(headers, "application/json"):
        return Refusal(406, "the header Accept must name application/json and text/event-stream")
    return None


def accepts(headers: Mapping[str, str], kind: str) -> bool:
    wanted = {each.partition(";")[0].strip().lower() for each in headers.get("accept", "*/*").split(",")}
    return bool(wanted & {kind, "*/*", f"{kind.partition('/')[0]}/*"})


def bearer(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _name(authority: str) -> str:
    if "@" in authority:
        return ""
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        return ""
