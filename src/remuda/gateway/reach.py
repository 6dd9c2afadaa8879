"""How a tool server is reached, with its secrets: found out anew for every start, and kept nowhere."""

import os
from collections.abc import Callable
from pathlib import Path

from remuda.agents import strays
from remuda.agents.process import sweep
from remuda.gateway.config import Configured
from remuda.gateway.connection import Open
from remuda.gateway.launchers import direct
from remuda.gateway.link_http import Remote, open_http, open_sse
from remuda.gateway.link_stdio import Program, open_stdio

MARK = "gateway"


class Reach:
    def __init__(self, configured: Callable[[], Configured], mark: str) -> None:
        self._configured, self._mark = configured, mark
        self._starts = 0

    async def __call__(self, name: str) -> Open:
        configured = self._configured()
        settings, resolved = configured.servers[name], configured.resolve(name)
        self._starts += 1
        if settings.kind == "stdio":
            folder = configured.origins.get(name, configured.path).parent
            argv = await direct(settings.command, resolved.env)
            program = Program(
                name,
                argv,
                _expanded(folder, settings.cwd),
                resolved.env,
                f"{self._mark}/{name}/{self._starts}",
                resolved.masked,
            )
            return lambda hear, lost: open_stdio(program, hear, lost)
        remote = Remote(name, settings.url, resolved.headers, resolved.credentials, resolved.masked)
        if settings.kind == "sse":
            return lambda hear, lost: open_sse(remote, hear, lost)
        return lambda hear, lost: open_http(remote, hear, lost)


def _expanded(folder: Path, cwd: str) -> Path:
    return folder / Path(cwd).expanduser()


def own_mark() -> str:
    """Begins the marks of this process's servers, and of no other's: a number comes back, but not at the same time."""
    return f"{MARK}/{os.getpid()}.{_since(os.getpid())}"


def sweep_orphans() -> list[int]:
    """End what gateways that were killed left behind. Those of gateways that live are theirs. Blocks."""
    owners = {mark.split("/")[1] for _, mark in strays.marked() if mark.startswith(f"{MARK}/") and mark.count("/") > 1}
    return [pid for owner in sorted(owners) if not _alive(owner) for pid in sweep(f"{MARK}/{owner}/")]


def _alive(owner: str) -> bool:
    pid, _, since = owner.partition(".")
    return pid.isdigit() and _since(int(pid)) == since


def _since(pid: int) -> str:
    """When it was started, in the kernel's own count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
