"""The questions of one live session: ruled on at once where the role's policy knows, else put to somebody."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence

from remuda.agents import Answered, Asked
from remuda.domain.permission import Policy, Ruling, judge

# (id of the question, what is asked): makes it durable.
Put = Callable[[str, Asked], None]


class Questions:
    def __init__(self, agent: str, policy: Policy, folders: Sequence[str], put: Put) -> None:
        self._agent = agent
        self._policy = policy
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._put = put
        self._waiting: dict[str, list[asyncio.Future[Answered]]] = {}

    async def ask(self, asked: Asked) -> Answered:
        judgement = judge(self._policy, asked.tool, self._without_links(asked.paths), self._folders)
        if judgement.ruling is not Ruling.ASK:
            return Answered(judgement.ruling is Ruling.ALLOW, judgement.why)
        which = question_id(self._agent, asked)
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(which, []).append(answer)
        self._put(which, asked)
        return await answer

    def _without_links(self, paths: Sequence[str]) -> list[str]:
        return [os.path.realpath(os.path.join(self._folders[0], path)) for path in paths]

    def settle(self, which: str, *, allow: bool, why: str) -> None:
        for answer in self._waiting.pop(which, []):
            if not answer.done():
                answer.set_result(Answered(allow, why))

    @property
    def open(self) -> bool:
        """Whether the session waits for somebody: then its silence means nothing."""
        return any(not answer.done() for answers in self._waiting.values() for answer in answers)


def question_id(agent: str, asked: Asked) -> str:
    """The same question has the same id, also from the session that takes over after a crash."""
    content = "\0".join((agent, asked.tool, asked.arguments, *asked.paths))
    return hashlib.sha256(content.encode(errors="replace")).hexdigest()[:8]
