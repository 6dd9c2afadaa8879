"""One agent has one session: what it is given, what it says besides its words, and how the next takes its place."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes import breathe
from remuda.agents import Ask, Backend, Ended, Hook, Launch, Listen, TurnResult
from remuda.domain.commands import ReportSessionStarted
from remuda.domain.effects import EndSession, StartSession
from remuda.domain.errors import EffectFailed
from remuda.effects import perform
from remuda.effects.world import Loan
from scenarios.session_kit import DONE, Acted, Script, Stage
from simulation.virtual import run_virtually

START = StartSession("ada", 1, "acted", "worker", "", "", (), "")
Story = Callable[[Stage], Coroutine[Any, Any, None]]


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., None]:
    def play(story: Story, *scripts: Script) -> None:
        async def told() -> None:
            stage = Stage(tmp_path, *scripts)
            await stage.start()
            await story(stage)
            await stage.world.close()

        run_virtually(told())

    return play


Played = Callable[..., None]


def test_what_hooks_say_is_noted_and_their_silent_consent_is_not(played: Played) -> None:
    async def work(session: Acted) -> TurnResult:
        session.listen(Hook("PreToolUse:Bash", "passed"))
        session.listen(Hook("PreToolUse:Bash", "blocked", "not this word"))
        session.listen(Hook("Stop", "passed", "well done"))
        return DONE

    async def story(stage: Stage) -> None:
        await stage.turn()
        said = [line for line in stage.live.ring.lines() if "hook" in line]
        assert len(said) == 2
        assert "hook PreToolUse:Bash blocked: not this word" in said[0]
        assert "hook Stop passed: well done" in said[1]

    played(story, work)


def test_a_session_that_would_not_die_keeps_its_place_and_no_other_is_started(played: Played) -> None:
    async def story(stage: Stage) -> None:
        first, live = stage.sessions[0], stage.live
        dies = first.end

        async def lives_on(*, gentle: bool) -> Ended:
            return replace(await dies(gentle=gentle), detail="did not die of SIGKILL (yet)", left=(4711,))

        first.end = lives_on  # type: ignore[method-assign]
        with pytest.raises(EffectFailed, match="session 1 of ada is in the way: it did not die"):
            await perform(stage.world, replace(START, epoch=2))
        assert stage.world.live == {"ada": live}
        assert len(stage.sessions) == 1
        first.end = dies  # type: ignore[method-assign]
        assert isinstance(await perform(stage.world, replace(START, epoch=2)), ReportSessionStarted)
        assert stage.live.epoch == 2
        assert len(stage.sessions) == 2

    played(story)


def test_in_a_worktree_the_next_one_begins_when_the_last_is_gone_and_in_the_projects_own_folder_at_any_time(
    tmp_path: Path,
) -> None:
    async def told() -> None:
        stage = Stage(tmp_path)
        for folder, waits in (("w", True), ("", False)):
            (tmp_path / folder).mkdir(exist_ok=True)
            await perform(stage.world, replace(START, folder=folder))
            first, may_go = stage.sessions[-1], asyncio.Event()
            dies = first.end

            async def takes_its_time(*, gentle: bool, dies: Any = dies, may_go: asyncio.Event = may_go) -> Ended:
                await may_go.wait()
                ended: Ended = await dies(gentle=gentle)
                return ended

            first.end = takes_its_time  # type: ignore[method-assign]
            ending = asyncio.ensure_future(perform(stage.world, EndSession("ada", 1, gentle=True)))
            await breathe()
            starting = asyncio.ensure_future(perform(stage.world, replace(START, agent="bob", folder=folder)))
            await breathe()
            assert starting.done() is not waits
            may_go.set()
            await ending
            assert isinstance(await starting, ReportSessionStarted)
        await stage.world.close()

    run_virtually(told())


def test_what_a_session_is_lent_counts_before_what_was_asked_for(tmp_path: Path) -> None:
    seen: list[Launch] = []

    async def told() -> None:
        stage = Stage(tmp_path)
        acted = stage.world.backend("acted")

        async def begin(launch: Launch, listen: Listen, ask: Ask) -> Any:
            seen.append(launch)
            return await acted(launch, listen, ask)

        backend: Backend = begin
        stage.world.backend = lambda _: backend
        stage.world.lenders.append(lambda _, __: Loan(options=(("base_url", "http://127.0.0.1:1"),)))
        await perform(stage.world, replace(START, options=(("base_url", "http://elsewhere"),)))
        await stage.world.close()

    run_virtually(told())
    assert dict(seen[0].options) == {"base_url": "http://127.0.0.1:1"}
