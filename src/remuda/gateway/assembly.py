"""A gateway put together from its settings, kept up to date with them, until the block is left."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.domain.errors import RemudaError
from remuda.gateway.choice import Candidate, Choice, Choose, Offered, Tier
from remuda.gateway.clock import Counting
from remuda.gateway.config import Configured, load_config, spell_files
from remuda.gateway.fleet import Fleet
from remuda.gateway.gateway import Gateway
from remuda.gateway.ledger import Ledger

log = logging.getLogger("remuda.gateway")

LOOK_EVERY = 1.0  # seconds between two looks at the settings


@asynccontextmanager
async def open_gateway(
    configured: Configured, *, mark: str, role: str = "", counting: Counting = "calls", name: str = ""
) -> AsyncIterator[Gateway]:
    ledger = Ledger(configured.state, name)
    fleet = Fleet(configured, counting=counting, mark=mark, note=ledger.note)
    gateway = Gateway(fleet, chooser(), role=role)
    gateway.listing = ledger.books.list
    async with ledger.keeping():
        watching = asyncio.create_task(reload(fleet))
        try:
            yield gateway
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await gateway.close()


def chooser() -> Choose:
    return _by_name


def _by_name(query: str, candidates: Iterable[Candidate]) -> Choice:
    named = [Offered(each.name, 1.0, "it is named") for each in candidates if each.name in query.split()]
    return Choice((Tier.NONE, Tier.CLEAR, Tier.CLOSE)[min(2, len(named))], tuple(named))


async def reload(fleet: Fleet) -> None:
    """Take new settings over when their files change. What cannot be read is told, and the old ones stay."""
    seen = await asyncio.to_thread(_stamps, fleet.configured)
    while True:
        await asyncio.sleep(LOOK_EVERY)
        now = await asyncio.to_thread(_stamps, fleet.configured)
        if now == seen:
            continue
        seen = now
        try:
            fleet.replace(await asyncio.to_thread(load_config, fleet.configured.path))
            log.info("the settings have changed: %d tool servers are known", len(fleet.servers))
        except RemudaError as error:
            log.warning("the settings have changed and cannot be used; the old ones stay: %s", error)


def _stamps(configured: Configured) -> dict[Path, tuple[int, int]]:
    stamps: dict[Path, tuple[int, int]] = {}
    for path in (configured.path, *spell_files(configured.path, configured.gateway)):
        try:
            found = path.stat()
        except OSError:
            continue
        stamps[path] = (found.st_mtime_ns, found.st_size)
    return stamps
