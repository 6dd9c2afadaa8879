"""Real agents and their budgets: what they spend, by the count of the model's service, is never more than there is."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
import uvloop

from live.kit import WITHIN, script
from live.project_kit import BYPASS, MODELS, OPTIONS, REAL, Place, until_paused
from remuda.domain.budget_commands import GrantBudget, SetBudget
from remuda.domain.commands import SpawnAgent
from remuda.domain.events import SessionStarted, TriggerFired, TurnEnded
from remuda.domain.failure import Failure
from remuda.domain.ledger import Account, Limits
from remuda.domain.state import Outcome
from remuda.runtime.runtime import Runtime
from remuda.scripted_model import ScriptedModel

pytestmark = [pytest.mark.live, pytest.mark.timeout(330)]

CALL = {"use": {"input": 20_000, "output": 300}}
TOKENS = 20_300


def spent(model: ScriptedModel) -> int:
    """By the service's own count."""
    return sum(call.usage.total for call in model.calls if call.usage is not None)


def account(runtime: Runtime, name: str) -> Account:
    return runtime.loop.shown.ledger.accounts[f"agent:{name}"]


def shell(command: str, times: int = 1) -> list[Mapping[str, object]]:
    """So many model calls, each of which runs a command."""
    return [each for number in range(times) for each in (CALL, {"shell": command.format(number)})]


def work(word: str = "") -> str:
    return script(*shell(f"echo {word}{{}} >> done.txt", 30))


@pytest.mark.parametrize("name", MODELS)
def test_a_metered_agent_spends_nothing_past_its_budget_and_goes_on_when_it_is_granted_more(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, name)

    async def story() -> None:
        async with ScriptedModel() as model, place.up(model) as runtime:
            budget, wishes = Limits(tokens=200_000), OPTIONS.get(name, BYPASS)
            ada = await runtime.spawn(SpawnAgent("crew", name, model=MODELS[name], budget=budget, options=wishes))
            await runtime.send(ada, script(*shell("env > seen.txt"), *shell("echo {}", 30)))
            await until_paused(runtime, ada)
            assert 0 < spent(model) == account(runtime, ada).spent.tokens <= 200_000
            assert account(runtime, ada).reserved.tokens == 0
            log = [record.event for record in await runtime.store.read(0, 10_000)]
            fired = next(event for event in log if isinstance(event, TriggerFired))
            ended = next(event for event in reversed(log) if isinstance(event, TurnEnded))
            assert (ended.outcome, ended.failure) == (Outcome.LIMITED, Failure.BUDGET_SPENT)
            assert f"the budget of {ada} is spent" in fired.evidence
            assert REAL not in (place.work / "seen.txt").read_text()
            before = len(model.calls)
            await runtime.submit(GrantBudget(f"agent:{ada}", Limits(tokens=150_000)))
            await model.until(lambda calls: len(calls) > before, within=WITHIN)
            await until_paused(runtime, ada)
            assert spent(model) == account(runtime, ada).spent.tokens <= 350_000
            log = [record.event for record in await runtime.store.read(0, 10_000)]
            refs = [event.ref for event in log if isinstance(event, SessionStarted)]
            assert len(refs) > 1
            assert len(set(refs)) == 1, "it remembers, however often it was stopped"

    uvloop.run(story())


def test_ten_agents_that_share_one_budget_never_spend_past_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "goose")

    async def story() -> None:
        async with ScriptedModel() as model, place.up(model) as runtime:
            boss = await runtime.spawn(SpawnAgent("crew", "goose", hold=True, budget=Limits(tokens=1_000_000)))
            herd = [await runtime.spawn(SpawnAgent("crew", "goose", parent=boss, options=BYPASS)) for _ in range(10)]
            await asyncio.gather(*(runtime.send(each, work(word=each)) for each in herd))
            await until_paused(runtime, *herd)
            assert spent(model) == account(runtime, boss).spent.tokens <= 1_000_000
            assert spent(model) > 1_000_000 - 3 * TOKENS  # and hardly anything is left lying
            assert len({call.auth for call in model.calls}) == 1  # all with the one real key

    uvloop.run(story())


def test_agents_within_an_agent_spend_of_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, monkeypatch, "claude")
    inner = {"description": "part", "subagent_type": "general-purpose", "prompt": work(word="inner")}

    async def story() -> None:
        async with ScriptedModel() as model, place.up(model) as runtime:
            budget = Limits(tokens=200_000)
            ada = await runtime.spawn(SpawnAgent("crew", "claude", budget=budget, options=BYPASS))
            task = {"tool": {"name": "Agent", "arguments": inner}}
            await runtime.send(ada, script(CALL, {"together": [task, task]}, {"say": "done"}))
            await until_paused(runtime, ada)
            assert (place.work / "done.txt").read_text().count("inner0") == 2  # both were at it
            assert 0 < spent(model) == account(runtime, ada).spent.tokens <= 200_000

    uvloop.run(story())


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_one_that_only_tells_of_its_calls_overshoots_by_no_more_than_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, name)

    async def story() -> None:
        async with ScriptedModel() as model:
            place.set(ANTHROPIC_API_KEY="x", ANTHROPIC_BASE_URL=model.url, OPENAI_API_KEY="x")
            options = (*BYPASS, ("base_url", f"{model.url}/v1")) if name == "codex" else BYPASS
            async with place.up(model, f'[meter]\nskip = ["{name}"]\n') as runtime:
                budget = Limits(tokens=5 * TOKENS + 1)
                ada = await runtime.spawn(SpawnAgent("crew", name, model=MODELS[name], budget=budget, options=options))
                await runtime.send(ada, work())
                await until_paused(runtime, ada)
                assert 5 * TOKENS < account(runtime, ada).spent.tokens <= 6 * TOKENS
                assert spent(model) <= 7 * TOKENS  # the call that was under way when it was cut off, at most

    uvloop.run(story())


def test_a_budget_that_is_set_while_it_works_holds_from_the_next_call_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch, "goose")

    async def story() -> None:
        async with ScriptedModel() as model, place.up(model) as runtime:
            ada = await runtime.spawn(SpawnAgent("crew", "goose", options=BYPASS))
            await runtime.send(ada, script(*shell("sleep 0.1", 100)))
            await model.until(lambda calls: len(calls) > 3, within=WITHIN)
            await runtime.submit(SetBudget(f"agent:{ada}", Limits(tokens=10 * TOKENS)))
            await until_paused(runtime, ada)
            assert spent(model) == account(runtime, ada).spent.tokens <= 10 * TOKENS

    uvloop.run(story())
