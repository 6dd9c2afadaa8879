"""The server around the APIs: who may reach it, what it remembers, and what it does with what nobody should send."""

import asyncio
import gzip
import json
import signal
import subprocess
import sys
import zlib

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from remuda.domain.errors import Invalid
from remuda.scripted_model import Kind, ScriptedModel, Usage
from remuda.scripted_model.clients import CLIENTS, pointed
from remuda.scripted_model.record import MOST_CONVERSATIONS, Faults
from scripted_model.kit import KEY, script, with_model
from scripted_model.raw import encoded, request, send
from scripted_model.seats import SEATS

each_api = pytest.mark.parametrize("api", SEATS)
ERROR_KEYS = {
    "anthropic": {"type", "error"},
    "responses": {"error"},
    "chat": {"error"},
    "gemini": {"error"},
}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])  # noqa: S104 - they are refused
def test_only_this_machine_can_reach_it(host: str) -> None:
    with pytest.raises(Invalid, match="this machine only"):
        ScriptedModel(host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_any_loopback_address_will_do(host: str) -> None:
    async def test(model: ScriptedModel) -> None:
        assert (await send(model.url, "/health")).json() == {"ok": True}

    with_model(test, host=host)


def test_it_has_no_address_before_it_is_started() -> None:
    with pytest.raises(Invalid, match="async with"):
        _ = ScriptedModel().url


@each_api
def test_a_body_that_is_no_json_object_is_refused_in_the_words_of_the_api(api: str) -> None:
    async def test(model: ScriptedModel) -> None:
        path, _ = request(api, "", stream=False)
        for body in (b"{not json", b"[]", b"", b"\xff\xfe", b'"text"', b"[" * 100_000):
            answer = await send(model.url, path, body)
            assert (answer.status, set(answer.json())) == (400, ERROR_KEYS[api]), body[:20]
            assert "JSON" in answer.json()["error"]["message"]
            assert (model.calls[-1].kind, model.calls[-1].status) == (Kind.REFUSED, 400)

    with_model(test)


@each_api
def test_json_of_the_wrong_shape_is_refused_and_the_place_is_named(api: str) -> None:
    key = {"responses": "input", "gemini": "contents"}.get(api, "messages")
    wrong: tuple[object, ...] = (7, [1], [[]], {"a": 1}, "text")

    async def test(model: ScriptedModel) -> None:
        path, body = request(api, "", stream=True)
        for each in wrong[:-1] if api == "responses" else wrong:  # where a text is a whole conversation
            answer = await send(model.url, path, encoded({**body, key: each}))
            assert answer.status == 400
            assert key in answer.json()["error"]["message"]

    with_model(test)


@each_api
@pytest.mark.parametrize("how", ["gzip", "deflate", "chunked", "identity"])
def test_packed_and_chunked_bodies_are_understood(api: str, how: str) -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request(api, script({"say": "Understood."}), stream=False)
        plain = encoded(body)
        data = {"gzip": gzip.compress(plain), "deflate": zlib.compress(plain)}.get(how, plain)
        in_pieces = [data[start : start + 100] for start in range(0, len(data), 100)]
        headers = {} if how == "chunked" else {"content-encoding": how}
        answer = await send(model.url, path, in_pieces if how == "chunked" else data, headers)
        assert answer.status == 200
        assert "Understood." in answer.body.decode()

    with_model(test)


@pytest.mark.parametrize(("encoding", "data"), [("gzip", b"plain"), ("deflate", b"plain"), ("zstd", b"{}")])
def test_a_body_that_is_not_packed_as_it_says_is_refused(encoding: str, data: bytes) -> None:
    async def test(model: ScriptedModel) -> None:
        answer = await send(model.url, "/v1/messages", data, {"content-encoding": encoding})
        assert answer.status == 400
        assert encoding in answer.json()["error"]["message"]

    with_model(test)


def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.scripted_model.request.MOST_BYTES", 1_000_000)

    async def test(model: ScriptedModel) -> None:
        for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
            answer = await send(model.url, "/v1/messages", pack(b" " * 1_000_001), {"content-encoding": encoding})
            assert (answer.status, "longer than" in answer.body.decode()) == (400, True)

    with_model(test)


@each_api
def test_a_prompt_of_ten_megabytes_is_played(api: str) -> None:
    async def test(model: ScriptedModel) -> None:
        prompt = "x" * 5_000_000 + script({"write": {"path": "a", "text": "b"}}) + "y" * 5_000_000
        path, body = request(api, prompt, stream=False)
        answer = await send(model.url, path, encoded(body))
        assert answer.status == 200
        assert model.calls[0].played == ("write",)

    with_model(test)


def test_any_base_path_and_any_model_name_will_do() -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request("chat", script({"say": "Hello."}), stream=False)
        answer = await send(
            model.url, f"/some/proxy{path.removeprefix('/v1')}", encoded({**body, "model": "no/such:7b"})
        )
        assert answer.json()["model"] == "no/such:7b"
        assert model.calls[0].model == "no/such:7b"

    with_model(test)


def test_a_path_that_is_nobodys_is_not_found_and_not_recorded() -> None:
    async def test(model: ScriptedModel) -> None:
        assert (await send(model.url, "/v1/embeddings", b"{}")).status == 404
        assert (await send(model.url, "/nothing")).status == 404
        assert model.calls == []

    with_model(test)


def test_what_was_asked_can_be_read_over_http() -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request("anthropic", script({"say": "Hello."}), stream=True)
        headers = {"x-api-key": KEY, "x-claude-code-session-id": "session-1"}
        await send(model.url, path, encoded(body), headers)
        [call] = (await send(model.url, "/calls")).json()
        assert {key: call[key] for key in ("api", "path", "model", "kind", "played", "move", "status", "side")} == {
            "api": "anthropic", "path": "/v1/messages", "model": "m", "kind": "scripted", "played": ["say"],
            "move": 0, "status": 200, "side": False,
        }  # fmt: skip
        assert (call["session"], call["ended"]) == ("session-1", "finished")
        assert call["usage"] == {"input": 1200, "cached": 100, "output": 34, "cache_write": 0}
        assert KEY not in json.dumps(call)
        model.clear()
        assert model.calls == []

    with_model(test)


def test_a_key_in_the_address_is_not_kept_either() -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request("gemini", script({"say": "Hello."}), stream=False)
        await send(model.url, f"{path}?key={KEY}", encoded(body))
        assert len(model.calls[0].auth) == 16
        assert KEY not in str(model.calls)

    with_model(test)


def test_a_limited_fault_is_counted_for_each_session_apart() -> None:
    async def test(model: ScriptedModel) -> None:
        path, body = request("responses", script({"error": 500, "times": 1}, {"say": "Good."}), stream=False)
        seen = [
            (await send(model.url, path, encoded(body), {"session-id": session})).status
            for session in ("one", "two", "one", "two")
        ]
        assert seen == [500, 500, 200, 200]

    with_model(test)


def test_the_memory_of_faults_is_bounded() -> None:
    faults = Faults()
    for number in range(MOST_CONVERSATIONS + 1):
        faults.count(f"conversation {number}", 0)
    assert (faults.of("conversation 0"), faults.of(f"conversation {MOST_CONVERSATIONS}")) == ({}, {0: 1})


def test_tokens_are_counted_by_each_sdk_as_the_server_was_told() -> None:
    async def test(model: ScriptedModel) -> None:
        claude = anthropic.AsyncAnthropic(base_url=model.url, api_key=KEY)
        gpt = openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key=KEY)
        gemini = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=model.url))
        said = script({"error": 500, "times": 1}, {"say": "x"})
        first = await claude.messages.count_tokens(model="m", messages=[{"role": "user", "content": said}])
        second = await gpt.responses.input_tokens.count(model="m", input=said)
        third = await gemini.aio.models.count_tokens(model="m", contents=said)
        assert (first.input_tokens, second.input_tokens, third.total_tokens) == (77, 77, 77)
        assert [(call.side, call.played) for call in model.calls] == [(True, ("count",))] * 3
        await asyncio.gather(claude.close(), gpt.close(), gemini.aio.aclose())

    with_model(test, usage=Usage(77, 0, 1))


def test_models_are_listed_for_each_sdk() -> None:
    async def test(model: ScriptedModel) -> None:
        claude = anthropic.AsyncAnthropic(base_url=model.url, api_key=KEY)
        gpt = openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key=KEY)
        gemini = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=model.url))
        assert [each.id async for each in claude.models.list()] == ["scripted", "scripted-small"]
        assert [each.id async for each in gpt.models.list()] == ["scripted", "scripted-small"]
        listed = [each.name async for each in await gemini.aio.models.list()]
        assert listed == ["models/scripted", "models/scripted-small"]
        assert (await claude.models.retrieve("any")).id == (await gpt.models.retrieve("any")).id == "any"
        await asyncio.gather(claude.close(), gpt.close(), gemini.aio.aclose())

    with_model(test)


def test_every_client_is_pointed_at_the_server() -> None:
    for client in CLIENTS:
        told = pointed(client, "http://127.0.0.1:9")
        everything = json.dumps([told.argv, dict(told.env), dict(told.files)])
        assert "http://127.0.0.1:9" in everything, client.name
        assert "{url}" not in everything, client.name
        assert told.argv.count("{prompt}") == 1, client.name


def test_the_command_says_where_it_listens_and_ends_when_told() -> None:
    program = [sys.executable, "-c", "from remuda.cli.dev_model import model; model()", "--json", "--input", "50"]
    with subprocess.Popen([*program, "--cached", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        path, body = request("chat", script({"say": "Hello."}), stream=False)
        answer = asyncio.run(send(told["url"], path, encoded(body)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert answer.json()["usage"]["prompt_tokens"] == 50
    assert told["clients"]["claude"]["env"]["ANTHROPIC_BASE_URL"] == told["url"]


def test_the_command_refuses_numbers_that_cannot_be() -> None:
    program = [sys.executable, "-c", "from remuda.cli.dev_model import model; model()", "--input", "1"]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "cannot be more than it" in ended.stderr) == (2, True)
