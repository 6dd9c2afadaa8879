"""One contract for all four APIs, seen through their official SDKs, streaming and not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from remuda.scripted_model import Kind, ScriptedModel, Usage
from scripted_model.kit import Failed, Seat, Seen, bad, good, script, with_model
from scripted_model.seats import SEATS, seat

SHELL = {"anthropic": "Bash", "responses": "shell_command", "chat": "bash", "gemini": "run_shell_command"}
FINISHED = {"anthropic": "end_turn", "responses": "completed", "chat": "stop", "gemini": "STOP"}
CALLING = {"anthropic": "tool_use", "responses": "completed", "chat": "tool_calls", "gemini": "STOP"}
REFUSED = {"anthropic": "refusal", "responses": "content_filter", "chat": "content_filter", "gemini": "SAFETY"}

each_api = pytest.mark.parametrize("api", SEATS)
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def seated(api: str, test: Callable[[Seat, ScriptedModel], Awaitable[None]], **options: object) -> None:
    async def run(model: ScriptedModel) -> None:
        client = seat(api, model.url)
        try:
            await test(client, model)
        finally:
            await client.close()

    with_model(run, **options)


@each_api
@both_ways
def test_a_script_is_played_call_by_call_until_it_is_over(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        first = good(
            await client.ask(
                script({"think": "Hm."}, {"say": "I look. "}, {"shell": "ls"}, {"shell": "pwd"}, {"say": "Done now."}),
                stream=stream,
            )
        )
        assert (first.thoughts, first.text, first.stop) == ("Hm.", "I look. ", CALLING[api])
        assert [name for name, _ in first.calls] == [SHELL[api]]
        assert first.calls[0][1]["command"] == "ls"
        second = good(await client.give("a b c", stream=stream))
        assert second.calls[0][1]["command"] == "pwd"
        third = good(await client.give("/somewhere", stream=stream))
        assert (third.text, third.calls, third.stop) == ("Done now.", (), FINISHED[api])
        after = good(await client.ask("And?", stream=stream))
        assert after.text == "Nothing more is scripted."
        assert [call.move for call in model.calls] == [0, 1, 2, 3]
        assert {call.api for call in model.calls} == {api}

    seated(api, test)


@each_api
@both_ways
def test_five_calls_add_up_to_five_times_the_known_tokens(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        seen = [good(await client.ask(script(*[{"shell": "true"}] * 4, {"say": "Done."}), stream=stream))]
        seen += [good(await client.give("ok", stream=stream)) for _ in range(4)]
        assert tuple(map(sum, zip(*(each.tokens for each in seen), strict=True))) == (5500, 500, 170)
        assert [call.usage for call in model.calls] == [Usage(1200, 100, 34)] * 5

    seated(api, test)


@each_api
@both_ways
def test_tokens_are_those_that_the_server_was_told_or_the_step(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        first = good(await client.ask(script({"shell": "ls"}, {"use": {"input": 9, "output": 2}}), stream=stream))
        second = good(await client.give("ok", stream=stream))
        assert (first.tokens, second.tokens) == ((49_000, 1_000, 7), (9, 0, 2))

    seated(api, test, usage=Usage(50_000, 1_000, 7))


@each_api
@both_ways
def test_several_calls_go_out_together_and_their_results_are_one_answer(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        steps = ({"together": [{"shell": "one"}, {"shell": "two"}]}, {"recall": "result"})
        first = good(await client.ask(script(*steps), stream=stream))
        assert [arguments["command"] for _, arguments in first.calls] == ["one", "two"]
        second = good(await client.give("first result", "second result", stream=stream))
        assert second.text == "second result"

    seated(api, test)


@each_api
@both_ways
def test_a_slow_answer_takes_its_time_for_each_piece(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        begun = asyncio.get_running_loop().time()
        seen = good(await client.ask(script({"slow": 0.02}, {"say": "one two three four five"}), stream=stream))
        assert asyncio.get_running_loop().time() - begun >= 0.1
        assert seen.text == "one two three four five"

    seated(api, test)


@each_api
def test_a_text_is_streamed_in_pieces(api: str) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        seen = good(await client.ask(script({"say": "word ", "repeat": 30}), stream=True))
        assert seen.text == "word " * 30
        assert seen.pieces >= 30

    seated(api, test)


@each_api
@both_ways
def test_an_error_has_the_status_of_the_script_and_the_body_of_the_api(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        for status in (400, 401, 403, 404, 429, 500, 503, 529):
            failed = bad(await client.ask(script({"error": status, "message": f"not {status}"}), stream=stream))
            assert failed.status == status
            assert f"not {status}" in str(failed.body)
            call = model.calls[-1]
            assert (call.status, call.ended, call.usage) == (status, "failed", None)

    seated(api, test)


@each_api
@both_ways
def test_a_fault_with_times_happens_so_often_and_then_the_script_goes_on(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        prompt = script({"error": 429, "retry_after": 3, "times": 2}, {"say": "At last."})
        first = bad(await client.ask(prompt, stream=stream))
        again = seat(api, model.url)
        other = seat(api, model.url)
        second, third = bad(await again.ask(prompt, stream=stream)), good(await other.ask(prompt, stream=stream))
        await again.close()
        await other.close()
        assert (first.status, second.status, third.text) == (429, 429, "At last.")
        assert first.retry_after == "3" or api == "gemini"
        if api == "gemini":
            assert first.body["error"]["details"][0]["retryDelay"] == "3s"

    seated(api, test)


@each_api
@both_ways
def test_a_prompt_too_long_is_told_in_the_words_of_the_api(api: str, stream: bool) -> None:
    words = {"anthropic": "prompt is too long", "gemini": "exceeds the maximum number of tokens"}

    async def test(client: Seat, model: ScriptedModel) -> None:
        failed = bad(await client.ask(script({"context_exceeded": True}), stream=stream))
        assert words.get(api, "context_length_exceeded") in str(failed.body)
        assert failed.status == (None if (api, stream) == ("responses", True) else 400)

    seated(api, test)


@each_api
@both_ways
def test_a_refusal_is_the_reason_why_the_api_stops(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        seen = good(await client.ask(script({"refuse": "I would rather not."}), stream=stream))
        assert (seen.text, seen.stop) == ("", REFUSED[api])
        if api != "gemini" and (api, stream) != ("chat", True):  # of these two the SDK tells the reason only
            assert seen.refusal == "I would rather not."

    seated(api, test)


@each_api
@both_ways
def test_a_cut_leaves_the_client_without_an_answer(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        seen = await client.ask(script({"say": "Half of a"}, {"cut": True}), stream=stream)
        assert isinstance(seen, Failed)
        assert seen.status is None
        assert (model.calls[0].ended, model.calls[0].usage) == ("cut", None)

    seated(api, test)


@each_api
@both_ways
def test_garbage_is_not_taken_for_an_answer(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        assert isinstance(await client.ask(script({"garbage": "{not json"}), stream=stream), Failed)
        assert model.calls[0].ended == "garbage"

    seated(api, test)


@each_api
def test_an_error_after_words_comes_inside_of_the_stream(api: str) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        failed = bad(await client.ask(script({"say": "So far"}, {"error": 500, "message": "it broke"}), stream=True))
        assert "it broke" in str(failed.body)
        assert (model.calls[0].status, model.calls[0].ended) == (200, "failed")

    seated(api, test)


@each_api
@both_ways
def test_a_hang_lasts_until_the_client_leaves(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        asking = asyncio.ensure_future(client.ask(script({"say": "One moment."}, {"hang": True}), stream=stream))
        await model.until(lambda calls: any(call.kind is Kind.SCRIPTED for call in calls))
        assert not asking.done()
        asking.cancel()
        await client.close()
        await model.until(lambda calls: calls[0].ended == "client left")

    seated(api, test)


@each_api
@both_ways
def test_a_hanging_client_does_not_keep_the_server_from_stopping(api: str, stream: bool) -> None:
    asked: list[asyncio.Future[Seen | Failed]] = []

    async def test(model: ScriptedModel) -> None:
        client = seat(api, model.url)
        prompt = script({"say": "One moment."}, {"hang": True})
        asked.append(asyncio.ensure_future(client.ask(prompt, stream=stream)))
        await model.until(lambda calls: any(call.kind is Kind.SCRIPTED for call in calls))

    async def run() -> None:
        async with asyncio.timeout(20):
            async with ScriptedModel() as model:
                await test(model)
            assert isinstance(await asked[0], Failed)
            assert model.calls[0].ended == "stopped"

    asyncio.run(run())


@each_api
@both_ways
def test_a_prompt_after_the_end_of_a_turn_gets_what_follows(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        steps = ({"say": "First."}, {"end": True}, {"shell": "ls"}, {"end": True}, {"say": "Third."})
        first = good(await client.ask(script(*steps), stream=stream))
        second = good(await client.ask("You forgot something.", stream=stream))
        third = good(await client.give("a b", stream=stream))
        fourth = good(await client.ask("Once more.", stream=stream))
        assert (first.text, second.calls[0][1]["command"], third.text, fourth.text) == (
            "First.",
            "ls",
            "Done.",
            "Third.",
        )

    seated(api, test)


@each_api
def test_a_new_script_takes_over_and_the_conversation_is_remembered(api: str) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        await client.ask(script({"shell": "ls"}, {"say": "Done."}), stream=True)
        await client.give("a b", stream=True)
        recalled = good(await client.ask(script({"recall": True}), stream=True))
        assert recalled.text == "I remember 2 scripted prompts and 1 tool results."

    seated(api, test)


@each_api
def test_many_conversations_at_once_do_not_mix(api: str) -> None:
    async def one(model: ScriptedModel, number: int) -> None:
        client = seat(api, model.url)
        first = good(
            await client.ask(script({"slow": 0.001}, {"shell": f"echo {number}"}, {"say": f"n{number}"}), stream=True)
        )
        last = good(await client.give("ok", stream=True))
        await client.close()
        assert (first.calls[0][1]["command"], last.text) == (f"echo {number}", f"n{number}")

    async def test(model: ScriptedModel) -> None:
        await asyncio.gather(*(one(model, number) for number in range(8)))
        assert len(model.calls) == 16

    with_model(test)


@each_api
@both_ways
def test_a_wrong_script_is_refused_with_the_place_that_is_wrong(api: str, stream: bool) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        failed = bad(await client.ask(script({"say": "a"}, {"sya": "b"}), stream=stream))
        assert failed.status == 400
        assert "steps[1]" in str(failed.body)
        assert model.calls[0].kind is Kind.REFUSED

    seated(api, test)


@each_api
def test_a_session_without_a_script_is_answered_and_marked(api: str) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        assert good(await client.ask("Hello", stream=True)).text == "This prompt carries no script."
        assert [(call.kind, call.side) for call in model.calls] == [(Kind.UNSCRIPTED, False)]

    seated(api, test)


@each_api
def test_a_call_without_tools_is_a_side_call_if_the_script_needs_some(api: str) -> None:
    async def test(model: ScriptedModel) -> None:
        client = seat(api, model.url, tools=False)
        title = good(await client.ask(script({"shell": "ls"}), stream=True))
        said = good(await client.ask(script({"say": "No tools needed."}), stream=True))
        await client.close()
        assert (title.text, title.tokens, said.text) == ("Scripted session", (0, 0, 0), "No tools needed.")
        assert [call.side for call in model.calls] == [True, False]

    with_model(test)


@each_api
def test_of_the_key_only_a_digest_is_kept(api: str) -> None:
    async def test(client: Seat, model: ScriptedModel) -> None:
        await client.ask(script({"say": "Hello."}), stream=True)
        assert len(model.calls[0].auth) == 16
        assert "secret" not in str([call.as_json() for call in model.calls])

    seated(api, test)
