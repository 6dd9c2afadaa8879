"""The runtime in this process, until it is told to stop."""

import asyncio
import logging
import signal
import sys

import uvloop

from remuda.cli.say import out
from remuda.domain.lifecycle import DEAD
from remuda.runtime.place import Place
from remuda.runtime.runtime import Runtime
from remuda.web.serve import serve
from remuda.whole import open_project


def run(place: Place) -> None:
    _log_to_stderr()
    uvloop.run(_run(place))


async def _run(place: Place) -> None:
    """Until SIGTERM or Ctrl-C, `remuda down`, or the failure of the log, which is raised."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_project(place.root) as runtime:
        await serve(runtime, stop=stop, ready=lambda: _banner(runtime))
        if runtime.running.done():
            await runtime.running
    out("remuda is down; nothing is lost, `remuda up` goes on")


def _banner(runtime: Runtime) -> None:
    agents = runtime.loop.shown.agents.values()
    dead = sum(agent.status in DEAD for agent in agents)
    out(f"remuda is up for {runtime.place.root}")
    out(f"  socket  {runtime.place.socket}")
    out(f"  agents  {len(agents) - dead} alive, {dead} dead")
    out("  stop    Ctrl-C here, or `remuda down`")


def _log_to_stderr() -> None:
    """For a person only what needs one; for a file the whole story."""
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
