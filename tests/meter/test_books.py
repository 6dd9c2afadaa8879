"""The meter on a real runtime: reservations in the log, sessions with their tokens, time that passes, a hard kill."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from meter.kit import EMPTY, Disk, child_of, post, run, service_of, until
from remuda.agents import prices as tables
from remuda.agents.catalog import CATALOG
from remuda.agents.prices import Table
from remuda.domain.budget_commands import GrantBudget
from remuda.domain.commands import PauseAgent, RetireAgent, SpawnAgent
from remuda.domain.effects import StartSession
from remuda.domain.events import BudgetReserved, SessionStarted, TriggerFired
from remuda.domain.ledger import Account, Limits
from remuda.domain.lifecycle import Stage, Status
from remuda.domain.state import Usage
from remuda.meter import Estimate, Grant, Seat
from remuda.meter.apis import APIS
from remuda.meter.books import Books, price_of
from remuda.meter.proxy import Meter
from remuda.meter.serve import Desk, serve_meter
from remuda.meter.upstream import Upstream
from remuda.runtime.budget_settings import MeterSettings, UpstreamSettings
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from remuda.scripted_model import ScriptedModel
from scripted_model.kit import script
from scripted_model.raw import encoded, request


async def live(runtime: Runtime, command: SpawnAgent) -> Seat:
    name = await runtime.spawn(command)
    await until(lambda: name in runtime.world.live)
    return Seat(name, runtime.world.live[name].epoch)


@asynccontextmanager
async def metered(runtime: Runtime, url: str, seats: dict[str, Seat]) -> AsyncIterator[Meter]:
    """With tokens that the test gives out itself, and without a table of prices."""
    prices: asyncio.Future[Table | None] = asyncio.get_running_loop().create_future()
    prices.set_result(None)
    meter = Meter({api.name: Upstream(url, "") for api in APIS}, Books(runtime, prices), seats.get)
    await meter.open()
    try:
        yield meter
    finally:
        await meter.close()


def account(runtime: Runtime, name: str) -> Account:
    return runtime.loop.shown.ledger.accounts[f"agent:{name}"]


def asked(limit: int, *steps: object) -> tuple[str, bytes]:
    path, body = request("anthropic", script(*steps), stream=True, tools=False)
    return path, encoded({**body, "max_tokens": limit})


def test_ten_that_share_a_budget_wait_for_each_other_and_spend_it_to_the_end_and_not_past_it(tmp_path: Path) -> None:
    make_place(tmp_path)
    use = {"use": {"input": 150, "output": 40}}

    async def story() -> None:
        async with ScriptedModel() as model, open_runtime(tmp_path) as runtime:
            boss = await runtime.spawn(SpawnAgent("crew", "scripted", hold=True, budget=Limits(tokens=10_000)))
            seats = [await live(runtime, SpawnAgent("crew", "scripted", parent=boss)) for _ in range(10)]
            async with metered(runtime, model.url, {seat.agent: seat for seat in seats}) as meter:
                path, body = asked(2_000, use, {"say": "hello there, all of you"})

                async def caller(token: str) -> int:
                    answers = [await post(meter.url, path, body, token=token) for _ in range(10)]
                    return sum(answer.startswith(b"HTTP/1.1 402") for answer in answers)

                refused = await asyncio.gather(*(caller(seat.agent) for seat in seats))
            spent = account(runtime, boss).spent.tokens
            assert spent == sum(call.usage.total for call in model.calls if call.usage) <= 10_000
            assert spent > 9_000  # nobody was refused for what others only held
            assert sum(refused) == 100 - len(model.calls)
            log = [record.event for record in await runtime.store.read(0, 10_000)]
            assert sum(isinstance(event, BudgetReserved) for event in log) == len(model.calls)

    run(story)


def test_a_call_that_waits_goes_through_when_more_is_granted(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with service_of([], [EMPTY], hold=True) as service, open_runtime(tmp_path) as runtime:
            boss = await runtime.spawn(SpawnAgent("crew", "scripted", hold=True, budget=Limits(tokens=1_000)))
            ada, bob = [await live(runtime, SpawnAgent("crew", "scripted", parent=boss)) for _ in range(2)]
            async with metered(runtime, service.url, {"ada": ada, "bob": bob}) as meter:
                path, body = asked(600)
                first = asyncio.ensure_future(post(meter.url, path, body, token="ada"))
                await until(lambda: len(service.bodies) == 1)
                second = asyncio.ensure_future(post(meter.url, path, body, token="bob"))
                await until(lambda: len(runtime.loop.state.ledger.open) == 1)
                await runtime.submit(GrantBudget(f"agent:{boss}", Limits(tokens=1_000)))
                await until(lambda: len(service.bodies) == 2)
                first.cancel()
                second.cancel()
                await until(lambda: not runtime.loop.state.ledger.open)

    run(story)


def test_a_program_that_leaves_while_its_call_is_being_kept_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path) as runtime:
            ada = await live(runtime, SpawnAgent("crew", "scripted", budget=Limits(tokens=1_000)))
            prices: asyncio.Future[Table | None] = asyncio.get_running_loop().create_future()
            prices.set_result(None)
            books = Books(runtime, prices)
            disk = Disk(runtime.store, monkeypatch)
            disk.hold()
            asking = asyncio.ensure_future(books.reserve(ada, Estimate("m", 100, 600)))
            await until(lambda: runtime.loop.state.ledger.open)
            assert not asking.done(), "it is decided, and not on the disk yet"
            asking.cancel()
            disk.go()
            await until(lambda: runtime.loop.shown.seq == runtime.loop.state.seq and not runtime.loop.state.ledger.open)
            assert account(runtime, ada.agent).spent.tokens == 0
            again = await books.reserve(ada, Estimate("m", 100, 900))
            assert again == Grant(ada, 2, "m", 900)
            books.settle(Grant(ada, 2, "m", 900), Usage())

    run(story)


def test_a_call_without_a_budget_is_counted_and_waits_for_nothing(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with ScriptedModel() as model, open_runtime(tmp_path) as runtime:
            ada = await live(runtime, SpawnAgent("crew", "scripted"))
            async with metered(runtime, model.url, {"ada": ada}) as meter:
                await post(meter.url, *asked(100, {"say": "hello"}), token="ada")
                await post(meter.url, *asked(100, {"say": "hello"}, {"cut": True}), token="ada")
            await until(lambda: runtime.agent(ada.agent).metrics.unpriced_calls == 2)
            metrics = runtime.agent(ada.agent).metrics
            assert (metrics.input_tokens, metrics.cache_read_tokens) == (2_200, 200)  # as far as it was told
            assert metrics.output_tokens == 34 + 1

    run(story)


@pytest.mark.parametrize("budget", [Limits(), Limits(tokens=100_000)])
def test_what_is_left_of_a_session_that_has_ended_makes_no_calls(tmp_path: Path, budget: Limits) -> None:
    """A process that got away from its agent's end has the token still."""
    make_place(tmp_path)

    async def story() -> None:
        async with service_of([EMPTY]) as service, open_runtime(tmp_path) as runtime:
            ada = await live(runtime, SpawnAgent("crew", "scripted", budget=budget))
            async with metered(runtime, service.url, {"ada": ada}) as meter:
                assert b" 200 " in await post(meter.url, *asked(100), token="ada")
                await until(lambda: runtime.agent(ada.agent).status is Status.READY)
                await runtime.submit(PauseAgent(ada.agent))
                await until(lambda: ada.agent not in runtime.world.live)
                await until(lambda: runtime.agent(ada.agent).session.stage is Stage.ENDED)  # type: ignore[union-attr]
                answer = await post(meter.url, *asked(100), token="ada")
            assert answer.startswith(b"HTTP/1.1 402")
            assert b"is over, and makes no calls any more" in answer
            assert len(service.bodies) == 1

    run(story)


def test_time_that_is_used_up_ends_a_turn_though_nothing_happens_in_it(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path, (serve_meter,)) as runtime:
            ada = await runtime.spawn(SpawnAgent("crew", "scripted", budget=Limits(milliseconds=300)))
            await runtime.send(ada, f"playbook: {json.dumps([{'hang': 300}])}")
            await until(lambda: runtime.agent(ada).status is Status.PAUSED)
            log = [record.event for record in await runtime.store.read(0, 1000)]
            assert [event.agent for event in log if isinstance(event, TriggerFired)] == [ada]

    run(story)


def test_a_runtime_that_is_killed_in_the_middle_of_a_call_counts_all_that_it_had_reserved(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with service_of([], hold=True) as service:
            async with child_of(tmp_path, service.url) as (_child, url):
                path, body = asked(700)
                asking = asyncio.ensure_future(post(url, path, body, token="ada"))
                await until(lambda: service.bodies)
            await asyncio.gather(asking, return_exceptions=True)
            async with open_runtime(tmp_path) as runtime:
                spent = account(runtime, "crew-1").spent.tokens
                assert spent == len(service.bodies[0]) + 64 + 700
                assert runtime.loop.state.ledger.open == {}

    run(story)


# --- the desk ---


def start(agent: str, epoch: int, backend: str) -> StartSession:
    return StartSession(agent, epoch, backend, "crew", "", "", (), "")


def test_a_session_is_lent_its_way_to_the_meter_where_there_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", "real")
    upstreams = {"anthropic": Upstream("http://127.0.0.1:1", "DESK_KEY"), "gemini": Upstream("http://x", "NO_SUCH_KEY")}

    async def story() -> None:
        desk = Desk(CATALOG, upstreams, skip=("opencode",))
        desk.url = "http://127.0.0.1:7"
        lent = desk.lend(start("ada", 1, "claude"), "token-1")
        assert lent.metered
        assert lent.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:7"
        for backend in ("gemini", "codex", "opencode", "scripted", "unheard-of"):
            assert not desk.lend(start("bob", 1, backend), "token-2").metered
        elsewhere = replace(start("bob", 1, "claude"), options=(("base_url", "http://127.0.0.1:9"),))
        assert not desk.lend(elsewhere, "token-2").metered, "who spawned it has said where its model is"

    run(story)


def test_the_meter_goes_where_the_users_own_variables_say_that_the_model_is() -> None:
    own = {"openai-chat": UpstreamSettings("http://127.0.0.1:3", "MY_KEY")}
    environ = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "OPENAI_BASE_URL": "http://127.0.0.1:2/v1"}
    services = MeterSettings(upstreams=own).services(environ)
    assert {api: (each.url, each.key) for api, each in services.items() if "127.0.0.1" in each.url} == {
        "anthropic": ("http://127.0.0.1:1", "ANTHROPIC_API_KEY"),
        "openai-responses": ("http://127.0.0.1:2", "OPENAI_API_KEY"),
        "openai-chat": ("http://127.0.0.1:3", "MY_KEY"),
    }
    assert services["gemini"].url == "https://generativelanguage.googleapis.com"


def test_a_session_that_no_meter_stands_over_says_so_and_its_token_spends_nothing_there(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path) as runtime, serve_meter(runtime) as meter:
            assert meter is not None
            ada = await live(runtime, SpawnAgent("crew", "scripted"))
            await until(lambda: runtime.agent(ada.agent).status is Status.READY)
            log = [record.event for record in await runtime.store.read(0, 1000)]
            assert [event.metered for event in log if isinstance(event, SessionStarted)] == [False]
            token = runtime.world.live[ada.agent].token
            assert b" 401 " in await post(meter.url, "/v1/messages", b"{}", token=token)
            runtime.world.live[ada.agent].metered = True  # as it is for those that the meter was lent to
            assert b" 401 " not in await post(meter.url, "/v1/nothing", b"{}", token=token)
            await runtime.submit(RetireAgent(ada.agent))
            await until(lambda: ada.agent not in runtime.world.live)
            assert b" 401 " in await post(meter.url, "/v1/nothing", b"{}", token=token)

    run(story)


# --- prices ---


def test_a_price_is_bounded_from_above_and_unknown_where_nobody_knows_it() -> None:
    async def story() -> None:
        table = await tables.load()
        into, out = price_of(table, "claude-sonnet-4-5", 10_000) or (0, 0)
        assert into >= 10_000 * 3_000 * 5 // 4  # dollars for a million: 3 in, a quarter more into the cache, 15 out
        assert out >= 15_000
        assert price_of(table, "no-such-model", 10_000) is None
        assert price_of(None, "claude-sonnet-4-5", 10_000) is None

    run(story)
