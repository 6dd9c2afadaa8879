"""What may be written. A caller is told what is wrong with it; what the world says is tidied, as it cannot be asked
again, so that one bad character from an agent never keeps an event out of the log."""

import re

from remuda.domain.errors import Invalid

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
LONGEST_TEXT = 1 << 20
LONGEST_REASON = 2000


def check_name(what: str, value: str) -> None:
    if not NAME.fullmatch(value):
        raise Invalid(
            f"{value[:60]!r} is not a good {what}: use a lower-case letter, then letters, digits or dashes, 40 at most"
        )


def check_text(what: str, text: str, *, longest: int = LONGEST_TEXT, empty: bool = False) -> None:
    if not empty and not text.strip():
        raise Invalid(f"{what} cannot be empty")
    if len(text) > longest:
        raise Invalid(
            f"{what} of {len(text)} characters is too long (at most {longest}); put it in a file and name the file"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} is not valid UTF-8 text") from error


def tidy(text: str) -> str:
    return text[:LONGEST_REASON].encode(errors="replace").decode()
