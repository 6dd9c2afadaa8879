"""What ACP messages mean, without a process: shapes of several agents, and recorded sessions of the scripted one."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from remuda.agents import ModelCall, Text, Thought, ToolCall, Update
from remuda.agents.acp_codec import permission
from remuda.agents.acp_reading import Reading
from remuda.agents.jsonrpc import Notice, Request, RpcError, RpcResult, decode
from remuda.domain.errors import AgentFault
from remuda.domain.state import Outcome, Usage

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def read(*updates: dict[str, object], reading: Reading | None = None) -> list[Update]:
    reading = reading or Reading()
    return [meaning for each in updates for meaning in reading.update(raw({"sessionId": "s", "update": each}))]


def usage_update(used: int, cost: float | None = None, **fields: object) -> dict[str, object]:
    money = {} if cost is None else {"cost": {"amount": cost, "currency": "USD"}}
    return {"sessionUpdate": "usage_update", "used": used, "size": 1000, **money, **fields}


def test_the_four_kinds_of_message_are_told_apart() -> None:
    assert isinstance(decode('{"jsonrpc":"2.0","id":0,"method":"m","params":{}}'), Request)
    assert isinstance(decode('{"jsonrpc":"2.0","method":"m"}'), Notice)
    assert isinstance(decode('{"jsonrpc":"2.0","id":"a","result":null}'), RpcResult)
    error = decode('{"id":3,"error":{"code":-1,"message":"no","data":{"x":1}}}')
    assert isinstance(error, RpcError)
    assert (error.id, error.code, error.message, bytes(error.data)) == (3, -1, "no", b'{"x":1}')


@pytest.mark.parametrize("line", ["", "hello", "[]", "42", "{", '{"id":1}', '{"id":{},"result":1}', "\x00"])
def test_anything_else_is_a_fault_that_quotes_the_line(line: str) -> None:
    with pytest.raises(AgentFault) as caught:
        decode(line)
    assert line in caught.value.message


@given(st.text())
def test_no_line_makes_the_decoder_do_anything_but_answer_or_fault(line: str) -> None:
    with suppress(AgentFault):
        decode(line)


KEYS = st.sampled_from(["update", "sessionUpdate", "content", "text", "toolCallId", "status", "used", "cost", "amount"])
KINDS = st.sampled_from(["agent_message_chunk", "tool_call", "tool_call_update", "usage_update"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | KINDS


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_no_update_however_odd_breaks_the_reading(params: object) -> None:
    Reading().update(raw(params))


def test_a_tool_call_is_told_when_it_starts_and_when_its_status_changes() -> None:
    start = {"sessionUpdate": "tool_call", "toolCallId": "t"}
    change = {"sessionUpdate": "tool_call_update", "toolCallId": "t"}
    told = read(
        {**start, "name": "Bash", "title": "Terminal", "status": "pending", "rawInput": {}},
        {**change, "rawInput": {"command": "ls"}, "title": "ls"},
        {**change, "status": "in_progress"},
        {**change, "status": "completed", "rawOutput": "a.txt", "content": []},
    )
    assert told == [
        ToolCall("t", "Bash", "started"),
        ToolCall("t", "Bash", "completed", '{"command":"ls"}', "a.txt"),
    ]


def test_a_tool_call_without_a_start_or_a_status_is_still_told() -> None:
    assert read({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "shell · ls"}) == [
        ToolCall("t", "shell · ls", "started")
    ]
    assert read({"sessionUpdate": "tool_call_update", "toolCallId": "u", "kind": "edit", "status": "failed"}) == [
        ToolCall("u", "edit", "failed")
    ]


def test_the_title_stands_for_arguments_that_are_never_told() -> None:
    start = {"sessionUpdate": "tool_call", "toolCallId": "run_shell_command-1", "status": "in_progress"}
    assert read({**start, "name": "run_shell_command", "title": "cat a.txt", "kind": "execute"}) == [
        ToolCall("run_shell_command-1", "run_shell_command", "started", "cat a.txt")
    ]


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"content": [{"type": "content", "content": {"type": "text", "text": "out"}}]}, "out"),
        ({"content": [{"type": "diff", "path": "a.py", "oldText": None, "newText": "x"}]}, "changed a.py"),
        ({"content": [{"type": "terminal", "terminalId": "t"}], "rawOutput": {"code": 0}}, '{"code":0}'),
        ({"rawOutput": "plain"}, "plain"),
        ({}, ""),
    ],
)
def test_the_result_of_a_tool_is_found_wherever_the_agent_put_it(fields: dict[str, object], result: str) -> None:
    (told,) = read({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", **fields})
    assert isinstance(told, ToolCall)
    assert told.result == result


def test_usage_at_the_end_of_the_turn_counts_as_one_call_with_the_latest_context_and_the_new_cost() -> None:
    reading = Reading()
    read(usage_update(10), usage_update(700, 0.1), reading=reading)
    _, calls = reading.end_turn(
        raw({"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 6, "cachedReadTokens": None}})
    )
    assert calls == [ModelCall(1, Usage(5, 6, 0, 0, 700, 1000, 100_000_000))]
    read(usage_update(900, 0.3), reading=reading)
    _, calls = reading.end_turn(raw({"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}}))
    assert calls == [ModelCall(2, Usage(1, 1, 0, 0, 900, 1000, 200_000_000))]


def test_a_cost_that_nobody_tells_is_unknown_and_not_zero() -> None:
    _, (call,) = Reading().end_turn(raw({"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 6}}))
    assert call.usage.cost_nanousd is None


def test_money_is_counted_when_the_turn_fails_without_usage() -> None:
    reading = Reading()
    read(usage_update(10, 0.5), reading=reading)
    assert [call.usage.cost_nanousd for call in reading.settle()] == [500_000_000]
    assert reading.settle() == []


def test_an_agent_that_counts_its_cost_anew_is_followed() -> None:
    reading = Reading()
    read(usage_update(1, 0.5), reading=reading)
    reading.settle()
    read(usage_update(1, 0.2), reading=reading)
    assert [call.usage.cost_nanousd for call in reading.settle()] == [200_000_000]


def test_the_first_cost_after_a_resume_is_where_to_count_from() -> None:
    reading = Reading()
    reading.resumed()
    read(usage_update(1, 16.5), reading=reading)
    answer = raw({"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}})
    assert [call.usage.cost_nanousd for call in reading.end_turn(answer)[1]] == [None]
    read(usage_update(1, 16.75), reading=reading)
    assert [call.usage.cost_nanousd for call in reading.end_turn(answer)[1]] == [250_000_000]


def test_context_told_before_the_session_is_open_does_not_hide_its_cost() -> None:
    reading = Reading()
    reading.replay(raw({"update": usage_update(0)}))
    read(usage_update(5, 0.5), reading=reading)
    assert [call.usage.cost_nanousd for call in reading.settle()] == [500_000_000]


def test_calls_told_one_by_one_are_not_counted_again_in_the_total() -> None:
    reading = Reading()
    call = {"inputTokens": 5, "outputTokens": 6, "cachedReadTokens": 7, "cachedWriteTokens": 8, "costUsd": 0.000001168}
    told = read(
        usage_update(10, 0.000001168, _meta={"remuda/call": call}),
        usage_update(20, 0.000002336, _meta={"remuda/call": call}),
        reading=reading,
    )
    assert told == [
        ModelCall(1, Usage(5, 6, 7, 8, 10, 1000, 1168)),
        ModelCall(2, Usage(5, 6, 7, 8, 20, 1000, 1168)),
    ]
    usage = {"inputTokens": 10, "outputTokens": 12, "totalTokens": 22}
    assert reading.end_turn(raw({"stopReason": "end_turn", "usage": usage}))[1] == []


def test_without_an_option_that_allows_the_permission_is_cancelled() -> None:
    assert permission(raw({"options": [{"optionId": "n", "kind": "reject_once"}]}), allow=True) == {
        "outcome": {"outcome": "cancelled"}
    }
    assert permission(raw({"options": [{"optionId": "a", "kind": "allow_always"}]}), allow=True) == {
        "outcome": {"outcome": "selected", "optionId": "a"}
    }


def recorded(name: str) -> Iterable[tuple[str, str]]:
    for line in (TRANSCRIPTS / f"acp.{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        yield entry["side"], entry["line"]


def test_a_recorded_turn_with_every_kind_of_step_reads_as_it_was_played() -> None:
    reading, told, results = Reading(), list[Update](), []
    for side, line in recorded("scripted-tour"):
        message = decode(line)
        if side == "agent" and isinstance(message, Notice):
            told += reading.update(message.params)
        elif isinstance(message, RpcResult) and b"stopReason" in bytes(message.result):
            results.append(reading.end_turn(message.result))
    assert "".join(each.text for each in told if isinstance(each, Thought)) == "First look around."
    assert "".join(each.text for each in told if isinstance(each, Text)) == "All is well."
    assert [(each.name, each.status, each.result) for each in told if isinstance(each, ToolCall)] == [
        ("run", "started", ""),
        ("run", "completed", "two words\n"),
        ("write", "started", ""),
        ("write", "completed", "wrote 3 characters to notes.txt"),
        ("run", "started", ""),
        ("run", "failed", "(exit code 3)"),
    ]
    assert [each.usage.cost_nanousd for each in told if isinstance(each, ModelCall)] == [1_500_000, 250_000]
    assert [result.outcome for result, _ in results] == [Outcome.COMPLETED]


def test_a_recorded_cancel_and_error_read_as_failed_turns() -> None:
    messages = [decode(line) for side, line in recorded("scripted-failures") if side == "agent"]
    cancelled = next(each for each in messages if isinstance(each, RpcResult) and b"stopReason" in bytes(each.result))
    assert Reading().end_turn(cancelled.result)[0].stop_reason == "cancelled"
    assert [each.message for each in messages if isinstance(each, RpcError)] == ["out of luck"]
