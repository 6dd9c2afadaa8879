"""What kind of failure an agent reports, from the words of real agents and services."""

import pytest

from remuda.agents.failures import cause, retry_after
from remuda.domain.failure import Failure


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Ran into this error: Rate limit exceeded: slow down.", Failure.RATE_LIMITED),
        ("Server error (500 Internal Server Error) at http://model: something broke", Failure.MODEL_ERROR),
        ("Request failed: Bad request (400): no such thing", Failure.MODEL_ERROR),
        ("Unable to continue: Context limit still exceeded after compaction.", Failure.CONTEXT_EXCEEDED),
        ("prompt is too long: 250000 tokens > 200000 maximum", Failure.CONTEXT_EXCEEDED),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed", Failure.CONTEXT_EXCEEDED),
        ("This model's maximum context length is 128000 tokens", Failure.CONTEXT_EXCEEDED),
        ("unexpected status 401 Unauthorized: no", Failure.NOT_LOGGED_IN),
        ("API key not valid. Please pass a valid API key.", Failure.NOT_LOGGED_IN),
        ("Error: You are not logged in", Failure.NOT_LOGGED_IN),
        ("API Error: 529 try later", Failure.OVERLOADED),
        ('Internal error {"details":"401 no such key"}', Failure.NOT_LOGGED_IN),
        ("The model is currently overloaded", Failure.OVERLOADED),
        ("You exceeded your current quota", Failure.RATE_LIMITED),
        ("connect ECONNREFUSED: connection refused", Failure.MODEL_ERROR),
        ("blocked by safety settings", Failure.REFUSED),
        ("the tests took 429 seconds and failed", Failure.MODEL_ERROR),
        ("", Failure.MODEL_ERROR),
    ],
)
def test_words_tell_the_kind_where_nothing_else_does(text: str, failure: Failure) -> None:
    assert cause(text).failure is failure


@pytest.mark.parametrize(
    ("code", "name", "failure"),
    [
        (-32000, "", Failure.NOT_LOGGED_IN),
        (401, "", Failure.NOT_LOGGED_IN),
        (429, "", Failure.RATE_LIMITED),
        (502, "", Failure.OVERLOADED),
        (503, "", Failure.OVERLOADED),
        (504, "", Failure.OVERLOADED),
        (-32603, "ContextOverflowError", Failure.CONTEXT_EXCEEDED),
        (-32603, "rate_limit", Failure.RATE_LIMITED),
        (-32603, "authentication_failed", Failure.NOT_LOGGED_IN),
        (-32603, "APIError", Failure.MODEL_ERROR),
    ],
)
def test_a_code_or_a_name_is_believed_before_words(code: int, name: str, failure: Failure) -> None:
    assert cause("something went wrong", code=code, name=name).failure is failure


def test_a_code_that_only_says_that_it_failed_leaves_it_to_the_words() -> None:
    assert cause('Internal error {"details":"401 no"}', code=-32603).failure is Failure.NOT_LOGGED_IN


def test_a_full_context_is_told_apart_though_it_comes_with_the_code_of_any_bad_request() -> None:
    assert cause("prompt is too long", code=400).failure is Failure.CONTEXT_EXCEEDED


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("retry-after: 20", 20.0),
        ('{"retryDelay": "5s"}', 5.0),
        ("Please try again in 1.5 s", 1.5),
        ("try again in 250ms", 0.25),
        ("Please retry in 2m 30s.", 150.0),
        ("Rate limit reached. Try again in 3 minutes", 180.0),
        ("try again in a while", None),
        ("slow down", None),
    ],
)
def test_how_long_to_wait_is_read_where_it_is_said(text: str, seconds: float | None) -> None:
    assert retry_after(text) == seconds
