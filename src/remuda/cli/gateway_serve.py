"""Serve the gateway to any MCP client, without a runtime."""

import asyncio
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import uvloop
from starlette.applications import Starlette

from remuda.cli.say import note
from remuda.domain.errors import EffectFailed, Invalid
from remuda.gateway.assembly import open_gateway
from remuda.gateway.config import Configured, find_config, load_config
from remuda.gateway.gateway import Gateway
from remuda.gateway.metatools import TOKENS
from remuda.gateway.reach import own_mark, sweep_orphans
from remuda.mcp import stdio
from remuda.mcp.http import HttpFront
from remuda.mcp.http_checks import LOOPBACK
from remuda.runtime.serving import serving

TOKEN = "REMUDA_GATEWAY_TOKEN"  # noqa: S105 - the name of the variable


class Where(NamedTuple):
    host: str
    port: int
    allow_host: tuple[str, ...] = ()


@click.command()
@click.option("--http", is_flag=True, help="Over streamable HTTP instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="With --http: the port; any free one unless said."
)
@click.option("--allow-host", multiple=True, help="With --http: a name by which clients may call this machine.")
@click.option("--role", default="", help="What may be used is what agents of this role may use.")
@click.option("--config", "given", type=click.Path(path_type=Path), help="The file of settings to use.")
@click.option("--verbose", is_flag=True, help="Tell on stderr what happens.")
def serve(http: bool, role: str, given: Path | None, verbose: bool, **where: Any) -> None:
    """Serve the tool servers of the settings as one, to the MCP client that starts this.

    With --http any number of clients may come. They need the token of the variable REMUDA_GATEWAY_TOKEN; where that is
    not set, one is made and told on stderr.
    """
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="remuda: %(message)s", stream=sys.stderr)
    path = find_config(Path.cwd(), given)
    if given is not None and not given.is_file():
        raise Invalid(f"there is no file {given}")
    configured = load_config(path)
    if role and role not in configured.gateway.roles:
        raise Invalid(f"gateway.roles.{role} is not in {path}", possible=sorted(configured.gateway.roles))
    uvloop.run(_over_http(configured, role, Where(**where)) if http else _over_stdio(configured, role))


async def _over_stdio(configured: Configured, role: str) -> None:
    stop = _stopped()
    await asyncio.to_thread(sweep_orphans)
    async with open_gateway(configured, mark=own_mark(), role=role) as gateway:
        _banner(configured, gateway, "stdin and stdout")
        await stdio.serve(gateway, stop=stop)


async def _over_http(configured: Configured, role: str, where: Where) -> None:
    stop = _stopped()
    await asyncio.to_thread(sweep_orphans)
    token = os.environ.get(TOKEN, "") or secrets.token_urlsafe(24)
    async with open_gateway(configured, mark=own_mark(), role=role) as gateway:

        def door(given: str) -> Gateway | None:
            return gateway if hmac.compare_digest(given.encode(), token.encode()) else None

        hosts = {where.host.lower(), *(name.lower() for name in where.allow_host)}
        front = HttpFront(door, hosts=LOOPBACK | hosts)
        listening = _listen(where.host, where.port)
        async with serving(Starlette(routes=list(front.routes())), listening):
            host = f"[{where.host}]" if ":" in where.host else where.host
            _banner(configured, gateway, f"http://{host}:{listening.getsockname()[1]}/mcp")
            if not os.environ.get(TOKEN):
                note(f"  token    {token}")
            await stop.wait()
            await front.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise EffectFailed(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
    listening.setblocking(False)
    return listening


def _stopped() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _banner(configured: Configured, gateway: Gateway, where: str) -> None:
    """On stderr, for over stdio the client owns stdout."""
    settings = configured.gateway
    note(f"remuda gateway on {where}")
    note(f"  settings {configured.path}")
    note(f"  servers  {', '.join(gateway.fleet.servers) or 'none; `remuda gateway add` adds one'}")
    for name, why in configured.faults.items():
        note(f"  left out {name}: {why}")
    seen = [server for server in gateway.fleet.servers.values() if server.tools is not None]
    note(f"  known    the tools of {len(seen)} of them, {gateway.fleet.tokens_known()} tokens")
    clock = gateway.fleet.clock.turn
    note(f"  clock    turn {clock}; a server leaves after {settings.idle_turns} idle turns")
    note(f"  listing  {settings.listing}; {TOKENS} tokens of own tools")
