"""What the messages of Codex's app-server mean, on recordings of the real program and on hostile ones."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from adapters.replay import recorded, replay_codex
from remuda.agents import Asked, ModelCall, Retry, Text, Thought, ToolCall, Update
from remuda.agents.codex_codec import Error, Params, Reading, Turn, lenient, permissions_wanted, read, verdict
from remuda.agents.jsonrpc import Notice, decode
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome, Usage


def begun() -> Reading:
    reading = Reading()
    reading.thread, reading.model = "ours", "big"
    tell(reading, "turn/started", turn={"id": "t1"})
    return reading


def tell(reading: Reading, method: str, thread: str = "ours", **fields: Any) -> list[Update]:
    params = read(Raw(json.dumps({"turnId": "t1", "threadId": thread, **fields}).encode()), Params)
    return list(reading.update(method, params))


def used(total: int, last: int, *, output: int = 0, cached: int = 0) -> dict[str, Any]:
    def told(tokens: int) -> dict[str, int]:
        return {"inputTokens": tokens, "cachedInputTokens": cached, "outputTokens": output}

    return {"tokenUsage": {"total": told(total), "last": told(last), "modelContextWindow": 1000}}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"item": {"type": kind, "id": "i1", **fields}}


# Recordings


def test_the_tour_is_heard_whole_and_nothing_twice() -> None:
    heard = replay_codex("codex.tour")
    assert heard.text() == "I run a command.All done.Again."
    assert heard.thoughts() == "Hm."
    assert heard.tools() == [(tool, status) for tool in ("shell", "apply_patch") for status in ("started", "completed")]
    assert [turn.outcome for turn in heard.turns] == [Outcome.COMPLETED] * 2


def test_usage_of_the_tour_adds_up_and_has_no_price() -> None:
    heard = replay_codex("codex.tour")
    assert heard.sums() == (4 * 1100, 4 * 34, 4 * 100)
    assert {call.usage.cost_nanousd for call in heard.calls()} == {None}
    assert {(call.usage.context_tokens, call.usage.context_window) for call in heard.calls()} == {(1234, 258_400)}


def test_the_recorded_faults_are_told_apart() -> None:
    heard = replay_codex("codex.faults")
    assert [turn.failure for turn in heard.turns] == [
        Failure.NOT_LOGGED_IN,
        None,
        Failure.RATE_LIMITED,
        Failure.MODEL_ERROR,
        Failure.OVERLOADED,
        Failure.CONTEXT_EXCEEDED,
        Failure.REFUSED,
        Failure.MODEL_ERROR,
    ]
    assert [turn.outcome is Outcome.COMPLETED for turn in heard.turns] == [False, True, *[False] * 6]
    assert {retry.failure for retry in heard.retries()} >= {Failure.NOT_LOGGED_IN, Failure.RATE_LIMITED}


def test_an_interrupted_turn_is_cancelled_and_repeated_usage_is_no_call() -> None:
    heard = replay_codex("codex.interrupted")
    told = [line for side, line in recorded("codex.interrupted") if "thread/tokenUsage/updated" in line]
    assert [(turn.stop_reason, turn.failure) for turn in heard.turns] == [("cancelled", Failure.CANCELLED)] * 2
    assert heard.tools() == [("shell", "started"), ("shell", "failed")]
    assert len(heard.calls()) == 1 <= len(told)


def test_a_denied_change_has_failed() -> None:
    assert replay_codex("codex.denied").tools() == [("apply_patch", "started"), ("apply_patch", "failed")]


def test_after_a_resume_only_new_calls_count() -> None:
    heard = replay_codex("codex.resumed")
    told = [line for side, line in recorded("codex.resumed") if "thread/tokenUsage/updated" in line]
    assert (len(told), len(heard.calls())) == (2, 1)
    assert heard.sums() == (1100, 34, 100)


# Text, thoughts, tools


def test_an_answer_that_came_in_pieces_is_not_told_again_as_a_whole() -> None:
    reading = begun()
    assert tell(reading, "item/agentMessage/delta", itemId="i1", delta="Hel") == [Text("Hel")]
    assert tell(reading, "item/completed", **item("agentMessage", text="Hello")) == []
    other = {"type": "agentMessage", "id": "i2", "text": "Bye"}
    assert tell(reading, "item/completed", item=other) == [Text("Bye")]


def test_what_another_thread_says_is_not_said_by_the_agent() -> None:
    reading = begun()
    assert tell(reading, "item/agentMessage/delta", "another", itemId="i1", delta="psst") == []
    assert tell(reading, "item/completed", "another", **item("agentMessage", text="psst")) == []


@pytest.mark.parametrize("method", ["item/reasoning/summaryTextDelta", "item/reasoning/textDelta"])
def test_reasoning_is_thought(method: str) -> None:
    assert tell(begun(), method, itemId="i1", delta="Hm.") == [Thought("Hm.")]


def test_a_command_tells_its_output_and_its_exit_code() -> None:
    reading = begun()
    (started,) = tell(reading, "item/started", **item("commandExecution", command="make", status="inProgress"))
    done = item("commandExecution", command="make", status="failed", aggregatedOutput="no rule\n", exitCode=2)
    (failed,) = tell(reading, "item/completed", **done)
    assert started == ToolCall("i1", "shell", "started", '{"command":"make"}')
    assert failed == ToolCall("i1", "shell", "failed", '{"command":"make"}', "no rule\n\nexit code 2")


def test_a_tool_of_a_tool_server_is_named_with_it() -> None:
    reading = begun()
    call = {"server": "parrot", "tool": "echo", "arguments": {"text": "hi"}}
    tell(reading, "item/started", **item("mcpToolCall", **call))
    result = {"content": [{"type": "text", "text": "hi"}]}
    (done,) = tell(reading, "item/completed", **item("mcpToolCall", status="completed", result=result, **call))
    assert done == ToolCall("i1", "mcp__parrot__echo", "completed", '{"text":"hi"}', "hi")


def test_an_error_of_a_tool_server_is_its_result() -> None:
    error = {"message": "the parrot is dead"}
    *_, done = tell(begun(), "item/completed", **item("mcpToolCall", status="failed", error=error))
    assert isinstance(done, ToolCall)
    assert (done.status, done.result) == ("failed", "the parrot is dead")


def test_a_tool_that_is_only_heard_of_when_it_is_done_has_begun_as_well() -> None:
    tools = tell(begun(), "item/completed", **item("webSearch", query="horses"))
    assert [tool.status for tool in tools if isinstance(tool, ToolCall)] == ["started", "completed"]


def test_a_retry_tells_which_it_is() -> None:
    error = {
        "message": "Reconnecting... 2/5",
        "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 503}},
    }
    assert tell(begun(), "error", error=error, willRetry=True) == [Retry(2, Failure.OVERLOADED, "Reconnecting... 2/5")]


# Questions


def test_a_question_about_a_change_names_its_files() -> None:
    reading = begun()
    change = {"path": "/there/notes.txt", "kind": {"type": "add"}, "diff": "alpha"}
    tell(reading, "item/started", **item("fileChange", changes=[change]))
    asked = reading.asked(3, "item/fileChange/requestApproval", Raw(b'{"itemId":"i1","reason":"to remember"}'))
    assert (asked.id, asked.tool, asked.paths, asked.title) == (
        "i1",
        "apply_patch",
        ("/there/notes.txt",),
        "to remember",
    )


def test_a_question_about_nothing_known_is_still_a_question() -> None:
    asked = begun().asked(3, "item/commandExecution/requestApproval", Raw(b'{"command":"make"}'))
    assert asked == Asked("3", "commandExecution", '{"command":"make"}', (), "make")


def test_permissions_are_given_as_they_were_asked_for_or_not_at_all() -> None:
    params = Raw(b'{"permissions":{"network":{"enabled":true}}}')
    assert permissions_wanted(params, allow=True) == {"network": {"enabled": True}}
    assert permissions_wanted(params, allow=False) == {}


# Usage


def test_a_call_is_what_the_total_grew_by() -> None:
    reading = begun()
    first = tell(reading, "thread/tokenUsage/updated", **used(100, 100, output=5, cached=10))
    again = tell(reading, "thread/tokenUsage/updated", **used(100, 100, output=5, cached=10))
    assert first == [ModelCall(1, Usage(90, 5, 10, 0, 105, 1000), "big")]
    assert again == []


def test_two_calls_told_at_once_are_not_lost() -> None:
    reading = begun()
    tell(reading, "thread/tokenUsage/updated", **used(100, 100))
    (call,) = tell(reading, "thread/tokenUsage/updated", **used(350, 120))
    assert isinstance(call, ModelCall)
    assert (call.usage.input_tokens, call.usage.context_tokens) == (250, 120)


def test_usage_of_a_turn_that_is_not_of_this_session_is_history() -> None:
    reading = begun()
    assert tell(reading, "thread/tokenUsage/updated", turnId="long ago", **used(900, 100)) == []
    (call,) = tell(reading, "thread/tokenUsage/updated", **used(1000, 100))
    assert isinstance(call, ModelCall)
    assert call.usage.input_tokens == 100


def test_a_past_that_nobody_told_is_not_counted() -> None:
    (call,) = tell(begun(), "thread/tokenUsage/updated", **used(9000, 100))
    assert isinstance(call, ModelCall)
    assert call.usage.input_tokens == 100


def test_threads_of_subagents_are_counted_by_themselves() -> None:
    reading = begun()
    tell(reading, "thread/tokenUsage/updated", **used(100, 100))
    (call,) = tell(reading, "thread/tokenUsage/updated", "another", **used(40, 40))
    assert isinstance(call, ModelCall)
    assert (call.number, call.usage.input_tokens) == (2, 40)


# How a turn ended


@pytest.mark.parametrize(
    ("info", "message", "failure"),
    [
        ("contextWindowExceeded", "", Failure.CONTEXT_EXCEEDED),
        ("usageLimitExceeded", "", Failure.RATE_LIMITED),
        ("rateLimitExceeded", "", Failure.RATE_LIMITED),
        ("serverOverloaded", "", Failure.OVERLOADED),
        ("unauthorized", "", Failure.NOT_LOGGED_IN),
        ("cyberPolicy", "", Failure.REFUSED),
        ("internalServerError", "", Failure.MODEL_ERROR),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "", Failure.RATE_LIMITED),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "", Failure.NOT_LOGGED_IN),
        ({"responseStreamDisconnected": {"httpStatusCode": None}}, "the stream was cut", Failure.MODEL_ERROR),
        ("other", "prompt is too long: 250000 tokens", Failure.CONTEXT_EXCEEDED),
        ("other", "Incomplete response returned, reason: content_filter", Failure.REFUSED),
        ("aNewKind", "nobody knows", Failure.MODEL_ERROR),
        (["odd"], "nobody knows", Failure.MODEL_ERROR),
        (None, "nobody knows", Failure.MODEL_ERROR),
    ],
)
def test_each_error_is_told_by_its_kind_its_status_or_its_words(info: object, message: str, failure: Failure) -> None:
    turn = verdict(Turn(status="failed", error=Error(message, info)), None)
    assert (turn.outcome, turn.failure) == (Outcome.FAILED, failure)


def test_a_turn_of_an_unknown_status_is_not_completed() -> None:
    turn = verdict(Turn(status="paused"), None)
    assert (turn.outcome, turn.failure) == (Outcome.FAILED, Failure.MODEL_ERROR)
    assert "paused" in turn.error


def test_an_error_told_before_the_end_explains_an_end_that_does_not() -> None:
    reading = begun()
    tell(reading, "error", error={"message": "no", "codexErrorInfo": "unauthorized"}, willRetry=False)
    assert reading.end_turn(Turn(status="failed"))[0].failure is Failure.NOT_LOGGED_IN


# Bad input


def test_a_reply_that_we_need_and_cannot_read_is_a_fault() -> None:
    with pytest.raises(AgentFault) as caught:
        read(Raw(b'{"turn":7}'), Params)
    assert caught.value.failure is Failure.MALFORMED


LINES = [
    line for story in ("tour", "faults", "interrupted") for side, line in recorded(f"codex.{story}") if side == "agent"
]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=30), max_size=30))
def test_no_order_of_messages_makes_the_reading_do_anything_but_answer_or_fault(lines: list[str]) -> None:
    reading = begun()
    calls: list[ModelCall] = []
    for line in lines:
        with suppress(AgentFault):
            message = decode(line)
            params = lenient(message.params, Params) if isinstance(message, Notice) else None
            if isinstance(message, Notice) and params:
                calls += [each for each in reading.update(message.method, params) if isinstance(each, ModelCall)]
    assert [call.number for call in calls] == list(range(1, len(calls) + 1))
    assert all(min(call.usage.input_tokens, call.usage.output_tokens) >= 0 for call in calls)
