"""Start tool servers, look at them, and let them go."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from remuda.cli.call import width, write_out
from remuda.cli.gateway import config_option, configured, known, nothing_in
from remuda.cli.say import json_option, out, out_json
from remuda.domain.errors import Invalid, RemudaError
from remuda.gateway.approvals import Approvals
from remuda.gateway.assembly import remember
from remuda.gateway.config import Configured
from remuda.gateway.events import GatewayEvent
from remuda.gateway.fleet import Fleet
from remuda.gateway.reach import own_mark
from remuda.gateway.toollist import in_words
from remuda.views.table import Column, table

COLUMNS = (
    Column("SERVER"),
    Column("SECONDS", right=True),
    Column("TOOLS", right=True),
    Column("TOKENS", right=True),
    Column("RESULT", elastic=True),
)


@click.command()
@click.argument("names", nargs=-1)
@config_option
@json_option
def probe(names: Sequence[str], given: Path | None, as_json: bool) -> int:
    """Start servers, all unless some are named, list their tools and measure: how long, how many, how many tokens."""
    config = configured(given)
    wanted = names or tuple(name for name, server in config.servers.items() if server.enabled)
    for name in wanted:
        if not known(config, name).enabled:
            raise Invalid(f"{name} is off; set enabled = true in {config.path} first")
    rows = asyncio.run(_probe(config, wanted))
    if as_json:
        out_json({"path": str(config.path), "servers": rows})
    elif not rows:
        out(nothing_in(config))
    else:
        write_out(table(COLUMNS, [_cells(row) for row in rows], width=width() or None).encode())
        for row in rows:
            _told(row)
    return int(any(row["error"] for row in rows))


async def _probe(config: Configured, names: Sequence[str]) -> list[dict[str, Any]]:
    """One after the other: beside each other they would be measured in each other's way."""
    fleet = Fleet(config, mark=own_mark(), note=_nobody_listens)
    remember(fleet, Approvals(config.state))
    try:
        return [await _look(fleet, name) for name in names]
    finally:
        await fleet.close()


def _nobody_listens(_event: GatewayEvent) -> None:
    pass


async def _look(fleet: Fleet, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "seconds": None, "tools": [], "tokens": None, "barred": [], "error": ""}
    began = time.monotonic()
    server = fleet.servers[name]
    try:
        await server.ready()
    except RemudaError as error:
        return {**row, "error": str(error)}
    row["seconds"] = round(time.monotonic() - began, 3)
    await server.leave()
    if server.tools is not None:
        row["tools"], row["tokens"] = [tool.name for tool in server.tools.tools.values()], server.tools.tokens
        row["barred"] = in_words(server.tools.barred)
    return row


def _cells(row: dict[str, Any]) -> list[str]:
    if row["error"]:
        return [row["name"], "", "", "", row["error"].partition("\n")[0]]
    result = "; ".join((", ".join(row["tools"]) or "no tools", *row["barred"]))
    return [row["name"], f"{row['seconds']:.2f}", str(len(row["tools"])), str(row["tokens"]), result]


def _told(row: dict[str, Any]) -> None:
    """The rest of what a server said before it failed, as it wrote it."""
    _, _, rest = row["error"].partition("\n")
    if rest:
        out("\n".join(f"{row['name']}: {line}" for line in rest.splitlines()))
