"""One question to the runtime over its socket, with nothing imported that costs time: `remuda ps` waits for this.

HTTP/1.0 on purpose: an answer is whatever comes until the connection closes, so a stream needs no decoding.
"""

import _socket
import os
import sys
from collections.abc import Iterator

SOCKET = "remuda.sock"
LONGEST_PATH = 100  # bytes; a little under what the kernel takes for a socket's name
PATIENCE = 30.0  # seconds without a byte before we say that the runtime does not answer
CHUNK = 1 << 16


class NotUp(Exception):
    """Nobody listens."""


class Broken(Exception):
    """The connection broke before the answer was whole."""


def connect(state: str) -> "_socket.socket":
    """The runtime of the project whose private folder this is."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.settimeout(PATIENCE)
    path = f"{state}/{SOCKET}"
    try:
        if len(os.fsencode(path)) <= LONGEST_PATH:
            sock.connect(path)
        else:
            _connect_from_inside(sock, state)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        sock.close()
        raise NotUp from error
    except OSError:
        sock.close()
        raise
    return sock


def _connect_from_inside(sock: "_socket.socket", state: str) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(state)
        sock.connect(SOCKET)
    finally:
        os.fchdir(here)
        os.close(here)


def send(sock: "_socket.socket", method: str, target: str, headers: dict[str, str], body: bytes = b"") -> None:
    lines = [f"{method} {target} HTTP/1.0", "Host: remuda", f"Content-Length: {len(body)}"]
    token = os.environ.get("REMUDA_TOKEN", "")
    if token:
        lines.append(f"Authorization: Bearer {token}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    try:
        sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body)
    except (BrokenPipeError, ConnectionResetError):
        return  # it may have answered all the same: whoever reads will see


def receive(sock: "_socket.socket") -> tuple[int, int, Iterator[bytes]]:
    """The status, the length (-1 where the answer is a stream) and the body as it comes."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = _some(sock)
        if not more:
            raise Broken
        data += more
    head, _, first = data.partition(b"\r\n\r\n")
    status, *fields = head.split(b"\r\n")
    length = next((int(field[15:]) for field in fields if field.lower().startswith(b"content-length:")), -1)
    return int(status.split()[1]), length, _body(sock, first, length)


def _body(sock: "_socket.socket", first: bytes, length: int) -> Iterator[bytes]:
    if first:
        yield first
    left = length - len(first)
    while left:  # negative for a stream: until it ends
        data = _some(sock)
        if not data and length >= 0:
            raise Broken
        if not data:
            return
        left -= len(data)
        yield data


def _some(sock: "_socket.socket") -> bytes:
    try:
        return sock.recv(CHUNK)
    except ConnectionResetError:
        return b""


def exchange(
    state: str, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    sock = connect(state)
    try:
        send(sock, method, target, headers or {}, body)
        status, _, chunks = receive(sock)
        return status, b"".join(chunks)
    finally:
        sock.close()


# --- the terminal ---


def width() -> int:
    """Columns of the terminal, or 0 where the output goes elsewhere."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 0


def colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and os.isatty(1)


def write_out(data: bytes) -> None:
    """To standard output, whole and at once, whatever the locale says."""
    sys.stdout.flush()
    while data:
        data = data[os.write(1, data) :]


def roster_target(*, dead: bool, as_json: bool) -> str:
    query = "all=1&" if dead else ""
    return f"/v1/agents?{query}" + ("" if as_json else f"format=text&width={width()}&color={int(colour())}")
