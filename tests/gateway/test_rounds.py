"""Calls of clients that answer a question by calling again."""

import asyncio
import json
from typing import Any, cast

import pytest
from msgspec import Raw

from gateway.kit import run, until
from remuda.gateway.rounds import Flight, Round, Rounds
from remuda.mcp import Client
from remuda.mcp.jsonrpc import Request, RpcError, raw

QUESTION = Request("q", "roots/list", raw({"a": 1}))


def flight() -> Flight:
    return Flight("one", cast(Client, None), 1, None)


def told(answer: Raw) -> Any:
    return json.loads(bytes(answer))


def back(word: str, **responses: Any) -> dict[str, Raw]:
    return {"requestState": raw(word), "inputResponses": raw(responses)}


class Asking:
    """A call at a server that asks so many questions, one after the other, and tells the answers."""

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.round: Round | None = None
        self.ended = False

    async def work(self) -> Raw:
        try:
            await asyncio.sleep(0)
            assert self.round is not None
            return raw([told(await self.round.ask(QUESTION)) for _ in range(self.questions)])
        finally:
            self.ended = True


def begin(questions: int) -> tuple[Rounds, Asking, Round]:
    asking = Asking(questions)
    going = asking.round = Round(flight(), asking.work())
    return Rounds(most=2), asking, going


def test_a_call_that_asks_nothing_is_answered_at_once() -> None:
    async def story() -> None:
        rounds, _, going = begin(0)
        assert told(await rounds.next(going)) == []

    run(story())


def test_each_question_is_one_more_request_and_the_word_is_good_for_one() -> None:
    async def story() -> None:
        rounds, _, going = begin(2)
        for number in (1, 2):
            asked = told(await rounds.next(going))
            assert asked["resultType"] == "input_required"
            assert asked["inputRequests"] == {str(number): {"method": "roots/list", "params": {"a": 1}}}
            word = asked["requestState"]
            assert rounds.resume(back("made up")) is None
            assert rounds.resume(back(word, **{str(number): f"answer {number}"})) is going
            assert rounds.resume(back(word)) is None
        assert told(await rounds.next(going)) == ["answer 1", "answer 2"]

    run(story())


def test_who_gives_up_the_request_gives_up_the_call() -> None:
    async def story() -> None:
        rounds, asking, going = begin(1)
        await rounds.next(going)
        waiting = asyncio.ensure_future(rounds.next(going))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert asking.ended

    run(story())


def test_there_is_an_end_to_those_who_never_come_back() -> None:
    async def story() -> None:
        rounds, _, first = begin(1)
        await rounds.next(first)
        second, third = Asking(1), Asking(1)
        for asking in (second, third):
            asking.round = Round(flight(), asking.work())
        await rounds.next(second.round)  # type: ignore[arg-type]
        with pytest.raises(RpcError, match="too many"):
            await rounds.next(third.round)  # type: ignore[arg-type]
        await until(lambda: third.ended)
        assert not second.ended

    run(story())


@pytest.mark.parametrize("parts", [{}, {"requestState": Raw(b"5")}, {"requestState": Raw(b'"\xff"')}])
def test_a_word_that_nobody_gave_is_an_ordinary_call(parts: dict[str, Raw]) -> None:
    assert Rounds().resume(parts) is None
