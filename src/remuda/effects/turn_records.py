"""Around every turn of a supervised agent: what is written down before its prompt and after its reply.

What must be known at once (the work before, the work after) is waited for; the rest of the record is made beside the
next turn. A crash loses none of it: it is in the journal, and the next start goes on from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from remuda.agents import ModelCall, Text, ToolCall, TurnResult, Update
from remuda.domain.effects import RunTurn
from remuda.domain.errors import EffectFailed, RemudaError
from remuda.domain.state import Outcome
from remuda.records import checked
from remuda.records.begin import Asked, begin, end, use_tool
from remuda.records.facts import Begun
from remuda.records.journal import Already, OpenTurn
from remuda.records.keeping import BRANCH, OFF, Keeping
from remuda.records.moment import boot, process_start
from remuda.records.publish import publish
from remuda.records.recover import dead, recover
from remuda.records.repository import NoRepository, find_repository
from remuda.records.snapshot import SnapshotFailed
from remuda.records.validations import Checks

log = logging.getLogger("remuda.records")

NOT_RECORDED = "not_recorded"  # the stop reason of a turn that was not begun because its record could not be

Prompt = Callable[[str], Awaitable[TurnResult]]


@dataclass(slots=True)
class TurnRecords:
    """How a project keeps them, and what is still being written."""

    root: Path
    project: str  # its mark: a repository may hold more than one
    keeping: Keeping = field(default_factory=Keeping)
    checks: Checks = field(default_factory=Checks)
    key: Path | None = None
    owner: int = 0  # our process
    writing: set[asyncio.Task[None]] = field(default_factory=set)
    recovering: asyncio.Task[None] | None = None

    def later(self, work: Callable[[], object]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(_quietly(work))
        self.writing.add(task)
        task.add_done_callback(self.writing.discard)
        return task

    async def close(self) -> None:
        if self.writing:
            await asyncio.wait(self.writing)

    def start(self) -> None:
        """Turns that an earlier runtime left are ended before the first of ours begins."""
        self.recovering = self.later(self._recover)

    def _recover(self) -> None:
        """It holds the project no more, or we would not."""
        try:
            repository = find_repository(str(self.root))
        except NoRepository:
            return
        recover(repository, self._abandoned, self.key)

    def _abandoned(self, begun: dict[str, Any]) -> bool:
        more = begun.get("more") or {}
        return more.get("project") == self.project if begun["by"] == "runtime" else dead(begun)


async def _quietly(work: Callable[[], object]) -> None:
    try:
        await asyncio.to_thread(work)
    except Exception as error:
        log.warning("a record was not completed: %s; `remuda turn recover` tries again", error)


class Recording:
    """One turn that is being recorded."""

    def __init__(self, records: TurnRecords, turn: OpenTurn) -> None:
        self._records, self._turn = records, turn
        self._begun = msgspec.convert(turn.facts("begun"), Begun)
        self._said: list[str] = []
        self._tokens: dict[str, int] = {}
        self._model = ""

    def hear(self, update: Update) -> None:
        match update:
            case ToolCall(status="started"):
                self._said.clear()  # what it says after its last tool is its summary
            case ToolCall():
                use_tool(self._turn, update.name, ok=update.status == "completed", argument=update.arguments)
            case Text():
                self._said.append(update.text)
            case ModelCall():
                used = update.usage
                counts = {
                    "input": used.input_tokens,
                    "output": used.output_tokens,
                    "cache_read": used.cache_read_tokens,
                    "cache_creation": used.cache_creation_tokens,
                }
                self._tokens = {name: self._tokens.get(name, 0) + count for name, count in counts.items()}
                self._model = update.model or self._model
            case _:
                pass

    async def check(self, result: TurnResult, prompt: Prompt) -> tuple[TurnResult, dict[str, Any]]:
        """Run what the project wants checked. The agent is told once what failed, and may mend it."""
        if result.outcome is not Outcome.COMPLETED or not self._records.checks.any:
            return result, {}
        facts, told = await asyncio.to_thread(self._check, again=False)
        if told:
            result = await prompt(told)
            facts, _ = await asyncio.to_thread(self._check, again=True)
        failed = [each["rule"] for each in facts.get("validations", []) if each["status"] == "fail"]
        if failed and self._records.checks.blocking and result.outcome is Outcome.COMPLETED:
            error = f"checks failed: {', '.join(failed)}; see `remuda turn show {self._turn.number}`"
            result = replace(result, outcome=Outcome.FAILED, error=error)
        return result, facts

    def _check(self, *, again: bool) -> tuple[dict[str, Any], str]:
        return checked.run(self._turn, self._begun, self._records.checks, again=again)

    async def end(self, outcome: str, error: str = "", **facts: Any) -> None:
        more = {
            "error": error,
            "summary": "".join(self._said),
            "tokens": self._tokens or None,
            "model": self._model,
            **facts,
        }
        ending = self._records.later(lambda: end(self._turn, outcome, **more))
        await asyncio.shield(ending)
        publishing = self._records.later(lambda: publish(self._turn, self._records.key))
        if self._records.keeping.records == BRANCH:  # the next turn begins on the branch as this one leaves it
            await asyncio.shield(publishing)

    def cut(self, error: str) -> None:
        """Somebody ended the turn and does not wait: the record is made when it can be."""

        def finish() -> None:
            end(self._turn, "interrupted", error=error, tokens=self._tokens or None, model=self._model)
            publish(self._turn, self._records.key)

        self._records.later(finish)


async def record(records: TurnRecords | None, effect: RunTurn, folder: Path) -> Recording | None:
    """The steps before a turn in that folder. EffectFailed when it may not begin; None where it cannot be recorded."""
    if records is None or records.keeping.records == OFF:
        return None
    if records.recovering is not None:
        await asyncio.wait({records.recovering})
    try:
        turn = await asyncio.to_thread(_begin, records, effect, folder)
    except (NoRepository, Already) as why:
        log.info("turn %d of %s is not recorded: %s", effect.turn, effect.agent, why)
        return None
    except (SnapshotFailed, OSError, RemudaError) as error:
        raise EffectFailed(f"the turn could not be recorded, and was not begun: {error}") from error
    return Recording(records, turn)


def _begin(records: TurnRecords, effect: RunTurn, folder: Path) -> OpenTurn:
    message = effect.message
    asked = Asked(
        message.text,
        effect.agent,
        session=f"{effect.agent}/{effect.epoch}",
        key=f"{message.id}/{message.attempts}/{effect.turn}",
    )
    asked.by = "runtime"
    asked.owner = {"pid": records.owner, "start": process_start(records.owner), "boot": boot()}
    asked.more = {"project": records.project, "turn": effect.turn, "epoch": effect.epoch}
    return begin(find_repository(str(folder)), records.keeping, asked)
