"""What Claude Code's lines mean, on recordings of the real program and on lines that it should never write."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.replay import Heard, recorded, replay_claude
from remuda.agents import Hook, ModelCall, Retry, Text, Thought, ToolCall, Update
from remuda.agents.claude_codec import Reading, verdict
from remuda.agents.claude_wire import Result, System, decode
from remuda.domain.errors import AgentFault
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome, Usage

CALL_COST = 5_100_000  # of one scripted call, in billionths of a dollar, by the program's own list


def read(reading: Reading, *lines: dict[str, Any]) -> list[Update]:
    updates: list[Update] = []
    for line in lines:
        said = decode(json.dumps(line))
        if isinstance(said, Result):
            updates.extend(reading.end_turn(said, now=1000.0)[1])
        elif said:
            updates.extend(reading.update(said))
    return updates


def streamed(parent: str | None = None, **event: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def begins(call: str = "m1", parent: str | None = None, **usage: int) -> dict[str, Any]:
    return streamed(parent, type="message_start", message={"id": call, "model": "big", "usage": usage})


def ends(reason: str | None = "end_turn", parent: str | None = None, **usage: int) -> dict[str, Any]:
    return streamed(parent, type="message_delta", delta={"stop_reason": reason}, usage=usage)


def piece(**delta: str) -> dict[str, Any]:
    return streamed(type="content_block_delta", delta=delta)


def whole(*blocks: dict[str, Any], call: str = "m1", **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": call, "model": "big", "content": list(blocks)}, **fields}


def result(cost: float | None = None, **fields: Any) -> dict[str, Any]:
    used = {} if cost is None else {"model_usage_since_last_result": {"big": {"inputTokens": 10, "costUSD": cost}}}
    return {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn", **used, **fields}


# Recordings


def test_the_tour_is_heard_whole_and_nothing_twice() -> None:
    heard = replay_claude("claude.tour")
    assert heard.text() == "I run a command.All done.Again."
    assert heard.thoughts() == "Hm."
    assert heard.tools() == [(tool, status) for tool in ("Bash", "Write") for status in ("started", "completed")]
    assert [turn.outcome for turn in heard.turns] == [Outcome.COMPLETED] * 2


def test_usage_and_money_of_the_tour_add_up() -> None:
    heard = replay_claude("claude.tour")
    assert heard.sums() == (4 * 1100, 4 * 34, 4 * 100)
    assert [call.usage.cost_nanousd for call in heard.calls()] == [0, 0, 3 * CALL_COST, CALL_COST]
    assert [call.number for call in heard.calls()] == [1, 2, 3, 4]
    assert {call.usage.context_tokens for call in heard.calls()} == {1234}
    assert heard.calls()[-1].usage.context_window == 1_000_000


def test_the_recorded_faults_are_told_apart() -> None:
    heard = replay_claude("claude.faults")
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
    assert all(turn.error for turn in heard.turns if turn.failure)
    assert {retry.failure for retry in heard.retries()} >= {Failure.NOT_LOGGED_IN, Failure.RATE_LIMITED}


def test_an_interrupted_turn_is_cancelled_and_what_it_used_is_counted() -> None:
    heard = replay_claude("claude.interrupted")
    assert [(turn.stop_reason, turn.failure) for turn in heard.turns] == [("cancelled", Failure.CANCELLED)] * 2
    assert heard.tools() == [("Bash", "started"), ("Bash", "failed")]
    assert [call.usage.cost_nanousd for call in heard.calls()] == [None, 0, CALL_COST]


def test_a_denied_tool_fails_with_the_reason_that_was_given() -> None:
    heard = replay_claude("claude.denied")
    denied = [update for update in heard.updates if isinstance(update, ToolCall)][-1]
    assert (denied.status, denied.result) == ("failed", "Not in here.")


def test_after_a_resume_only_the_new_money_counts() -> None:
    heard = replay_claude("claude.resumed", Reading(resumed=True))
    totals = [
        json.loads(line)["total_cost_usd"] for side, line in recorded("claude.resumed") if '"result_index"' in line
    ]
    assert totals == [pytest.approx(2 * CALL_COST / 1e9)]  # the program goes on from what was spent before
    assert [call.usage.cost_nanousd for call in heard.calls()] == [CALL_COST]


# Text, tools, retries


def test_a_message_that_was_not_streamed_is_told_from_the_whole() -> None:
    reading = Reading()
    blocks = ({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hello."})
    assert read(reading, whole(*blocks)) == [Thought("Hm."), Text("Hello.")]


def test_what_a_subagent_says_is_not_said_by_the_agent_but_what_it_does_is_done() -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    line = whole({"type": "text", "text": "psst"}, tool, parent_tool_use_id="t0")
    assert read(Reading(), line) == [ToolCall("t1", "Bash", "started", '{"command":"ls"}')]


def test_a_tool_that_has_no_result_when_the_turn_ends_has_failed() -> None:
    reading = Reading()
    read(reading, whole({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}))
    (ended,) = read(reading, result())
    assert isinstance(ended, ToolCall)
    assert (ended.id, ended.status) == ("t1", "failed")


def test_a_result_in_blocks_becomes_text() -> None:
    reading = Reading()
    read(reading, whole({"type": "tool_use", "id": "t1", "name": "Look", "input": {}}))
    content = [{"type": "text", "text": "seen"}, {"type": "image", "source": {}}]
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    (done,) = read(reading, {"type": "user", "message": {"content": [block]}})
    assert isinstance(done, ToolCall)
    assert (done.status, done.result) == ("completed", "seen\nimage")


def test_a_retry_tells_what_it_waits_for_and_how_long() -> None:
    line = System(subtype="api_retry", attempt=2, retry_delay_ms=1500, error_status=529, error="overloaded")
    assert Reading().update(line) == [Retry(2, Failure.OVERLOADED, "overloaded (HTTP 529)", 1.5)]


# Usage and money


def test_a_call_is_counted_when_it_ends_and_not_by_its_first_estimate() -> None:
    lines = (begins(input_tokens=7, output_tokens=1), ends("tool_use", output_tokens=9))
    assert read(Reading(), *lines) == [ModelCall(1, Usage(7, 9, context_tokens=16, cost_nanousd=0), "big")]


def test_the_price_of_a_turn_is_on_its_last_call() -> None:
    reading = Reading()
    read(reading, begins("m1", input_tokens=5), ends("tool_use"))
    (call,) = read(reading, begins("m2", input_tokens=5), ends(), result(0.25))
    assert isinstance(call, ModelCall)
    assert (call.number, call.usage.cost_nanousd) == (2, 250_000_000)


def test_a_call_that_seemed_to_be_the_last_and_was_not_is_reported_when_the_next_begins() -> None:
    reading = Reading()
    assert read(reading, begins("m1", input_tokens=5), ends("pause_turn")) == []
    (call,) = read(reading, begins("m2", input_tokens=5))
    assert isinstance(call, ModelCall)
    assert call.number == 1


def test_calls_that_were_never_seen_are_counted_from_the_sum() -> None:
    reading = Reading()
    unseen, seen = read(reading, begins(input_tokens=4), ends(), result(0.5))
    assert isinstance(unseen, ModelCall)
    assert isinstance(seen, ModelCall)
    assert (unseen.usage.input_tokens, unseen.usage.cost_nanousd) == (6, 0)
    assert (seen.usage.input_tokens, seen.usage.cost_nanousd) == (4, 500_000_000)


def test_streamed_calls_of_a_subagent_do_not_change_the_size_of_the_context() -> None:
    reading = Reading()
    read(reading, begins("m1", input_tokens=100), ends("tool_use"))
    (call,) = read(reading, begins("s1", "t1", input_tokens=5), ends("end_turn", "t1"))
    assert isinstance(call, ModelCall)
    assert (call.usage.input_tokens, call.usage.context_tokens) == (5, 100)


def test_a_call_that_never_ended_is_counted_without_a_price() -> None:
    reading = Reading()
    (call,) = read(reading, begins(input_tokens=3), ends(None), result(is_error=True, terminal_reason="api_error"))
    assert isinstance(call, ModelCall)
    assert (call.usage.input_tokens, call.usage.cost_nanousd) == (3, None)


def test_a_turn_that_dies_leaves_its_last_call_without_a_price() -> None:
    reading = Reading()
    read(reading, begins(input_tokens=3), ends())
    (call,) = reading.give_up()
    assert isinstance(call, ModelCall)
    assert call.usage.cost_nanousd is None
    assert reading.give_up() == []


def test_a_price_that_the_program_guesses_is_no_price() -> None:
    reading = Reading()
    told = {"big": {"inputTokens": 5, "costUSD": 1.0, "costBasis": "unknown"}}
    read(reading, begins("m1", input_tokens=5), ends())
    (first,) = read(reading, result(model_usage_since_last_result=told))
    (second,) = read(reading, begins("m2", input_tokens=5), ends("tool_use"))
    assert [call.usage.cost_nanousd for call in (first, second) if isinstance(call, ModelCall)] == [None, None]


def test_without_sums_of_the_turn_the_money_is_what_the_total_grew_by() -> None:
    def costs(reading: Reading) -> list[int | None]:
        lines = [
            line for total in (0.5, 0.75) for line in (begins(input_tokens=1), ends(), result(total_cost_usd=total))
        ]
        return [call.usage.cost_nanousd for call in read(reading, *lines) if isinstance(call, ModelCall)]

    assert costs(Reading()) == [500_000_000, 250_000_000]
    assert costs(Reading(resumed=True)) == [None, 250_000_000]  # nobody told where it stood


# How a turn ended


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ({"is_error": True, "api_error_status": 401}, Failure.NOT_LOGGED_IN),
        ({"is_error": True, "result": "Not logged in · Please run /login"}, Failure.NOT_LOGGED_IN),
        ({"is_error": True, "api_error_status": 429}, Failure.RATE_LIMITED),
        ({"is_error": True, "result": "You've hit your limit"}, Failure.RATE_LIMITED),
        ({"is_error": True, "api_error_status": 529}, Failure.OVERLOADED),
        ({"is_error": True, "api_error_status": 500}, Failure.MODEL_ERROR),
        ({"is_error": True, "terminal_reason": "prompt_too_long", "api_error_status": 400}, Failure.CONTEXT_EXCEEDED),
        ({"subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, Failure.CANCELLED),
        ({"subtype": "error_max_turns"}, Failure.MODEL_ERROR),
        ({"terminal_reason": "something_new"}, Failure.MODEL_ERROR),
        ({"stop_reason": "refusal"}, Failure.REFUSED),
        ({"terminal_reason": "hook_stopped"}, None),
        ({"stop_reason": "max_tokens"}, None),
        ({}, None),
    ],
)
def test_a_turn_is_completed_only_when_nothing_says_otherwise(fields: dict[str, Any], failure: Failure | None) -> None:
    said = decode(json.dumps(result(**fields)))
    assert isinstance(said, Result)
    turn = verdict(said)
    assert turn.failure is failure
    assert (turn.outcome is Outcome.COMPLETED) is (failure is None)


def test_when_a_limit_will_end_is_told_if_the_program_says_so() -> None:
    reading = Reading()
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1030}}
    read(reading, limit)
    said = decode(json.dumps(result(is_error=True, api_error_status=429)))
    assert isinstance(said, Result)
    assert reading.end_turn(said, now=1000.0)[0].retry_after == 30


# Bad input


@pytest.mark.parametrize("line", ["", "hello", "{", '{"type":"result"', "\x00", "Error: out of memory"])
def test_a_line_that_is_no_json_is_a_fault_that_quotes_it(line: str) -> None:
    with pytest.raises(AgentFault) as caught:
        decode(line)
    assert line in caught.value.message
    assert caught.value.failure is Failure.MALFORMED


@pytest.mark.parametrize("line", ["42", "[]", '{"type":"news"}', '{"type":"assistant"}', '{"type":"user","message":7}'])
def test_a_line_that_nobody_waits_for_may_be_anything(line: str) -> None:
    assert decode(line) is None


@pytest.mark.parametrize("line", ['{"type":"result","is_error":"maybe"}', '{"type":"control_request"}'])
def test_a_line_that_somebody_waits_for_must_be_readable(line: str) -> None:
    with pytest.raises(AgentFault) as caught:
        decode(line)
    assert caught.value.failure is Failure.MALFORMED


LINES = [
    line for story in ("tour", "faults", "interrupted") for side, line in recorded(f"claude.{story}") if side == "agent"
]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=30), max_size=30), st.booleans())
def test_no_order_of_lines_makes_the_reading_do_anything_but_answer_or_fault(lines: list[str], resumed: bool) -> None:
    reading = Reading(resumed=resumed)
    heard = Heard()
    for line in lines:
        with suppress(AgentFault):
            said = decode(line)
            if isinstance(said, Result):
                heard.updates.extend(reading.end_turn(said, now=0)[1])
            elif said:
                heard.updates.extend(reading.update(said))
    heard.updates.extend(reading.give_up())
    assert [call.number for call in heard.calls()] == list(range(1, len(heard.calls()) + 1))
    assert all(min(call.usage.input_tokens, call.usage.output_tokens) >= 0 for call in heard.calls())


# Hooks


def test_hooks_are_heard_and_a_prompt_that_one_of_them_stopped_is_no_success() -> None:
    heard = replay_claude("claude.hooked")
    assert heard.hooks() == [
        Hook("SessionStart:startup", "passed", "hello"),
        Hook("UserPromptSubmit", "passed"),
        Hook("PreToolUse:Bash", "passed"),
        Hook("PostToolUse:Bash", "failed", "it exited with code 1"),
        Hook("PreToolUse:Bash", "blocked", "not this word"),
        Hook("PreToolUse:Write", "blocked", "no"),
        Hook("PreToolUse:Write", "passed"),
        Hook("UserPromptSubmit", "blocked", "not this prompt"),
        Hook("UserPromptSubmit", "passed"),
    ]
    assert [(turn.outcome, turn.failure) for turn in heard.turns] == [
        (Outcome.COMPLETED, None),
        (Outcome.FAILED, Failure.REFUSED),
        (Outcome.COMPLETED, None),
    ]
    assert "not this prompt" in heard.turns[1].error
    assert heard.tools()[2:] == [("Bash", "started"), ("Bash", "failed"), ("Write", "started"), ("Write", "failed")]


@pytest.mark.parametrize(
    ("event", "said", "status", "text"),
    [
        ("Stop", {"exit_code": 2, "stderr": "go on"}, "blocked", "go on"),
        ("PostToolUse", {"exit_code": 2, "stderr": "too late"}, "failed", "too late"),
        ("Stop", {"stdout": '{"decision": "block", "reason": "go on"}'}, "blocked", "go on"),
        ("PreToolUse", {"stdout": '{"continue": false, "stopReason": "enough"}'}, "blocked", "enough"),
        ("PreToolUse", {"stdout": '{"decision": "approve"}'}, "passed", '{"decision": "approve"}'),
        ("PreToolUse", {"stdout": '{"continue": "perhaps"}'}, "passed", '{"continue": "perhaps"}'),
        ("PreToolUse", {"stdout": "[1"}, "passed", "[1"),
        ("PreToolUse", {"outcome": "cancelled", "exit_code": None}, "failed", "it exited with code None"),
    ],
)
def test_a_hook_forbids_by_its_code_or_by_what_it_writes(
    event: str, said: dict[str, Any], status: str, text: str
) -> None:
    line: dict[str, Any] = {"type": "system", "subtype": "hook_response", "hook_event": event, "hook_name": event}
    line |= {"exit_code": 0, "outcome": "success", **said}
    assert read(Reading(), line) == [Hook(event, status, text)]  # type: ignore[arg-type]


def test_a_prompt_that_was_stopped_by_a_hook_which_nobody_heard_is_no_success_either() -> None:
    blocked = {"type": "system", "subtype": "informational", "prompt_submit_outcome": {"kind": "blocked_by_hook"}}
    reading = Reading()
    read(reading, blocked)
    said = decode(json.dumps(result()))
    assert isinstance(said, Result)
    assert reading.end_turn(said, now=0.0)[0].error == "a hook did not let the prompt through: it did not say why"
    assert reading.end_turn(said, now=0.0)[0].outcome is Outcome.COMPLETED
