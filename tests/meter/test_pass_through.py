"""The meter in the middle: the program cannot tell it from the service, and the service cannot tell the program."""

import asyncio
import gzip
import json
import zlib
from hashlib import sha256

import pytest

from meter.kit import REAL, Purse, meter_of, post, run, service_of, until
from remuda.domain.state import Usage
from remuda.scripted_model import ScriptedModel
from scripted_model.kit import bad, good, script
from scripted_model.raw import request
from scripted_model.seats import SEATS, seat

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
EVERY = pytest.mark.parametrize("api", SEATS)
CALL = Usage(1100, 34, 100)


@EVERY
@BOTH
def test_an_sdk_sees_through_the_meter_what_it_sees_without_and_the_call_is_counted(api: str, stream: bool) -> None:
    async def story() -> None:
        purse = Purse()
        async with ScriptedModel() as model, meter_of(model.url, purse) as meter:
            direct, through = seat(api, model.url), seat(api, meter.url)
            prompt = script({"think": "hm"}, {"say": "I look. "}, {"shell": "ls"}, {"say": "Done."})
            seen = good(await through.ask(prompt, stream=stream))
            assert seen == good(await direct.ask(prompt, stream=stream))
            assert good(await through.give("a b", stream=stream)).text == "Done."
            assert purse.settled == [CALL, CALL]
            assert {call.auth for call in model.calls[::2]} == {sha256(REAL.encode()).hexdigest()[:16]}
            await direct.close()
            await through.close()

    run(story)


@EVERY
@BOTH
def test_an_error_of_the_service_is_passed_on_as_it_is_and_costs_nothing(api: str, stream: bool) -> None:
    async def story() -> None:
        purse = Purse(tokens=1_000_000)
        async with ScriptedModel() as model, meter_of(model.url, purse) as meter:
            direct, through = seat(api, model.url), seat(api, meter.url)
            prompt = script({"error": 429, "message": "slow down", "retry_after": 3})
            failed = bad(await through.ask(prompt, stream=stream))
            assert failed.status == 429
            assert (failed.body, failed.retry_after) == (lambda f: (f.body, f.retry_after))(
                bad(await direct.ask(prompt, stream=stream))
            )
            assert purse.spent == 0
            assert purse.settled == [Usage()]
            await direct.close()
            await through.close()

    run(story)


@EVERY
def test_what_comes_back_is_the_same_to_the_byte(api: str) -> None:
    events = b'data: {"usageless":true}\n\ndata: [DONE]\n\n'
    chunked = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Odd:  spaces \r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces = [chunked[:20], chunked[20:], b"5\r\n" + events[:5] + b"\r\n", b"%x\r\n" % (len(events) - 5), events[5:]]
    answer = [*pieces, b"\r\n0\r\n\r\n"]

    async def story() -> None:
        path, body = request(api, "hello", stream=True)
        async with service_of(answer) as service, meter_of(service.url, Purse()) as meter:
            assert await post(meter.url, path, json.dumps(body).encode()) == b"".join(answer)

    run(story)


def message(usage: dict[str, int]) -> bytes:
    return json.dumps({"type": "message", "content": [], "usage": usage}).encode()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
def test_a_packed_answer_passes_packed_and_is_counted_all_the_same(encoding: str, pack: type[bytes]) -> None:
    body = pack(message({"input_tokens": 7, "output_tokens": 5}))
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(body))

    async def story() -> None:
        purse = Purse()
        async with service_of([answer + body]) as service, meter_of(service.url, purse) as meter:
            assert await post(meter.url, "/v1/messages", b"{}", more=b"accept-encoding: br, gzip\r\n") == answer + body
            assert purse.settled == [Usage(7, 5)]
            assert b"accept-encoding: gzip, identity\r\n" in service.heads[0]  # of br nobody here could read the cost

    run(story)


def test_a_packed_stream_is_read_as_it_comes() -> None:
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "message_delta", "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]
    packed = gzip.compress(b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    pieces = [b"%x\r\n%s\r\n" % (len(part), part) for part in (packed[:10], packed[10:50], packed[50:])]

    async def story() -> None:
        purse = Purse()
        async with service_of([head, *pieces, b"0\r\n\r\n"]) as service, meter_of(service.url, purse) as meter:
            await post(meter.url, "/v1/messages", b"{}")
            assert purse.settled == [Usage(9, 30)]

    run(story)


def test_connections_to_the_service_are_used_again_and_one_it_tired_of_is_replaced() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    async def story() -> None:
        async with service_of([answer], [answer]) as service, meter_of(service.url, Purse()) as meter:
            await post(meter.url, "/v1/messages", b"{}")
            await post(meter.url, "/v1/messages", b"{}")
            assert service.connections == 1
            await service.left.wait()  # it closes after its last answer
        async with service_of([answer], [answer], close=True) as service, meter_of(service.url, Purse()) as meter:
            await post(meter.url, "/v1/messages", b"{}")
            assert (await post(meter.url, "/v1/messages", b"{}")).endswith(b"{}")
            assert service.connections == 2

    run(story)


def test_a_program_may_ask_again_on_its_connection_and_need_not_wait_for_the_answer() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    asked = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: sk-secret-of-the-test\r\ncontent-length: 2\r\n\r\n{}"

    async def story() -> None:
        async with service_of([answer], [answer]) as service, meter_of(service.url, Purse()) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(asked + asked)
            assert await reader.readexactly(2 * len(answer)) == answer + answer
            writer.close()

    run(story)


def test_a_slow_reader_holds_the_service_back_and_gets_everything() -> None:
    size = 20 << 20
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size

    async def story() -> None:
        async with service_of([head, *[b"x" * (1 << 20)] * 20]) as service, meter_of(service.url, Purse()) as meter:
            assert len(await post(meter.url, "/v1/messages", b"{}")) == len(head) + size
            await until(lambda: service.bodies)

    run(story)


@pytest.mark.parametrize(
    ("path", "headers", "shown"),
    [
        ("/v1/models", b"x-api-key: sk-secret-of-the-test\r\n", b"x-api-key: the-real-key\r\n"),
        ("/v1/models", b"authorization: Bearer sk-secret-of-the-test\r\n", b"authorization: Bearer the-real-key\r\n"),
        ("/v1beta/models", b"x-goog-api-key: sk-secret-of-the-test\r\n", b"x-goog-api-key: the-real-key\r\n"),
        ("/v1beta/models?key=sk-secret-of-the-test&pageSize=9", b"", b"x-goog-api-key: the-real-key\r\n"),
    ],
)
def test_the_token_becomes_the_key_wherever_it_stands_and_asking_costs_nothing(
    path: str, headers: bytes, shown: bytes
) -> None:
    async def story() -> None:
        purse = Purse(tokens=0)
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        async with service_of([answer]) as service, meter_of(service.url, purse) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n".encode() + headers + b"\r\n")
            assert await reader.read() == answer
            assert shown in service.heads[0]
            assert b"sk-secret-of-the-test" not in service.heads[0]
            assert purse.asked == []
            writer.close()

    run(story)


@pytest.mark.parametrize(
    "path", ["/v1/messages/count_tokens", "/v1beta/models/gemini-2.5-pro:countTokens", "/v1/responses/input_tokens"]
)
@pytest.mark.parametrize("more", [b"", b"content-encoding: gzip\r\n"])
def test_to_have_tokens_counted_is_passed_on_untouched_and_costs_nothing(path: str, more: bytes) -> None:
    asked = b'{ "model": "m", "contents": [] }' if not more else gzip.compress(b"{}")

    async def story() -> None:
        purse = Purse(tokens=0)
        answer = b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"input_tokens":7}'
        async with service_of([answer]) as service, meter_of(service.url, purse) as meter:
            assert await post(meter.url, path, asked, more=more) == answer
            assert service.bodies == [asked]
            assert (purse.asked, purse.settled, purse.spent) == ([], [], 0)

    run(story)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"model": "m", "messages": [], "stream": True}, {"include_usage": True}),
        ({"messages": [], "stream": True, "stream_options": {"include_usage": False, "x": 1}}, None),
        ({"messages": [], "stream": True, "stream_options": None}, {"include_usage": True}),
        ({"messages": [], "stream": True, "stream_options": {"include_usage": True}}, {"include_usage": True}),
        ({"messages": [], "stream": False}, "none"),
    ],
)
def test_in_chat_completions_the_usage_of_a_stream_is_asked_for(asked: dict[str, object], wanted: object) -> None:
    wanted = {"include_usage": True, "x": 1} if wanted is None else wanted

    async def story() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        async with service_of([answer], [answer]) as service:
            for tokens in (None, 1_000_000):
                async with meter_of(service.url, Purse(tokens=tokens)) as meter:
                    await post(meter.url, "/v1/chat/completions", json.dumps(asked).encode())
            assert [json.loads(each).get("stream_options", "none") for each in service.bodies] == [wanted] * 2

    run(story)
