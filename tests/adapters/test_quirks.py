"""Agents that mean different things by the same words, read without them: from recordings and in their shapes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Raw

from remuda.agents import ModelCall, Retry, ToolCall, TurnResult, Update
from remuda.agents.acp_reading import SILENCE, Reading
from remuda.agents.jsonrpc import Notice, Request, RpcError, RpcResult, decode
from remuda.agents.quirks import COPILOT, CUSTOM, GEMINI, GOOSE, OPENCODE, PI, PLAIN, QWEN, Counting, Quirks
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
RECORDED = {"opencode": OPENCODE, "goose": GOOSE, "gemini": GEMINI}


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def read(reading: Reading, **update: object) -> list[Update]:
    return list(reading.update(raw({"sessionId": "s", "update": update})))


def says(reading: Reading, text: str, **fields: object) -> list[Update]:
    return read(reading, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **fields)


def end(reading: Reading, *, cancelled: bool = False, **fields: object) -> tuple[TurnResult, list[ModelCall]]:
    result, calls = reading.end_turn(raw({"stopReason": "end_turn", **fields}), cancelled=cancelled)
    return result, list(calls)


def turns(name: str, quirks: Quirks) -> Iterator[tuple[TurnResult, list[Update]]]:
    """Each recorded turn: what it came to, and all that was told in it."""
    reading, heard, prompts = Reading(quirks), list[Update](), set[object]()
    for line in (TRANSCRIPTS / f"acp.{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        message = decode(entry["line"])
        match entry["side"], message:
            case "remuda", Request(id=number, method="session/prompt"):
                prompts.add(number)
                reading.begin_turn()
                heard = []
            case "agent", Request(params=params):
                heard += reading.asked(params)
            case "agent", Notice(params=params):
                heard += reading.update(params)
            case "agent", RpcResult(id=number, result=result) if number in prompts:
                verdict, calls = reading.end_turn(result)
                yield verdict, [*heard, *calls]
            case "agent", RpcError(id=number) if number in prompts:
                yield reading.failed(message), [*heard, *reading.settle()]


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_turn_of_four_tools_reads_as_it_was_played(name: str) -> None:
    ((verdict, heard),) = turns(f"{name}-work", RECORDED[name])
    assert (verdict.outcome, verdict.failure) == (Outcome.COMPLETED, None)
    tools = [each for each in heard if isinstance(each, ToolCall)]
    started = [each for each in tools if each.status == "started"]
    assert len(started) == 4
    assert [each.id for each in tools if each.status == "completed"] == [each.id for each in started]
    assert "pong: are you there" in "".join(each.result for each in tools)
    assert all(" " not in each.name for each in started)


@pytest.mark.parametrize("name", RECORDED)
def test_no_recorded_failure_of_the_model_reads_as_a_turn_that_went_well(name: str) -> None:
    told = list(turns(f"{name}-faults", RECORDED[name]))
    assert len(told) == 4
    assert {verdict.outcome for verdict, _ in told} == {Outcome.FAILED}
    assert all(verdict.error and verdict.failure for verdict, _ in told)


def test_goose_and_gemini_tell_the_kind_of_failure_in_the_protocol_itself() -> None:
    kinds = [Failure.MODEL_ERROR, Failure.RATE_LIMITED, Failure.NOT_LOGGED_IN, Failure.CONTEXT_EXCEEDED]
    for name in ("goose", "gemini"):
        assert [verdict.failure for verdict, _ in turns(f"{name}-faults", RECORDED[name])] == kinds


def test_goose_tells_each_call_with_what_came_from_the_cache() -> None:
    ((_, heard),) = turns("goose-work", GOOSE)
    calls = [each.usage for each in heard if isinstance(each, ModelCall)]
    assert [(each.input_tokens, each.cache_read_tokens, each.output_tokens) for each in calls] == [
        (900, 100, 11),
        (1000, 1000, 22),
        (1000, 2000, 33),
        (1000, 3000, 44),
        (1000, 4000, 55),
    ]


def test_goose_counts_a_call_of_its_own_that_it_told_only_in_the_sum() -> None:
    reading = Reading(GOOSE)
    usage = {"inputTokens": 1200, "outputTokens": 34, "cacheReadTokens": 100}
    told = read(reading, sessionUpdate="message_usage", usage=usage)
    read(reading, sessionUpdate="usage_update", used=9, accumulatedInputTokens=2000, accumulatedOutputTokens=40)
    _, rest = end(reading)
    numbers = [
        (each.usage.input_tokens, each.usage.output_tokens) for each in [*told, *rest] if isinstance(each, ModelCall)
    ]
    assert numbers == [(1100, 34), (800, 6)]
    assert end(reading)[1] == []


def test_goose_counts_a_resumed_session_from_where_it_stood() -> None:
    reading = Reading(GOOSE)
    reading.resumed()
    read(reading, sessionUpdate="usage_update", used=9, accumulatedInputTokens=5000, accumulatedOutputTokens=50)
    read(reading, sessionUpdate="usage_update", used=9, accumulatedInputTokens=5100, accumulatedOutputTokens=53)
    _, (call,) = end(reading)
    assert (call.usage.input_tokens, call.usage.output_tokens) == (100, 3)


def test_gemini_without_its_books_counts_the_turn_model_by_model() -> None:
    usage = [
        {"model": "gemini-2.5-pro", "token_count": {"input_tokens": 10, "output_tokens": 1}},
        {"model": "gemini-2.5-flash", "token_count": {"input_tokens": 20, "output_tokens": 2}},
    ]
    _, calls = end(Reading(GEMINI), _meta={"quota": {"model_usage": usage}})
    assert [(each.model, each.usage.input_tokens, each.usage.output_tokens) for each in calls] == [
        ("gemini-2.5-pro", 10, 1),
        ("gemini-2.5-flash", 20, 2),
    ]


def test_copilot_counts_the_session_so_each_turn_is_the_difference() -> None:
    reading = Reading(COPILOT)
    says(reading, "one")
    assert [each.usage.input_tokens for each in end(reading, usage={"inputTokens": 10, "outputTokens": 1})[1]] == [10]
    assert [each.usage.input_tokens for each in end(reading, usage={"inputTokens": 25, "outputTokens": 2})[1]] == [15]
    assert [each.usage.input_tokens for each in end(reading, usage={"inputTokens": 3, "outputTokens": 1})[1]] == [3]


def test_qwen_tells_each_call_on_an_empty_piece_of_text() -> None:
    reading = Reading(QWEN)
    told = says(reading, "", _meta={"usage": {"inputTokens": 10, "outputTokens": 2, "cachedReadTokens": 4}})
    assert [
        (each.usage.input_tokens, each.usage.cache_read_tokens) for each in told if isinstance(each, ModelCall)
    ] == [(6, 4)]


def test_what_cannot_be_added_up_is_said_to_be_so() -> None:
    assert not Counting.LAST_CALL.exact
    assert not Counting.CONTEXT.exact
    assert PI.counts is Counting.CONTEXT
    assert {each.counts for each in (OPENCODE, GEMINI, GOOSE, QWEN)} == {Counting.CALLS}
    assert not COPILOT.counts.priceable


@pytest.mark.parametrize("quirks", [OPENCODE, GOOSE, PI, COPILOT, CUSTOM])
def test_a_turn_without_a_word_or_a_tool_is_a_failed_one_where_that_is_the_agents_way(quirks: Quirks) -> None:
    reading = Reading(quirks)
    reading.begin_turn()
    result, _ = end(reading, usage={"inputTokens": 128, "outputTokens": 0})
    assert (result.outcome, result.failure, result.error) == (Outcome.FAILED, Failure.MODEL_ERROR, SILENCE)


def test_a_silent_turn_of_a_well_behaved_agent_is_a_turn() -> None:
    assert end(Reading(PLAIN))[0].outcome is Outcome.COMPLETED


def test_a_silent_end_after_we_cancelled_is_the_cancellation() -> None:
    result, _ = end(Reading(OPENCODE), cancelled=True)
    assert (result.outcome, result.stop_reason, result.failure) == (Outcome.FAILED, "cancelled", Failure.CANCELLED)


def test_a_complaint_fails_the_turn_that_the_agent_calls_well_ended() -> None:
    reading = Reading(COPILOT)
    says(reading, "Error: 401 Unauthorized")
    result, _ = end(reading)
    assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.NOT_LOGGED_IN)
    reading.begin_turn()
    says(reading, "All is well again.")
    assert end(reading)[0].outcome is Outcome.COMPLETED


def test_a_model_that_speaks_of_an_error_does_not_fail_its_turn() -> None:
    reading = Reading(GOOSE)
    says(reading, "I looked into it. Ran into this error: the disk is full. I have made room and it works now.")
    assert end(reading)[0].outcome is Outcome.COMPLETED


def test_the_error_that_codex_acp_hides_in_the_sessions_info_fails_the_turn() -> None:
    reading = Reading(CUSTOM)
    read(reading, sessionUpdate="session_info_update", _meta={"codex": {"error": {"message": "429 too many requests"}}})
    says(reading, "Sorry.")
    assert end(reading)[0].failure is Failure.RATE_LIMITED


def test_a_cost_of_nothing_is_a_price_that_nobody_knows() -> None:
    reading = Reading(PLAIN)
    read(reading, sessionUpdate="usage_update", used=5, size=10, cost={"amount": 0, "currency": "USD"})
    _, (call,) = end(reading, usage={"inputTokens": 5, "outputTokens": 1})
    assert call.usage.cost_nanousd is None


@pytest.mark.parametrize(
    ("data", "failure", "retry_after"),
    [
        ({"kind": "overloaded", "retry_after": 5}, Failure.OVERLOADED, 5.0),
        ({"kind": "context_exceeded"}, Failure.CONTEXT_EXCEEDED, None),
        ({"kind": "no such kind", "retry_after": 5}, Failure.RATE_LIMITED, 5.0),  # its words must do
        (["overloaded"], Failure.RATE_LIMITED, None),
    ],
)
def test_a_failure_told_in_our_own_words_is_taken_at_its_word(
    data: object, failure: Failure, retry_after: float | None
) -> None:
    error = RpcError(1, -32603, "too many requests", Raw(json.dumps({"remuda/failure": data}).encode()))
    result = Reading().failed(error)
    assert (result.outcome, result.failure, result.retry_after) == (Outcome.FAILED, failure, retry_after)


def test_that_a_call_is_tried_again_is_no_word_of_the_models_so_a_turn_with_nothing_else_has_failed() -> None:
    reading = Reading(PI)
    reading.begin_turn()
    told = says(reading, "Retrying (attempt 2/3, waiting 4s)...")
    assert told == [Retry(2, Failure.MODEL_ERROR, "Retrying (attempt 2/3, waiting 4s)...", 4.0)]
    assert says(reading, "Retry finished, resuming.") == []
    assert end(reading)[0].failure is Failure.MODEL_ERROR
    reading.begin_turn()
    assert says(reading, "Retrying (attempt 2/3, waiting 4s)... is what it said") != []
    assert end(reading)[0].outcome is Outcome.COMPLETED
