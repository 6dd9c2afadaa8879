"""Questions over one pipe, both ways."""

import asyncio

import pytest

from adapters.agent_kit import Undecided, allow_all
from remuda.agents import Answered, Asked
from remuda.agents.exchange import Awaited, Questions, whom_to_ask
from remuda.domain.errors import AgentFault, Invalid
from waiting import until


def test_a_reply_goes_to_the_question_of_its_number() -> None:
    async def story() -> list[str]:
        replies: Awaited[str] = Awaited()
        numbers: list[int] = []
        waiting = asyncio.gather(*(replies.ask(numbers.append) for _ in range(3)))
        await until(lambda: len(numbers) == 3)
        for number in reversed(numbers):
            replies.resolve(number, f"reply {number}")
        replies.resolve(99, "nobody asked")
        return list(await waiting)

    assert asyncio.run(story()) == ["reply 1", "reply 2", "reply 3"]


def test_the_first_fault_is_what_everyone_learns_now_and_later() -> None:
    async def story() -> None:
        replies: Awaited[str] = Awaited()
        sent: list[int] = []
        waiting = asyncio.create_task(replies.ask(sent.append))
        await until(lambda: bool(sent))
        replies.fail(AgentFault("it died"))
        replies.fail(AgentFault("and was buried"))
        with pytest.raises(AgentFault, match="it died"):
            await waiting
        with pytest.raises(AgentFault, match="it died"):
            await replies.ask(sent.append)
        assert len(sent) == 1

    asyncio.run(story())


def test_a_question_that_is_taken_back_is_not_answered() -> None:
    async def story() -> None:
        asking = Undecided()
        questions = Questions(asking)
        answers: list[Answered] = []
        questions.put("q1", Asked("q1", "shell"), answers.append)
        questions.put("q2", Asked("q2", "shell"), answers.append)
        await until(lambda: asking.asked == 2)
        questions.withdraw("q1")
        questions.withdraw("never put")
        await until(lambda: asking.withdrawn == 1)
        questions.withdraw_all()
        await until(lambda: asking.withdrawn == 2)
        assert answers == []

    asyncio.run(story())


def test_nobody_is_asked_when_the_questions_are_bypassed() -> None:
    async def story() -> None:
        asking = Undecided()
        answers: list[Answered] = []
        Questions(whom_to_ask((("permissions", "bypass"),), asking)).put("q", Asked("q", "shell"), answers.append)
        await until(lambda: bool(answers))
        assert (answers, asking.asked) == ([Answered(allow=True)], 0)

    asyncio.run(story())


def test_permissions_are_asked_for_unless_they_are_bypassed() -> None:
    assert whom_to_ask((), allow_all) is allow_all
    with pytest.raises(Invalid):
        whom_to_ask((("permissions", "perhaps"),), allow_all)
