"""Where we are, and how to ask the runtime that is up there, if one is."""

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from remuda.cli.call import Broken, NotUp, connect, exchange, receive, send
from remuda.domain.errors import Invalid, Refused, RemudaError, UnknownAgent
from remuda.domain.text import NAME
from remuda.runtime.place import Place, find_place

LARGEST_BODY = 4 << 20


class Answered(RemudaError):
    """What the runtime said instead of doing it."""

    def __init__(self, message: str, possible: list[str], exit_code: int) -> None:
        super().__init__(message, possible=possible)
        self.exit_code = exit_code  # type: ignore[misc]  # each answer has its own


def project() -> Place:
    return find_place(Path(os.environ.get("REMUDA_PROJECT") or Path.cwd()))


def agent_path(name: str, *rest: str) -> str:
    if not NAME.fullmatch(name):  # it cannot exist, and might not survive as part of an address
        raise UnknownAgent(f"there is no agent {name[:60]!r}; see `remuda ps --all`")
    return "/".join(("/v1/agents", name, *rest))


def read(place: Place, path: str, query: Mapping[str, object] | None = None) -> bytes:
    """Ask for something. NotUp when there is nobody to ask."""
    status, body = exchange(str(place.state), "GET", _target(path, query))
    return checked(status, body)


def write(place: Place, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Have something done, once, also when the answer is lost and we ask again."""
    key = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"
    data = json.dumps(body or {}, ensure_ascii=False).encode()
    if len(data) > LARGEST_BODY:  # the runtime would hang up on us before it had heard it all
        raise Invalid(f"that is more than {LARGEST_BODY >> 20} MiB; put the text in a file and name the file")
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    try:
        try:
            status, answer = exchange(str(place.state), "POST", path, headers, data)
        except Broken:
            status, answer = exchange(str(place.state), "POST", path, headers, data)
    except NotUp as error:
        raise Refused(f"no runtime is up for {place.root}; `remuda up -d` starts it") from error
    result: dict[str, Any] = json.loads(checked(status, answer))
    return result


def stream(place: Place, path: str, query: Mapping[str, object]) -> Iterator[bytes]:
    """What the runtime tells, line by line, for as long as it does."""
    sock = connect(str(place.state))
    try:
        send(sock, "GET", _target(path, query), {})
        status, _, chunks = receive(sock)
        if status != 200:
            checked(status, b"".join(chunks))
        sock.settimeout(None)
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        if rest:
            yield rest
    finally:
        sock.close()


def _target(path: str, query: Mapping[str, object] | None) -> str:
    return f"{path}?{urlencode(given(query or {}))}"


def given(query: Mapping[str, object]) -> dict[str, str]:
    """What is asked for, as an address has it."""
    return {name: str(int(value) if isinstance(value, bool) else value) for name, value in query.items() if value}


def checked(status: int, body: bytes) -> bytes:
    if status < 300:
        return body
    try:
        error = json.loads(body)
        raise Answered(error["message"], error["possible"], error["exit_code"])
    except (ValueError, KeyError, TypeError) as broken:
        raise Answered(f"the runtime answered with an error ({status})", [], 1) from broken
