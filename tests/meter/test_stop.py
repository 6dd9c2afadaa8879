"""A budget under the meter: asked for less, refused in the API's own words, and never spent past its end."""

import asyncio
import json
from typing import Any

import pytest

from meter.kit import ADA, EMPTY, Purse, meter_of, post, run, service_of, until
from remuda.domain.state import Usage
from remuda.meter import Refusal, Seat
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.scripted_model import ScriptedModel
from scripted_model.kit import KEY, bad, good, script
from scripted_model.raw import encoded, request
from scripted_model.seats import SEATS, seat

EVERY = pytest.mark.parametrize("api", SEATS)
MESSAGES = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]}


@EVERY
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_call_that_would_exceed_the_budget_is_refused_in_the_words_of_its_api(api: str, stream: bool) -> None:
    async def story() -> None:
        purse = Purse(tokens=100)
        async with ScriptedModel() as model, meter_of(model.url, purse) as meter:
            through = seat(api, meter.url)
            failed = bad(await through.ask(script({"say": "too much"}), stream=stream))
            assert failed.status == 402
            assert "the budget is spent" in json.dumps(failed.body)
            assert model.calls == []
            assert (purse.spent, purse.open) == (0, {})
            await through.close()

    run(story)


LIMITS: dict[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": ("/v1/messages", {"messages": [], "max_tokens": 9000}, "max_tokens"),
    "responses": ("/v1/responses", {"input": [], "max_output_tokens": 9000}, "max_output_tokens"),
    "chat, old": ("/v1/chat/completions", {"messages": [], "max_tokens": 9000}, "max_tokens"),
    "chat, new": ("/v1/chat/completions", {"messages": [], "max_completion_tokens": 9000}, "max_completion_tokens"),
    "gemini": ("/v1beta/models/m:generateContent", {"generationConfig": {"maxOutputTokens": 9000}}, "maxOutputTokens"),
    "gemini, as protobuf has it": (
        "/v1beta/models/m:generateContent",
        {"generation_config": {"max_output_tokens": "9000"}},
        "max_output_tokens",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_output_is_limited_to_what_is_left(case: str) -> None:
    path, body, field = LIMITS[case]

    async def story() -> None:
        async with service_of([EMPTY]) as service:
            purse = Purse(tokens=1000)
            async with meter_of(service.url, purse) as meter:
                await post(meter.url, path, encoded(body))
            sent = json.loads(service.bodies[0])
            asked = sent.get("generationConfig", sent.get("generation_config", sent))[field]
            assert asked == 1000 - purse.asked[0].input_tokens
            assert purse.asked[0].output_tokens == 9000

    run(story)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/responses", {"model": "gpt-5.5", "input": []}, "max_output_tokens"),
        ("/v1/chat/completions", {"model": "local-model", "messages": []}, "max_tokens"),
        ("/v1/chat/completions", {"model": "gpt-5.5", "messages": []}, "max_completion_tokens"),
        ("/v1beta/models/m:generateContent", {"contents": []}, "maxOutputTokens"),
    ],
)
def test_a_call_without_a_limit_gets_one_only_where_the_budget_is_smaller_than_what_the_model_can_say(
    path: str, body: dict[str, Any], field: str
) -> None:
    async def story() -> None:
        async with service_of([EMPTY], [EMPTY]) as service:
            for tokens in (1000, 10_000_000):
                async with meter_of(service.url, Purse(tokens=tokens)) as meter:
                    await post(meter.url, path, encoded(body))
            small, large = map(json.loads, service.bodies)
            assert 0 < small.get("generationConfig", small)[field] < 1000
            assert field not in json.dumps(large)

    run(story)


def test_several_answers_share_what_is_left() -> None:
    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse(tokens=1000)) as meter:
            await post(meter.url, "/v1/chat/completions", encoded({"messages": [], "max_tokens": 900, "n": 3}))
            assert json.loads(service.bodies[0])["max_tokens"] < 1000 // 3

    run(story)


def test_thinking_stays_below_the_limit_and_where_none_is_left_for_it_the_call_is_refused() -> None:
    asked = encoded({**MESSAGES, "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}})

    async def story() -> None:
        async with service_of([EMPTY]) as service:
            async with meter_of(service.url, Purse(tokens=2000)) as meter:
                await post(meter.url, "/v1/messages", asked)
                sent = json.loads(service.bodies[0])
                assert 1024 <= sent["thinking"]["budget_tokens"] == sent["max_tokens"] - 1
            async with meter_of(service.url, Purse(tokens=1000)) as meter:
                assert b"402" in (await post(meter.url, "/v1/messages", asked))[:20]
            assert len(service.bodies) == 1

    run(story)


def test_two_limits_in_one_request_are_not_read_differently_by_the_service() -> None:
    """Which of two equal keys counts is a matter of taste; the service gets to see only one."""
    twice = b'{"max_tokens": 5, "messages": [], "max_tokens": 100000}'

    async def story() -> None:
        async with service_of([EMPTY]) as service, meter_of(service.url, Purse(tokens=1000)) as meter:
            await post(meter.url, "/v1/messages", twice)
            assert service.bodies[0].count(b"max_tokens") == 1
            assert json.loads(service.bodies[0])["max_tokens"] < 1000

    run(story)


# --- what a call did cost ---

STARTED = b'data: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_a_stream_that_the_service_cuts_is_cut_and_costs_all_that_was_reserved() -> None:
    async def story() -> None:
        purse = Purse(tokens=1000)
        async with service_of([HEAD, chunk(STARTED)], close=True) as service, meter_of(service.url, purse) as meter:
            assert await post(meter.url, "/v1/messages", encoded(MESSAGES)) == HEAD + chunk(STARTED)  # and no end
            assert purse.settled == [None]
            assert purse.spent == purse.asked[0].input_tokens + 500

    run(story)


def test_a_stream_that_the_program_leaves_is_ended_at_the_service_and_costs_all_that_was_reserved() -> None:
    async def story() -> None:
        purse = Purse(tokens=1000)
        async with service_of([HEAD, chunk(STARTED)], hold=True) as service, meter_of(service.url, purse) as meter:
            asking = asyncio.ensure_future(post(meter.url, "/v1/messages", encoded(MESSAGES)))
            await until(lambda: service.bodies)
            asking.cancel()
            await service.left.wait()
            await until(lambda: purse.settled)
            assert purse.settled == [None]

    run(story)


def test_a_stream_that_is_left_after_its_end_was_told_costs_what_it_told() -> None:
    ended = b'data: {"type":"message_delta","usage":{"output_tokens":30}}\n\ndata: {"type":"message_stop"}\n\n'

    async def story() -> None:
        purse = Purse(tokens=1000)
        answer = [HEAD, chunk(STARTED), chunk(ended)]
        async with service_of(answer, close=True) as service, meter_of(service.url, purse) as meter:
            assert await post(meter.url, "/v1/messages", encoded(MESSAGES)) == b"".join(answer)
            assert purse.settled == [Usage(9, 30)]

    run(story)


@pytest.mark.parametrize(
    "usage",
    [{}, {"input_tokens": -5, "output_tokens": 3}, {"input_tokens": 10**30, "output_tokens": 3}, {"input_tokens": "7"}],
    ids=["none", "negative", "huge", "no number"],
)
def test_a_usage_that_lies_is_not_believed(usage: dict[str, object]) -> None:
    body = json.dumps({"type": "message", "usage": usage}).encode()

    async def story() -> None:
        purse = Purse(tokens=1000)
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        async with service_of([answer]) as service, meter_of(service.url, purse) as meter:
            await post(meter.url, "/v1/messages", encoded(MESSAGES))
            spent = purse.spent
            assert spent >= 0
            assert purse.settled in ([None], [Usage()])
            assert spent == (purse.asked[0].input_tokens + 500 if purse.settled == [None] else 0)

    run(story)


def test_a_usage_that_shrinks_on_the_way_counts_by_its_largest() -> None:
    less = b'data: {"type":"message_delta","usage":{"input_tokens":2,"output_tokens":30}}\n\n'
    shrunk = b'data: {"type":"message_delta","usage":{"output_tokens":3}}\n\ndata: {"type":"message_stop"}\n\n'

    async def story() -> None:
        purse = Purse(tokens=1000)
        answer = [HEAD, chunk(STARTED), chunk(less), chunk(shrunk), b"0\r\n\r\n"]
        async with service_of(answer) as service, meter_of(service.url, purse) as meter:
            await post(meter.url, "/v1/messages", encoded(MESSAGES))
            assert purse.settled == [Usage(9, 30)]

    run(story)


def test_a_service_that_cannot_be_reached_is_said_and_costs_nothing() -> None:
    async def story() -> None:
        purse = Purse(tokens=1000)
        async with service_of() as service:
            nobody = service.url
        async with meter_of(nobody, purse) as meter:
            answer = await post(meter.url, "/v1/messages", encoded(MESSAGES))
            assert answer.startswith(b"HTTP/1.1 502")
            assert b"cannot be reached" in answer
            assert purse.spent == 0

    run(story)


def test_ten_callers_never_spend_more_than_there_is() -> None:
    async def story() -> None:
        purse = Purse(tokens=20_000)
        async with ScriptedModel() as model, meter_of(model.url, purse) as meter:
            path, body = request("anthropic", script({"say": "hello"}), stream=True)
            body["max_tokens"] = 300

            async def caller() -> None:
                for _ in range(5):
                    await post(meter.url, path, encoded(body))

            await asyncio.gather(*(caller() for _ in range(10)))
            used = [call.usage for call in model.calls if call.usage]
            assert sum(each.total for each in used) == purse.spent <= 20_000
            assert len(used) < 50  # some were refused

    run(story)


def test_what_a_session_learnt_makes_its_next_call_dearer_by_what_is_new_only() -> None:
    async def story() -> None:
        purse = Purse(tokens=100_000)
        async with ScriptedModel() as model, meter_of(model.url, purse) as meter:
            through = seat("anthropic", meter.url)
            prompt = script({"shell": "ls"}, {"say": "Done."})
            good(await through.ask(prompt + "x" * 20_000, stream=True))
            good(await through.give("a b", stream=True))
            first, second = purse.asked
            assert first.input_tokens > 20_000
            assert 1200 < second.input_tokens < 2500
            await through.close()

    run(story)


# --- who may come, and for what ---


@pytest.mark.parametrize(
    ("path", "token", "status", "says"),
    [
        ("/v1/messages", "another", 401, "of no session that is alive"),
        ("/v1/messages", "", 401, "of no session that is alive"),
        ("/v1/images/generations", KEY, 404, "cannot be counted"),
        ("/v1/messages/batches", KEY, 404, "cannot be counted"),
        ("/../../etc/passwd", KEY, 404, "cannot be counted"),
    ],
)
def test_nothing_is_passed_on_for_strangers_or_past_the_count(path: str, token: str, status: int, says: str) -> None:
    async def story() -> None:
        async with service_of() as service, meter_of(service.url, Purse()) as meter:
            answer = await post(meter.url, path, b"{}", token=token)
            assert answer.startswith(b"HTTP/1.1 %d" % status)
            assert says.encode() in answer
            assert service.connections == 0

    run(story)


def test_a_key_that_is_not_there_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with service_of() as service, meter_of(service.url, Purse()) as meter:
            monkeypatch.delenv("REMUDA_TEST_KEY")
            answer = await post(meter.url, "/v1/messages", b"{}")
            assert b"REMUDA_TEST_KEY is not set" in answer

    run(story)


@pytest.mark.parametrize(
    ("body", "more", "says"),
    [
        (b"{", b"", b"is no JSON"),
        (b"[]", b"", b"must be a JSON object"),
        (b"\xff\xfe", b"", b"is no JSON"),
        (b"{}", b"content-encoding: zstd\r\n", b"cannot read a request packed as"),
        (b"{}", b"content-encoding: gzip\r\n", b"is no gzip"),
    ],
)
def test_a_request_that_nobody_can_read_is_refused_where_it_must_be_read(body: bytes, more: bytes, says: bytes) -> None:
    async def story() -> None:
        async with service_of() as service, meter_of(service.url, Purse(tokens=1000)) as meter:
            answer = await post(meter.url, "/v1/messages", body, more=more)
            assert answer.startswith(b"HTTP/1.1 400")
            assert says in answer

    run(story)


@pytest.mark.parametrize(
    "bytes_", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nhost: x\r\n" + b"a" * 70_000]
)
def test_what_is_no_http_is_refused_and_hung_up_on(bytes_: bytes) -> None:
    async def story() -> None:
        async with service_of() as service, meter_of(service.url, Purse()) as meter:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(meter.url.rpartition(":")[2]))
            writer.write(bytes_)
            assert (await reader.read()).startswith(b"HTTP/1.1 4")
            writer.close()

    run(story)


def test_a_caller_that_leaves_while_it_waits_for_its_turn_is_not_waited_for() -> None:
    class Slow(Purse):
        async def reserve(self, seat: Any, estimate: Any) -> Any:  # noqa: ARG002
            self.calls += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.open[0] = 0
            return Refusal("never")

    async def story() -> None:
        purse = Slow()
        meter = Meter({"anthropic": Upstream("http://127.0.0.1:1", "")}, purse, {KEY: ADA}.get)
        await meter.open()
        asking = asyncio.ensure_future(post(meter.url, "/v1/messages", b"{}"))
        await until(lambda: purse.calls)
        asking.cancel()
        await until(lambda: purse.open)
        await meter.close()
        assert purse.settled == []

    run(story)


def test_what_a_session_has_sent_is_forgotten_when_it_is_over_and_another_calls() -> None:
    async def story() -> None:
        seats = {"first": ADA, "second": Seat("bob", 1)}
        steps = script({"use": {"input": 50}}, {"say": "hello"})
        path, body = request("anthropic", steps, stream=False, tools=False)
        async with ScriptedModel() as model, meter_of(model.url, Purse(tokens=100_000), seats=seats) as meter:
            for token in ("first", "second"):
                assert b" 200 " in await post(meter.url, path, encoded({**body, "max_tokens": 100}), token=token)
                assert list(meter._known) == [token]
                del seats[token]

    run(story)
