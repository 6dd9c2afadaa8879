"""What a model service's refusal of a call means, whichever program passes it on. Pure."""

import re
from collections.abc import Mapping

from remuda.domain.failure import Failure

_BY_STATUS: Mapping[int, Failure] = {
    401: Failure.NOT_LOGGED_IN,
    403: Failure.NOT_LOGGED_IN,
    413: Failure.CONTEXT_EXCEEDED,
    429: Failure.RATE_LIMITED,
    503: Failure.OVERLOADED,
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


def by_status(status: int | None) -> Failure | None:
    """What an HTTP status says by itself; None where it depends on the words."""
    return _BY_STATUS.get(status or 0)


def by_words(text: str) -> Failure | None:
    return next((failure for words, failure in _BY_WORDS if words.search(text)), None)


def model_failure(status: int | None, text: str) -> Failure:
    return by_status(status) or by_words(text) or Failure.MODEL_ERROR
