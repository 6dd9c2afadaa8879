"""A gateway put together from its settings, kept up to date with them, until the block is left."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.domain.errors import RemudaError
from remuda.gateway.approvals import Approvals
from remuda.gateway.clock import Counting
from remuda.gateway.config import Configured, load_config, spell_files
from remuda.gateway.fleet import Fleet
from remuda.gateway.gateway import Gateway
from remuda.gateway.intent import Chooser
from remuda.gateway.ledger import Ledger
from remuda.gateway.toollist import ToolList, recall

log = logging.getLogger("remuda.gateway")

LOOK_EVERY = 0.5  # seconds between two looks at the settings


@asynccontextmanager
async def open_gateway(
    configured: Configured, *, mark: str, role: str = "", counting: Counting = "calls", name: str = ""
) -> AsyncIterator[Gateway]:
    ledger = Ledger(configured.state, name)
    fleet = Fleet(configured, counting=counting, mark=mark, note=ledger.note)
    approvals = Approvals(configured.state)
    remember(fleet, approvals)
    gateway = Gateway(fleet, Chooser(), role=role)
    gateway.listing = ledger.listed
    gateway.listing(gateway.tokens_listed(), fleet.tokens_known())
    async with ledger.keeping():
        watching = [asyncio.create_task(each(fleet, approvals)) for each in (reload, review)]
        try:
            yield gateway
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await gateway.close()


def remember(fleet: Fleet, approvals: Approvals) -> None:
    """Have the tools of every start compared with those that were approved. Those are known before the first start, so
    that an intent can find them and a call start their server."""

    def check(name: str, tools: ToolList) -> ToolList:
        return approvals.check(name, tools, any_tools=fleet.configured.servers[name].any_tools)

    fleet.check = check
    for name, server in fleet.servers.items():
        try:
            if server.tools is None and (kept := approvals.kept(name)) is not None:
                server.tools = recall(name, kept.tools)
        except RemudaError as error:  # told when it is started
            log.warning("%s", error)


async def reload(fleet: Fleet, approvals: Approvals) -> None:
    """Take new settings over when their files changed and are left alone since: who writes a file empties it first,
    and a gateway without servers is a gateway all the same. What cannot be read is told, and the old ones stay."""
    taken = before = await asyncio.to_thread(_stamps, fleet.configured)
    while True:
        await asyncio.sleep(LOOK_EVERY)
        now = await asyncio.to_thread(_stamps, fleet.configured)
        settled, before = now == before, now
        if now == taken or not settled:
            continue
        taken = now
        try:
            fleet.replace(await asyncio.to_thread(load_config, fleet.configured.path))
            remember(fleet, approvals)
            log.info("the settings have changed: %d tool servers are known", len(fleet.servers))
        except RemudaError as error:
            log.warning("the settings have changed and cannot be used; the old ones stay: %s", error)


async def review(fleet: Fleet, approvals: Approvals) -> None:
    """What a person approves while the gateway runs can be used at once, and not when its server is next started."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        kept_back = [name for name, server in fleet.servers.items() if server.tools and server.tools.barred]
        newer = await asyncio.to_thread(lambda names: [name for name in names if approvals.newer(name)], kept_back)
        for server in [fleet.servers[name] for name in newer if name in fleet.servers]:
            try:
                server.review()
            except RemudaError as error:
                log.warning("%s", error)
        if newer:
            fleet.changed()


def _stamps(configured: Configured) -> dict[Path, tuple[int, int]]:
    stamps: dict[Path, tuple[int, int]] = {}
    for path in (configured.path, *spell_files(configured.path, configured.gateway)):
        try:
            found = path.stat()
        except OSError:
            continue
        stamps[path] = (found.st_mtime_ns, found.st_size)
    return stamps
