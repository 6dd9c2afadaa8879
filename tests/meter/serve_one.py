"""A runtime with one agent that has a budget, and its meter: to be killed."""

import asyncio
import sys
from pathlib import Path

from remuda.agents.prices import Table
from remuda.domain.commands import SpawnAgent
from remuda.domain.ledger import Limits
from remuda.meter import Seat
from remuda.meter.apis import APIS
from remuda.meter.books import Books
from remuda.meter.proxy import Meter
from remuda.meter.upstream import Upstream
from remuda.runtime.compose import open_runtime


async def serve(folder: Path, service: str) -> None:
    async with open_runtime(folder) as runtime:
        name = await runtime.spawn(SpawnAgent("crew", "scripted", budget=Limits(tokens=10_000)))
        prices: asyncio.Future[Table | None] = asyncio.get_running_loop().create_future()
        prices.set_result(None)
        upstreams = {api.name: Upstream(service, "") for api in APIS}
        meter = Meter(upstreams, Books(runtime, prices), {"ada": Seat(name, 1)}.get)
        await meter.open()
        sys.stdout.write(f"{meter.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
