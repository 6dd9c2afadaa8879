"""What kind of failure an agent reports, read from the evidence it gives: codes first, then words. Pure.

Words come last because they are whatever a service likes to say; a code, where there is one, is meant.
"""

import re
from collections.abc import Mapping
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
_BY_STATUS: Mapping[int, Failure] = {
    401: Failure.NOT_LOGGED_IN,
    403: Failure.NOT_LOGGED_IN,
    413: Failure.CONTEXT_EXCEEDED,
    429: Failure.RATE_LIMITED,
    502: Failure.OVERLOADED,  # nobody there, for now
    503: Failure.OVERLOADED,
    504: Failure.OVERLOADED,
    529: Failure.OVERLOADED,
}

# For the errors that programs tell in prose only. The first that is found in the text counts.
_BY_WORDS: tuple[tuple[re.Pattern[str], Failure], ...] = tuple(
    (re.compile(words, re.IGNORECASE), failure)
    for words, failure in (
        (
            r"prompt is too long|context.(window|length|limit|size)|maximum context|input is too long"
            r"|too large to compact|input token count.{0,40}exceeds|exceeds the (maximum|model).{0,30}(tokens|context)",
            Failure.CONTEXT_EXCEEDED,
        ),
        (
            r"not logged in|/login\b|(invalid|incorrect|missing|no) (x-)?api.key|api key not valid"
            r"|authenticat|unauthori[sz]ed|(please|must) (log|sign) ?in|login required",
            Failure.NOT_LOGGED_IN,
        ),
        (
            r"content.filter|content policy|usage policy|flagged|blocked by safety|(?<!connection )\brefus(ed|al)\b",
            Failure.REFUSED,
        ),
        (
            r"rate.limit|too many requests|resource.exhausted|\bquota\b|(usage|session|weekly) limit|hit your limit",
            Failure.RATE_LIMITED,
        ),
        (r"overloaded|at capacity|service unavailable", Failure.OVERLOADED),
    )
)

# A number is a status only where it is marked as one: "took 429 seconds" is none.
STATUS = re.compile(
    r"(?:\bHTTP(?:/[\d.]+)? |\bstatus(?:[ _]?code)?\"?[:= ]+|\bcode\"?[:= ]+|error[: ]+|details\":\"|\()([45]\d\d)\b",
    re.IGNORECASE,
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
    told = code if code > 0 or code == AUTH_REQUIRED else _status(text)  # JSON-RPC's others say only that it failed
    return Cause(_kind(text, told, name), retry_after(text))


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


def by_status(status: int | None) -> Failure | None:
    """What an HTTP status says by itself; None where it depends on the words."""
    return _BY_STATUS.get(status or 0)


def by_words(text: str) -> Failure | None:
    return next((failure for words, failure in _BY_WORDS if words.search(text)), None)


def model_failure(status: int | None, text: str) -> Failure:
    return by_status(status) or by_words(text) or Failure.MODEL_ERROR
