"""pi, as far as it goes: it has no tool servers, asks nothing, and tells of its use only how full its context is."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from adapters.agent_kit import Recorder
from live.kit import WITHIN, Stage, script
from live.native_kit import find_cli
from remuda.agents import Retry, Session
from remuda.agents.catalog import CATALOG
from remuda.domain.failure import Failure
from remuda.domain.state import Outcome
from remuda.scripted_model import ScriptedModel
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]


def test_it_works_is_interrupted_fails_aloud_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    find_cli(CATALOG["pi"].program)
    find_cli("pi")

    async def whole() -> None:
        async with asyncio.timeout(WITHIN), ScriptedModel() as model:
            stage, heard = Stage("pi", tmp_path, model), Recorder()
            async with stage.session(heard) as session:
                await work(stage, session, heard)
                await be_interrupted(session, heard)
                await fail(session, heard)
                for pid in stage.pids():
                    os.kill(pid, signal.SIGKILL)
                await session.gone()
            await go_on(stage, session.ref)

    asyncio.run(whole())


async def work(stage: Stage, session: Session, heard: Recorder) -> None:
    writes = {"write": {"path": "notes.txt", "text": "alpha\n"}}
    result = await session.prompt(script({"shell": "echo shell-ok > shell.txt"}, writes, {"say": "Done."}))
    assert result.outcome is Outcome.COMPLETED, result.error
    assert "Done." in heard.text()
    assert (stage.work / "shell.txt").read_text() == "shell-ok\n"
    assert (stage.work / "notes.txt").read_text() == "alpha\n"
    assert [each.status for each in heard.tools()].count("completed") == 2


async def be_interrupted(session: Session, heard: Recorder) -> None:
    turn = asyncio.create_task(session.prompt(script({"slow": 0.05}, {"say": "word ", "repeat": 1000})))
    await until(lambda: "word" in heard.text())
    await session.cancel()
    assert (await turn).failure is Failure.CANCELLED


async def fail(session: Session, heard: Recorder) -> None:
    """It does not say of what, only that there was nothing."""
    faults: tuple[dict[str, object], ...] = (
        {"error": 500, "retry_after": 0},
        {"error": 401},
        {"context_exceeded": True},
    )
    for fault in faults:
        result = await session.prompt(script(fault))
        assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.MODEL_ERROR), fault
    assert [each.attempt for each in heard.updates if isinstance(each, Retry)] == [1, 2, 3]
    assert (await session.prompt(script({"say": "Still here."}))).outcome is Outcome.COMPLETED


async def go_on(stage: Stage, ref: str) -> None:
    heard = Recorder()
    async with stage.session(heard, resume=ref) as session:
        assert session.ref == ref
        assert (await session.prompt(script({"recall": True}))).outcome is Outcome.COMPLETED
    assert "I remember 7 scripted prompts" in heard.text()
    assert "Still here." not in heard.text()
