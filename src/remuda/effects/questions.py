"""The questions of one live session: ruled on at once where the role's policy knows, else put to somebody."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence

from remuda.agents import Answered, Asked
from remuda.domain.permission import Policy, Ruling, judge

# (id of the question, what is asked): makes it durable; False when it is no time for questions.
Put = Callable[[str, Asked], bool]

MOST_OPEN = 100  # questions of one session that wait for an answer; whoever asks more asks nobody in earnest


class Questions:
    def __init__(self, agent: str, policy: Policy, folders: Sequence[str], put: Put) -> None:
        self._agent = agent
        self._policy = policy
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._put = put
        self._waiting: dict[str, list[asyncio.Future[Answered]]] = {}

    async def ask(self, asked: Asked) -> Answered:
        try:
            paths = self._without_links(asked.paths)
        except ValueError as error:  # a zero byte, half a character: there is no such file
            return Answered(False, f"{asked.paths!r} cannot be: {error}")
        judgement = judge(self._policy, asked.tool, paths, self._folders)
        if judgement.ruling is not Ruling.ASK:
            return Answered(judgement.ruling is Ruling.ALLOW, judgement.why)
        if sum(map(len, self._waiting.values())) >= MOST_OPEN:
            return Answered(False, f"it waits for {MOST_OPEN} answers already; no more is asked until some are given")
        which = question_id(self._agent, asked)
        if not self._put(which, asked):
            return Answered(False, "nobody can be asked outside of a turn")
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(which, []).append(answer)
        try:
            return await answer
        finally:
            self._forget(which, answer)  # also when who asked has left

    def _without_links(self, paths: Sequence[str]) -> list[str]:
        """Where they really lead: tools understand `~`, and whoever follows a link is where it leads."""
        return [os.path.realpath(os.path.join(self._folders[0], os.path.expanduser(path))) for path in paths]

    def _forget(self, which: str, answer: "asyncio.Future[Answered]") -> None:
        others = [each for each in self._waiting.pop(which, []) if each is not answer]
        if others:
            self._waiting[which] = others

    def settle(self, which: str, *, allow: bool, why: str) -> None:
        for answer in self._waiting.pop(which, []):
            if not answer.done():
                answer.set_result(Answered(allow, why))

    def settle_all(self, why: str) -> None:
        """No to all that is still open: the turn has ended without an answer."""
        for which in list(self._waiting):
            self.settle(which, allow=False, why=why)

    def drop(self) -> None:
        """The session is gone, and nobody waits any more."""
        for answer in (each for answers in self._waiting.values() for each in answers):
            answer.cancel()
        self._waiting.clear()

    @property
    def open(self) -> bool:
        """Whether the session waits for somebody: then its silence means nothing."""
        return any(not answer.done() for answers in self._waiting.values() for answer in answers)


def question_id(agent: str, asked: Asked) -> str:
    """The same question has the same id, also from the session that takes over after a crash."""
    content = "\0".join((agent, asked.tool, asked.arguments, *asked.paths))
    return hashlib.sha256(content.encode(errors="replace")).hexdigest()[:8]
