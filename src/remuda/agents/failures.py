"""What kind of failure an agent reports, read from the evidence it gives: codes first, then words.

Words come last because they are whatever a service likes to say; a code, where there is one, is meant.
"""

import re
from dataclasses import dataclass

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
BY_STATUS = {
    401: Failure.NOT_LOGGED_IN,
    403: Failure.NOT_LOGGED_IN,
    413: Failure.CONTEXT_EXCEEDED,
    429: Failure.RATE_LIMITED,
    503: Failure.OVERLOADED,
    529: Failure.OVERLOADED,
}
CONTEXT = re.compile(
    r"context[ _](?:length|window|limit|size)|prompt is too long|maximum context|too large to compact"
    r"|input token count.{0,40}exceeds|exceeds the (?:maximum|model'?s?).{0,30}(?:tokens|context)|input is too long",
    re.IGNORECASE,
)
BY_WORDS: tuple[tuple[re.Pattern[str], Failure], ...] = (
    (
        re.compile(
            r"\bauthenticat|unauthori[sz]ed|(?:invalid|incorrect|missing|no) api[ _-]?key|api key not valid"
            r"|not logged in|(?:please|must) (?:log|sign) ?in|login required",
            re.IGNORECASE,
        ),
        Failure.NOT_LOGGED_IN,
    ),
    (
        re.compile(r"rate[ _-]?limit|too many requests|resource[ _]exhausted|\bquota\b|usage limit", re.IGNORECASE),
        Failure.RATE_LIMITED,
    ),
    (re.compile(r"overloaded|at capacity|service unavailable", re.IGNORECASE), Failure.OVERLOADED),
    (re.compile(r"content[ _](?:filter|policy)|blocked by safety", re.IGNORECASE), Failure.REFUSED),
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
    if CONTEXT.search(text):  # comes as 400 like any other bad request, from some as 413 or 500
        return Failure.CONTEXT_EXCEEDED
    if code in BY_STATUS:
        return BY_STATUS[code]
    for words, failure in BY_WORDS:
        if words.search(text):
            return failure
    return Failure.MODEL_ERROR


def _status(text: str) -> int:
    found = STATUS.search(text)
    return int(found[1]) if found else 0
