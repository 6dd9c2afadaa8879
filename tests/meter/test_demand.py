"""What a request may use at most, read off the request: the bound is never too low."""

import json
from typing import Any

import pytest

from remuda.domain.errors import Invalid
from remuda.meter.apis import ANTHROPIC, CHAT, GEMINI, RESPONSES, Api, ceiling
from remuda.meter.demand import HOSTED, Known, decode, glance, new_bytes, read
from remuda.meter.elsewhere import LARGEST_CONTEXT

TEXT = "Fix the parser: it drops the last token of a line. " * 20
PATHS = {"anthropic": "/v1/messages", "gemini": "/v1beta/models/gemini-2.5-pro:generateContent"}


def bounded(api: Api, body: dict[str, Any], known: tuple[Known, ...] = ()) -> int:
    return read(api, PATHS.get(api.name, "/v1/x"), body, known).estimate.input_tokens


@pytest.mark.parametrize("text", [TEXT, "é" * 500, "猫" * 500, "👩‍👩‍👧" * 100, '"\\\n\t' * 300, "\x00" * 50, "a"])
def test_a_request_has_no_more_tokens_than_bytes(text: str) -> None:
    """Every tokenizer that reads bytes gives at most one token for each."""
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}
    assert bounded(ANTHROPIC, body) >= len(text.encode())


def messages(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (ANTHROPIC, messages({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}})),
        (ANTHROPIC, messages({"type": "document", "source": {"type": "file", "file_id": "f"}})),
        (ANTHROPIC, messages({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]})),
        (RESPONSES, {"input": "go on", "previous_response_id": "resp_1"}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}),
        (RESPONSES, {"input": [{"type": "item_reference", "id": "i"}]}),
        (CHAT, messages({"type": "image_url", "image_url": {"url": "https://x/y.png"}})),
        (CHAT, messages({"type": "file", "file": {"file_id": "f"}})),
        (GEMINI, {"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]}),
        (GEMINI, {"contents": [], "cachedContent": "cachedContents/1"}),
    ],
)
def test_what_stands_elsewhere_may_be_as_large_as_a_context_can_be(api: Api, body: dict[str, Any]) -> None:
    assert bounded(api, body) > LARGEST_CONTEXT


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (ANTHROPIC, messages({"type": "tool_use", "input": {"url": "https://x", "file_id": "f", "source": "s"}})),
        (ANTHROPIC, {"messages": [], "tools": [{"name": "t", "input_schema": {"properties": {"file_id": {}}}}]}),
        (ANTHROPIC, messages({"type": "document", "source": {"type": "text", "data": "hello"}})),
        (RESPONSES, {"input": [], "previous_response_id": None, "tools": [{"type": "function", "name": "web_search"}]}),
        (GEMINI, {"contents": [{"parts": [{"text": '"fileData": "cachedContent"'}]}]}),
    ],
)
def test_what_only_looks_so_is_bounded_by_its_bytes(api: Api, body: dict[str, Any]) -> None:
    assert bounded(api, body) < 2_000


@pytest.mark.parametrize(
    ("api", "tool"),
    [
        (ANTHROPIC, {"type": "web_search_20250305", "name": "web_search"}),
        (RESPONSES, {"type": "web_search"}),
        (GEMINI, {"googleSearch": {}}),
    ],
)
def test_a_tool_that_the_service_runs_itself_is_allowed_for(api: Api, tool: dict[str, Any]) -> None:
    assert bounded(api, {"tools": [tool]}) > HOSTED


def test_a_request_that_grew_costs_what_was_counted_and_what_is_new() -> None:
    before: dict[str, Any] = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": TEXT * 20}]}
    before["tools"] = [{"name": "bash", "description": TEXT * 20}]
    known = (Known("m", read(ANTHROPIC, "/v1/messages", before).data, 9_000),)
    after = {**before, "messages": [*before["messages"], {"role": "assistant", "content": "done"}]}
    assert 9_000 < bounded(ANTHROPIC, after, known) < 9_200
    assert bounded(ANTHROPIC, {**after, "model": "other"}, known) > 30_000
    assert bounded(ANTHROPIC, {**before, "messages": []}, known) < 9_200


def test_a_service_that_counts_more_than_a_token_for_a_byte_is_believed() -> None:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x" * 1000}]}
    data = read(ANTHROPIC, "/v1/messages", body).data
    known = (Known("m", data, 3 * len(data)),)
    more = {**body, "messages": [*body["messages"], {"role": "user", "content": "y" * 1000}]}
    assert bounded(ANTHROPIC, more, known) >= 3 * 2000


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        (b"", b"", 0),
        (b"abc", b"abc", 0),
        (b"", b"abc", 3),
        (b"abc", b"", 0),
        (b"abef", b"abcdef", 2),
        (b"aaa", b"aaaaa", 2),
        (b"abXef", b"abYYef", 2),
        (b"xyz", b"abc", 3),
    ],
)
def test_what_is_new_is_what_stands_between_the_same_beginning_and_the_same_end(
    old: bytes, new: bytes, count: int
) -> None:
    assert new_bytes(old, new) == count


@pytest.mark.parametrize("limit", [0, -5, "many", True, None, [], 1e300, "9" * 40])
def test_a_limit_that_is_none_counts_as_no_limit(limit: object) -> None:
    demand = read(ANTHROPIC, "/v1/messages", {"model": "m", "max_tokens": limit, "messages": []})
    assert demand.estimate.output_tokens == ceiling("m")
    assert json.loads(demand.within(700))["max_tokens"] == 700


def test_a_request_that_is_nested_without_end_is_refused_in_words() -> None:
    with pytest.raises(Invalid, match="nested too deep"):
        decode(b'{"messages":' + b"[" * 100_000, "")


def test_a_file_is_found_beside_what_is_none() -> None:
    part = {"type": "file", "source": {"type": "base64"}, "image_url": "data:x", "file": {"file_id": "f"}}
    assert bounded(CHAT, messages(part)) > LARGEST_CONTEXT


@pytest.mark.parametrize(
    ("api", "path", "data", "model"),
    [
        (GEMINI, PATHS["gemini"], b"{}", "gemini-2.5-pro"),
        (ANTHROPIC, "/v1/messages", b'{"model":"claude-x","messages":[{"model":"other"}]}', "claude-x"),
        (ANTHROPIC, "/v1/messages", b'{"model":7}', ""),
        (RESPONSES, "/v1/responses", b"no JSON", ""),
        (RESPONSES, "/v1/responses", b"\xff", ""),
    ],
)
def test_of_a_request_that_nothing_limits_only_the_model_is_read(api: Api, path: str, data: bytes, model: str) -> None:
    demand = glance(api, path, data, "")
    assert (demand.data, demand.as_it_came, demand.estimate.model) == (data, True, model)
