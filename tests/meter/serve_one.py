"""A runtime with one agent that has a budget, and its meter: to be killed. `hold`: the agent is in a turn, and when its
first call is settled the disk takes nothing more."""

import asyncio
import sys
import threading
from pathlib import Path

import waiting
from remuda.agents.prices import Table
from remuda.domain.commands import SpawnAgent
from remuda.domain.ledger import Limits
from remuda.meter import Seat
from remuda.meter.apis import APIS
from remuda.meter.books import Books
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.runtime.compose import open_runtime
from remuda.store.sqlite import SqliteStore


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve(folder: Path, service: str, *, hold: bool) -> None:
    async with open_runtime(folder) as runtime:
        name = await runtime.spawn(SpawnAgent("crew", "scripted", budget=Limits(tokens=10_000)))
        prices: asyncio.Future[Table | None] = asyncio.get_running_loop().create_future()
        prices.set_result(None)
        upstreams = {api.name: Upstream(service, "") for api in APIS}
        books = Books(runtime, prices)
        await books.recall()
        meter = Meter(upstreams, books, {"ada": Seat(name, 1)}.get)
        await meter.open()
        if hold:
            await runtime.send(name, 'playbook: [{"hang": 3600}]')
            await waiting.until(lambda: runtime.agent(name).turn)
        say(meter.url)
        if hold:
            await waiting.until(lambda: runtime.agent(name).metrics.unpriced_calls)
            store = runtime.store
            assert isinstance(store, SqliteStore)
            store._commit = lambda _group: threading.Event().wait()  # type: ignore[assignment, return-value]
            say("held")
        await asyncio.Event().wait()


asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], hold=sys.argv[3:] == ["hold"]))
