"""What a program may try to spend more than it has, to reach what is not its own, or to keep the others waiting."""

import asyncio
import base64
import json
import time
import zlib
from contextlib import suppress
from typing import Any

import pytest

from meter.kit import EMPTY, Purse, meter_of, post, run, service_of, until
from remuda.domain.errors import Invalid
from remuda.domain.state import Usage
from remuda.meter import caller as callers
from remuda.meter.apis import ANTHROPIC, CHAT, GEMINI, RESPONSES, Api, ceiling
from remuda.meter.demand import HOSTED, Demand, decode, read
from remuda.meter.elsewhere import LARGEST_CONTEXT, PICTURE
from remuda.meter.tally import LARGEST_ANSWER, Tally
from scripted_model.kit import KEY

PATHS = {"anthropic": "/v1/messages", "openai-responses": "/v1/responses", "openai-chat": "/v1/chat/completions"}


def demand(api: Api, body: dict[str, Any], *before: tuple[dict[str, Any], int], path: str = "") -> Demand:
    path = path or PATHS.get(api.name, "/v1beta/models/gemini-2.5-pro:generateContent")
    known = tuple(read(api, path, each).known(tokens) for each, tokens in before)
    return read(api, path, body, known)


def bounded(api: Api, body: dict[str, Any], *before: tuple[dict[str, Any], int]) -> int:
    return demand(api, body, *before).estimate.input_tokens


def said(*parts: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": list(parts)}]}


# --- where it goes ---

ELSEWHERE = [
    "POST http://127.0.0.1:9/v1/messages",
    "POST //127.0.0.1:9/v1/messages",
    "POST /v1/../v1/messages",
    "POST /./v1/messages",
    "POST /v1/files/%2e%2e/messages/v1/messages",
    "POST /v1/x\\..\\v1/messages",
    "POST /v1/models/a%2f..%2f..%2fb:generateContent",
    "POST /v1;x=/v1/messages",
    "GET /v1/models/../files",
    "GET /v1/models/..",
    "GET /v1/models/%2e%2e/organization/admin_api_keys",
    "GET /v1/modelsx",
    "GET /v1/files/models.csv",
    "GET http://127.0.0.1:9/v1/models",
    "DELETE /v1/models/ft:mine",
    "PUT /v1/messages",
    "CONNECT 127.0.0.1:9",
    "OPTIONS *",
    "TRACE /v1/messages",
]


@pytest.mark.parametrize("line", ELSEWHERE)
def test_nothing_is_passed_on_to_where_it_does_not_seem_to_go(line: str) -> None:
    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(f"{line} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nconnection: close\r\n\r\n".encode())
            answer = await reader.read()
            assert answer[:12] in (b"HTTP/1.1 404", b"HTTP/1.1 400")
            assert service.connections == 0
            writer.close()

    run(story)


@pytest.mark.parametrize(
    "path", ["/v1/models", "/models", "/v1/models/ft:gpt-4o:org::id", "/api/v1/models/a/b/endpoints"]
)
def test_models_are_listed_wherever_services_have_them(path: str) -> None:
    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nconnection: close\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            assert service.heads[0].startswith(f"GET {path} ".encode())
            writer.close()

    run(story)


def test_headers_that_would_make_it_another_request_stay_here() -> None:
    more = b"X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /v1/files\r\nx-rewrite-url: /v1/files\r\nx-kept: yes\r\n"

    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse()) as meter:
            await post(meter.url, "/v1/messages", b"{}", more=more)
            assert b"x-kept: yes" in service.heads[0].lower()
            for name in (b"override", b"original", b"rewrite"):
                assert name not in service.heads[0].lower()

    run(story)


# --- how much it asks for ---


def test_the_model_that_answers_is_the_one_in_the_path_whatever_the_body_says() -> None:
    body = {"model": "gemini-1.5-flash-8b", "contents": []}
    asked = demand(GEMINI, body, path="/v1beta/models/gemini-2.5-pro:generateContent")
    assert (asked.estimate.model, asked.estimate.output_tokens) == ("gemini-2.5-pro", 65_536)
    deployed = demand(CHAT, {"model": "gpt-4o-mini"}, path="/openai/deployments/our-own/chat/completions")
    assert (deployed.estimate.model, deployed.estimate.output_tokens) == ("our-own", 128_000)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4-32k", 32_768),
        ("gpt-4", 8_192),
        ("gpt-4-turbo", 4_096),
        ("gpt-4o-64k-output-alpha", 65_536),
        ("openai/gpt-4o", 16_384),
        ("gpt-4.1-mini", 32_768),
        ("gemini-2.0-flash-thinking-exp", 65_536),
        ("not-gpt-4-at-all", 128_000),
        ("my-gemini-1", 128_000),
        ("foo1", 128_000),
    ],
)
def test_a_model_without_a_limit_says_no_more_than_it_can(model: str, tokens: int) -> None:
    assert ceiling(model) == tokens


@pytest.mark.parametrize("name", ["MAX_TOKENS", "Max_Completion_Tokens", "max_to\u212aens", "N", "Tool\u017f", "Model"])
def test_a_name_that_some_read_as_one_that_counts_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="which some services read as"):
        demand(CHAT, {"model": "m", "max_tokens": 5, name: 100_000})


def test_both_names_of_a_limit_are_heeded_and_both_are_lowered() -> None:
    asked = demand(CHAT, {"max_tokens": 10, "max_completion_tokens": 5_000, "n": 2, "best_of": 3})
    assert asked.estimate.output_tokens == 15_000
    assert json.loads(asked.within(300)) == {"max_tokens": 10, "max_completion_tokens": 100, "n": 2, "best_of": 3}


@pytest.mark.parametrize("limit", [0, -1, 1.5e300, "12 tokens", "1e3", True, [], {}, None])
def test_a_limit_that_is_none_is_taken_for_all_that_the_model_can_say(limit: object) -> None:
    assert demand(ANTHROPIC, {"max_tokens": limit}).estimate.output_tokens == 128_000


@pytest.mark.parametrize(
    "more",
    [{"service_tier": "priority"}, {"speed": "fast"}, {"models": ["gpt-4o", "o1-pro"]}, {"fallbacks": ["o1-pro"]}],
)
def test_a_wish_that_changes_the_price_makes_it_unknown(more: dict[str, Any]) -> None:
    assert demand(CHAT, {"model": "gpt-4o", **more}).estimate.model == ""
    assert demand(CHAT, {"model": "gpt-4o", "service_tier": "auto"}).estimate.model == "gpt-4o"


# --- what it brings along ---

PIXEL = base64.b64encode(b"a picture of a single colour").decode()
SHOWN: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
PAPER = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PIXEL}}


@pytest.mark.parametrize(
    ("api", "body", "tokens"),
    [
        (ANTHROPIC, said(SHOWN), PICTURE),
        (ANTHROPIC, said(SHOWN, SHOWN, SHOWN), 3 * PICTURE),
        (ANTHROPIC, said({"type": "tool_result", "content": [SHOWN]}), PICTURE),
        (ANTHROPIC, said({"type": "document", "source": {"type": "content", "content": [SHOWN]}}), PICTURE),
        (ANTHROPIC, said(PAPER), LARGEST_CONTEXT),
        (ANTHROPIC, said({"type": "web_fetch_tool_result", "content": {"content": PAPER}}), LARGEST_CONTEXT),
        (CHAT, said({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}), PICTURE),
        (CHAT, {**said({"image_url": {"url": f"data:image/png;base64,{PIXEL}"}}), "model": "gpt-4o-mini"}, 5 * PICTURE),
        (CHAT, said({"type": "input_audio", "input_audio": {"data": PIXEL, "format": "mp3"}}), LARGEST_CONTEXT),
        (CHAT, said({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PIXEL}"}}), LARGEST_CONTEXT),
        (
            RESPONSES,
            {"input": [{"content": [{"type": "input_image", "image_url": f"data:image/png,{PIXEL}"}]}]},
            PICTURE,
        ),
        (RESPONSES, {"input": [{"type": "x", "output": {"image_url": f"data:image/png,{PIXEL}"}}]}, PICTURE),
        (GEMINI, {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}]}, PICTURE),
        (GEMINI, {"contents": {"parts": {"inline_data": {"mime_type": "video/mp4", "data": PIXEL}}}}, LARGEST_CONTEXT),
        (
            GEMINI,
            {"contents": [{"parts": [{"functionResponse": {"parts": [{"inlineData": {"mimeType": "image/png"}}]}}]}]},
            PICTURE,
        ),
    ],
)
def test_a_picture_counts_by_what_it_shows_and_not_by_how_well_it_is_packed(
    api: Api, body: dict[str, Any], tokens: int
) -> None:
    assert tokens < bounded(api, body) < tokens + 2_000


def test_a_picture_that_was_counted_is_allowed_for_once() -> None:
    before = said({"type": "text", "text": "look " * 1_000}, SHOWN)
    other = {**SHOWN, "source": {**SHOWN["source"], "data": PIXEL[::-1]}}
    grown = {**before, "messages": [*before["messages"], {"role": "user", "content": "and now?"}]}
    assert bounded(ANTHROPIC, grown, (before, 3_000)) < 3_300
    assert bounded(ANTHROPIC, said(*before["messages"][0]["content"], SHOWN), (before, 3_000)) > 3_000 + PICTURE
    assert bounded(ANTHROPIC, said(*before["messages"][0]["content"][:1], other), (before, 3_000)) > 3_000 + PICTURE
    shown: dict[str, Any] = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
    }
    finer = {**shown, "image_url": {**shown["image_url"], "detail": "high"}}
    assert bounded(CHAT, said(shown), (said(shown), 900)) < 1_100
    assert bounded(CHAT, said(finer), (said(shown), 900)) > PICTURE


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, {}),
        ({"truncation": "auto"}, {"truncation": "disabled"}),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled", "budget_tokens": 2_000}}),
        ({"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}, {"generationConfig": {}}),
    ],
)
def test_what_was_left_out_before_is_not_taken_to_be_left_out_again(was: dict[str, Any], now: dict[str, Any]) -> None:
    body = said({"type": "text", "text": "old results " * 10_000})
    assert bounded(ANTHROPIC, {**body, **was}, ({**body, **was}, 500)) < 700
    assert bounded(ANTHROPIC, {**body, **now}, ({**body, **was}, 500)) > 100_000


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]},
        {"tools": [{"type": "something_new_20290101"}]},
        {"tools": [{"type": "namespace", "name": "x", "tools": [{"type": "web_search"}]}]},
        {"tools": [{"googleMaps": {}}]},
        {"tools": [{"functionDeclarations": [], "googleSearchRetrieval": {}}]},
        {"plugins": [{"id": "web"}]},
        {"model": "openai/gpt-4o:online"},
    ],
)
def test_a_tool_of_a_kind_that_is_not_known_is_taken_to_be_the_services_own(body: dict[str, Any]) -> None:
    assert bounded(RESPONSES, body) > HOSTED


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "read", "input_schema": {}},
        {"type": "custom", "name": "read"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "function", "function": {"name": "web_search"}},
        {"functionDeclarations": [{"name": "web_search"}], "googleSearch": None},
        {"type": "namespace", "tools": [{"type": "function", "name": "x"}]},
    ],
)
def test_the_programs_own_tools_are_bounded_by_their_bytes(tool: dict[str, Any]) -> None:
    assert bounded(CHAT, {"tools": [tool]}) < HOSTED


# --- what comes back ---


def told(api: Api, *events: dict[str, Any]) -> Usage | None:
    tally = Tally(api, "text/event-stream", "")
    for event in events:
        tally.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    tally.feed(b"data: [DONE]\n\n")
    return tally.usage


def test_thoughts_that_only_the_total_tells_of_are_counted() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 1_105}
    assert told(CHAT, {"choices": [], "usage": usage}) == Usage(100, 1_005)
    assert told(CHAT, {"choices": [], "usage": {**usage, "total_tokens": 3}}) == Usage(100, 5)
    assert told(CHAT, {"choices": [], "usage": {**usage, "completion_tokens": -5}}) is None
    whole = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 205}
    assert told(GEMINI, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": whole}) == Usage(100, 105)


def test_a_usage_that_comes_after_the_end_counts_if_it_is_larger() -> None:
    events = [{"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": out}} for out in (50, 70, 20)]
    assert told(CHAT, *events) == Usage(100, 70)


def test_a_usage_that_is_cut_in_the_middle_was_not_told() -> None:
    event = b'data: {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}}\n\n'
    for end in range(len(event) - 1):
        tally = Tally(CHAT, "text/event-stream", "")
        tally.feed(event[:end])
        assert tally.usage is None
        tally.feed(event[end:])
        assert tally.usage == Usage(100, 50)


def test_an_answer_that_unpacks_without_end_is_given_up() -> None:
    pack = zlib.compressobj(wbits=31)
    bomb = b"".join(pack.compress(bytes(1 << 20)) for _ in range(64)) + pack.flush()
    tally = Tally(ANTHROPIC, "application/json", "gzip")
    tally.feed(bomb)
    tally.end()
    assert tally.usage is None
    assert len(bomb) < LARGEST_ANSWER // 100


# --- who keeps the others waiting ---


@pytest.mark.parametrize("filling", [b"[],", b"{},", b"0,"])
def test_a_request_of_nothing_but_small_parts_is_refused_before_it_is_read(filling: bytes) -> None:
    body = b'{"x":[' + filling * ((16 << 20) // len(filling)) + b"0]}"
    began = time.process_time()
    with pytest.raises(Invalid, match="more parts than any conversation"):
        decode(body, "")
    assert time.process_time() - began < 1


def test_a_large_request_of_large_parts_is_read() -> None:
    assert decode(b'{"x":"' + b"A" * (16 << 20) + b'"}', "")["x"]


def test_who_only_holds_connections_open_gives_way_to_who_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "room", lambda: 4)

    async def story() -> None:
        async with service_of([], hold=True) as service, meter_of(service.url, Purse()) as meter:
            port = int(meter.url.rpartition(":")[2])
            busy = asyncio.ensure_future(post(meter.url, "/v1/messages", b"{}"))
            await until(lambda: service.bodies)
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
            for _, writer in slow:
                writer.write(b"POST /v1/messages HTTP/1.1\r\n")
            for reader, _ in slow[:3]:
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            assert not busy.done()
            assert not any(reader.at_eof() for reader, _ in slow[3:])
            for _, writer in slow:
                writer.close()
        await asyncio.gather(busy, return_exceptions=True)

    run(story)
