"""What kind of failure an agent reports, read from the evidence it gives: codes first, then words.

Words come last because they are whatever a service likes to say; a code, where there is one, is meant.
"""

import re
from dataclasses import dataclass

from remuda.agents.model_errors import by_words, model_failure
from remuda.domain.failure import Failure

AUTH_REQUIRED = -32000  # the protocol's own code: log in first

BY_NAME: tuple[tuple[str, Failure], ...] = (
    ("ContextOverflowError", Failure.CONTEXT_EXCEEDED),
    ("context_length_exceeded", Failure.CONTEXT_EXCEEDED),
    ("ProviderAuthError", Failure.NOT_LOGGED_IN),
    ("MessageAbortedError", Failure.CANCELLED),
    ("authentication", Failure.NOT_LOGGED_IN),
    ("rate_limit", Failure.RATE_LIMITED),
    ("overloaded", Failure.OVERLOADED),
    ("refus", Failure.REFUSED),
)
# A number is a status only where it is marked as one: "took 429 seconds" is none.
STATUS = re.compile(
    r"(?:\bHTTP(?:/[\d.]+)? |\bstatus(?:[ _]?code)?\"?[:= ]+|\bcode\"?[:= ]+|error[: ]+|\()([45]\d\d)\b", re.IGNORECASE
)
AFTER = re.compile(
    r"(?:retry[-_ ]?after\"?[:= ]+\"?|retryDelay\"?[:= ]+\"?|(?:try again|retry|reset) (?:in|after) )"
    r"(?:(\d+) ?m(?!s)(?:in(?:utes?)?)?)?,? ?(\d+(?:\.\d+)?)? ?(ms|s\b|sec|\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cause:
    failure: Failure
    retry_after: float | None = None  # seconds, where the service said so


def cause(text: str, *, code: int = 0, name: str = "") -> Cause:
    """The kind of a failure: from its code (JSON-RPC's or HTTP's), its name, or its words."""
    return Cause(_kind(text, code or _status(text), name), retry_after(text))


def retry_after(text: str) -> float | None:
    found = AFTER.search(text)
    if not found or not (found[1] or found[2]):
        return None
    seconds = float(found[1] or 0) * 60 + float(found[2] or 0)
    return seconds / 1000 if found[3].lower() == "ms" else seconds


def _kind(text: str, code: int, name: str) -> Failure:
    if code == AUTH_REQUIRED:
        return Failure.NOT_LOGGED_IN
    for part, failure in BY_NAME:
        if name and part in name:
            return failure
    if by_words(text) is Failure.CONTEXT_EXCEEDED:  # comes as 400 like any other bad request, from some as 500
        return Failure.CONTEXT_EXCEEDED
    return model_failure(code, text)


def _status(text: str) -> int:
    found = STATUS.search(text)
    return int(found[1]) if found else 0
