"""Text that people hand in: from the command line, from a file, from standard input."""

import re
import sys
from pathlib import Path

from remuda.domain.errors import Invalid
from remuda.domain.text import LONGEST_TEXT

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def duration(text: str) -> float:
    """Seconds, as people write them."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhdw])", text.strip())
    if found is None:
        raise Invalid(f"{text[:40]!r} is no length of time; say it as in 7d, 12h, 30m or 90s")
    return float(found[1]) * UNITS[found[2]]


def text_of(what: str, value: str) -> str:
    """Checked before it is sent, so that even what is far too long gets its sentence."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} is not valid UTF-8 text; convert it, for example with iconv") from error
    if len(value) > LONGEST_TEXT:
        raise Invalid(f"{what} is too long (at most {LONGEST_TEXT} characters); put it in a file and name the file")
    return value


def from_stdin(what: str) -> str:
    return _decoded(what, sys.stdin.buffer.read(4 * LONGEST_TEXT + 1))


def from_file(what: str, name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            return _decoded(what, file.read(4 * LONGEST_TEXT + 1))
    except OSError as error:
        raise Invalid(f"{what} cannot be read from {name}: {error.strerror}") from error


def _decoded(what: str, data: bytes) -> str:
    if len(data) > 4 * LONGEST_TEXT:
        raise Invalid(f"{what} is too long (at most {LONGEST_TEXT} characters); put it in a file and name the file")
    try:
        return text_of(what, data.decode())
    except UnicodeDecodeError as error:
        raise Invalid(f"{what} is not valid UTF-8 text; convert it, for example with iconv") from error
