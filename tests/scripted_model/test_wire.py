"""The exact order of events on the wire, for each API, as its documentation has it."""

from typing import Any

from remuda.scripted_model import ScriptedModel
from scripted_model.kit import script, with_model
from scripted_model.raw import Raw, encoded, request, send

STEPS = ({"think": "Hm."}, {"say": "I look."}, {"shell": "ls"})


def streamed(api: str, *steps: object, **more: object) -> list[tuple[str, Any]]:
    seen: list[Raw] = []

    async def test(model: ScriptedModel) -> None:
        path, body = request(api, script(*steps), stream=True)
        seen.append(await send(model.url, path, encoded({**body, **more})))

    with_model(test)
    assert seen[0].headers["content-type"] == "text/event-stream; charset=utf-8"
    return seen[0].events()


def test_anthropic_sends_each_block_between_its_start_and_its_stop() -> None:
    events = streamed("anthropic", *STEPS)
    assert all(name == data["type"] for name, data in events)
    assert [_anthropic(data) for _, data in events] == [
        "message_start",
        "ping",
        "content_block_start 0 thinking",
        "content_block_delta 0 thinking_delta",
        "content_block_delta 0 signature_delta",
        "content_block_stop 0",
        "content_block_start 1 text",
        "content_block_delta 1 text_delta",
        "content_block_delta 1 text_delta",
        "content_block_stop 1",
        "content_block_start 2 tool_use",
        "content_block_delta 2 input_json_delta",
        "content_block_delta 2 input_json_delta",
        "content_block_stop 2",
        "message_delta",
        "message_stop",
    ]
    begun, ended = events[0][1]["message"], events[-2][1]
    assert begun["usage"] == {**ended["usage"], "output_tokens": 1}
    assert ended["delta"]["stop_reason"] == "tool_use"


def _anthropic(data: dict[str, Any]) -> str:
    inner = data.get("content_block") or (data.get("delta") if "index" in data else None) or {}
    return " ".join(str(each) for each in (data["type"], data.get("index"), inner.get("type")) if each is not None)


def test_responses_numbers_its_events_and_ends_with_the_whole_response() -> None:
    events = streamed("responses", *STEPS)
    assert all(name == data["type"] for name, data in events)
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    assert [name.removeprefix("response.") for name, _ in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    whole = events[-1][1]["response"]
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message", "function_call"]
    assert whole["output"] == [data["item"] for name, data in events if name == "response.output_item.done"]


def test_responses_sends_a_freeform_call_as_a_text() -> None:
    tools = [{"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}]
    events = streamed("responses", {"write": {"path": "a", "text": "b"}}, tools=tools)
    names = [name.removeprefix("response.") for name, _ in events]
    assert names[2:6] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
    ]
    written = "".join(data["delta"] for name, data in events if name.endswith(".delta"))
    assert (
        written
        == events[-1][1]["response"]["output"][0]["input"]
        == "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n"
    )


def test_responses_finds_the_tools_of_codex_in_the_conversation_and_in_namespaces() -> None:
    hidden = [{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]
    other = [{"type": "namespace", "name": "mcp__tiny", "tools": [{"type": "function", "name": "ping"}]}]
    items = [
        {"type": "additional_tools", "tools": hidden},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": script({"shell": "ls"})}]},
    ]
    [call] = streamed("responses", input=items, tools=other)[-1][1]["response"]["output"]
    assert (call["type"], call["name"], "namespace" in call) == ("custom_tool_call", "exec", False)
    items[1]["content"] = script({"tool": {"name": "ping"}})
    [call] = streamed("responses", input=items, tools=other)[-1][1]["response"]["output"]
    assert (call["name"], call["namespace"]) == ("ping", "mcp__tiny")


def test_chat_begins_with_the_role_and_ends_with_done() -> None:
    events = streamed("chat", *STEPS)
    deltas = [data["choices"][0]["delta"] for _, data in events[:-1]]
    assert [sorted(each) for each in deltas] == [
        ["content", "role"],
        ["reasoning_content"],
        ["content"],
        ["content"],
        ["tool_calls"],
        ["tool_calls"],
        [],
    ]
    assert events[-2][1]["choices"][0]["finish_reason"] == "tool_calls"
    assert events[-1] == ("", "[DONE]")


def test_chat_streams_usage_only_when_asked() -> None:
    assert all("usage" not in data for _, data in streamed("chat", {"say": "a"})[:-1])
    last = streamed("chat", {"say": "a"}, stream_options={"include_usage": True})[-2][1]
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 1234)


def test_gemini_sends_parts_and_then_the_reason_why_it_stops() -> None:
    events = [data for _, data in streamed("gemini", *STEPS)]
    parts = [part for data in events for part in data["candidates"][0]["content"]["parts"]]
    assert [sorted(part) for part in parts] == [
        ["text", "thought"],
        ["text"],
        ["text"],
        ["functionCall", "thoughtSignature"],
    ]
    assert [data["candidates"][0].get("finishReason") for data in events] == [None] * 4 + ["STOP"]
    assert events[-1]["usageMetadata"] == {
        "promptTokenCount": 1200,
        "cachedContentTokenCount": 100,
        "candidatesTokenCount": 34,
        "totalTokenCount": 1234,
    }


def test_gemini_sends_a_list_when_no_events_are_asked_for() -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request("gemini", script({"say": "a b"}), stream=True)
        answer = await send(model.url, path.removesuffix("?alt=sse"), encoded(body))
        texts = [part["text"] for each in answer.json() for part in each["candidates"][0]["content"]["parts"]]
        assert texts == ["a ", "b"]

    with_model(test)
