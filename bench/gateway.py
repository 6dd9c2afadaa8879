"""The gateway: what it adds to a call, and how many calls a second go through it.

One client of bare bytes speaks to each target in turn over the same pipes, and behind each stands the same small server
that only echoes. The raw pipe is the floor: the client and the server with nothing between them. The relay is what any
program between them costs on this loop: it carries the bytes from one pipe to the other and reads none of them. The
peers are a proxy made with fastmcp, lazy-mcp and mcporter, each started as its own documentation says.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import gateway_intent
from bench.figure import Figure, median, spread
from bench.peers import programs_of, python_of

QUIETLY: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
ROUNDS = 5
CALLS = 400  # one after the other, in each round
AT_ONCE = 32
MANY = 3000  # with so many in flight; for the slow a tenth of it
ECHO = """
import json, sys
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
def reply(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "echo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "description": "Says it again.", "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return {}
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": reply(message)}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
        sys.stdout.buffer.flush()
"""
FASTMCP = """
import sys
from fastmcp.server import create_proxy
config = {"mcpServers": {"echo": {"command": sys.argv[1], "args": sys.argv[2:]}}}
create_proxy(config, name="peer").run(show_banner=False)
"""


RELAY = """
import asyncio, os, sys, uvloop
async def main():
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    class Client(asyncio.Protocol):
        def data_received(self, data): to_server.write(data)
        def connection_lost(self, error): over.set_result(None)
    class Server(asyncio.SubprocessProtocol):
        def pipe_data_received(self, number, data): to_client.write(data)
    server, _ = await loop.subprocess_exec(Server, *sys.argv[1:])
    to_server = server.get_pipe_transport(0)
    to_client, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(1, "wb", 0))
    await loop.connect_read_pipe(Client, os.fdopen(0, "rb", 0))
    await over
uvloop.run(main())
"""
LIMITS = ("raw", "relay")
SLOW = ("fastmcp", "mcporter")


class Target:
    """A program that speaks MCP on its pipes, ready to be called."""

    def __init__(self, name: str, argv: Sequence[str], folder: Path, call: dict[str, Any]) -> None:
        self.name, self._call = name, call
        self._number = 0
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            env=surroundings(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        said = json.dumps(self.ask("tools/call", self._call))
        assert "sixteen letters!" in said, f"{name} does not echo: {said[:500]}"

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = self._read()
            if answer.get("id") == self._number and "method" not in answer:
                return answer

    def latencies(self) -> list[float]:
        taken: list[float] = []
        for _ in range(CALLS):
            began = time.perf_counter()
            self.ask("tools/call", self._call)
            taken.append((time.perf_counter() - began) * 1e6)
        return taken

    def per_second(self, calls: int) -> float:
        """As many in flight as allowed, until all are answered."""
        began, sent, answered = time.perf_counter(), 0, 0
        while answered < calls:
            while sent < calls and sent - answered < AT_ONCE:
                self._number += 1
                sent += 1
                self._send({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": self._call})
            answered += "method" not in self._read()
        return calls / (time.perf_counter() - began)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"{self.name} went away"
        read: dict[str, Any] = json.loads(line)
        return read


@contextmanager
def targets() -> Iterator[dict[str, Target]]:
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as made, ExitStack() as open_targets:
        folder = Path(made)
        echo = folder / "echo.py"
        echo.write_text(ECHO)
        server = [sys.executable, "-I", "-S", str(echo)]
        peers = python_of("gateway")
        given = {"text": "sixteen letters!"}
        plain = {"name": "echo", "arguments": given}
        namespaced = {**plain, "name": "echo__echo"}
        (folder / "gateway.toml").write_text(f"[gateway.servers.echo]\ncommand = {json.dumps(server)}\n")
        (folder / "lazy.json").write_text(lazy_settings(server))
        (folder / "mcporter.json").write_text(mcporter_settings(server))
        mcporter = [str(programs_of("gateway") / "mcporter"), "--config", str(folder / "mcporter.json")]
        lazy = {
            "name": "invoke_command",
            "arguments": {"server": "echo", "command_name": "echo", "parameters": given},
        }
        starts: dict[str, tuple[list[str], dict[str, Any]]] = {
            "raw": (server, plain),
            "relay": ([sys.executable, "-c", RELAY, *server], plain),
            "ours": ([sys.executable, "-P", "-m", "remuda.cli.entry", "gateway", "serve"], namespaced),
            "fastmcp": ([str(peers), "-c", FASTMCP, *server], plain),
            "lazy-mcp": ([str(peers.parent / "lazy-mcp"), "--config", str(folder / "lazy.json")], lazy),
            "mcporter": ([*mcporter, "serve", "--stdio"], namespaced),
        }
        stop = [*mcporter, "daemon", "stop"]
        open_targets.callback(lambda: subprocess.run(stop, env=surroundings(folder), **QUIETLY))
        found: dict[str, Target] = {}
        for name, (argv, call) in starts.items():
            found[name] = Target(name, argv, folder, call)
            open_targets.callback(found[name].close)
        yield found


def lazy_settings(server: Sequence[str]) -> str:
    entry = {"name": "echo", "description": "echoes", "command": list(server)}
    return json.dumps({"servers": [entry]})


def mcporter_settings(server: Sequence[str]) -> str:
    entry = {"command": server[0], "args": list(server[1:]), "lifecycle": "keep-alive"}
    return json.dumps({"mcpServers": {"echo": entry}, "imports": []})


def surroundings(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}


def figures() -> list[Figure]:
    taken: dict[str, list[list[float]]] = {}
    flow: dict[str, list[float]] = {}
    with targets() as found:
        for _ in range(ROUNDS):
            for name, target in found.items():
                taken.setdefault(name, []).append(target.latencies())
                flow.setdefault(name, []).append(target.per_second(MANY // 10 if name in SLOW else MANY))
    middle = {name: [median(each) for each in rounds] for name, rounds in taken.items()}
    late = {name: [statistics.quantiles(each, n=20)[-1] for each in rounds] for name, rounds in taken.items()}
    return [added("p50", middle, 0.3), added("p95", late, None), calls(flow), *gateway_intent.figures()]


def added(what: str, taken: dict[str, list[float]], goal: float | None) -> Figure:
    """Milliseconds on top of the raw pipe, round by round."""
    on_top = {name: [(a - b) / 1000 for a, b in zip(each, taken["raw"], strict=True)] for name, each in taken.items()}
    others = ", ".join(f"{name} {median(each):.2f} ms" for name, each in on_top.items() if name not in ("raw", "ours"))
    ours = median(on_top["ours"])
    peer = f"raw pipe {median(taken['raw']):.0f} µs; added by {others}, of which the relay reads nothing"
    told = f"≤ {goal} ms" if goal else "less than each peer"
    least = min(median(each) for name, each in on_top.items() if name not in (*LIMITS, "ours"))
    return Figure(f"gateway.added_{what}", ours, "ms", spread(on_top["ours"]), peer, told, ours <= (goal or least))


def calls(flow: dict[str, list[float]]) -> Figure:
    ratios = [ours / theirs for ours, theirs in zip(flow["ours"], flow["fastmcp"], strict=True)]
    others = ", ".join(f"{name} {median(each):,.0f}" for name, each in flow.items() if name != "ours")
    peer = f"calls/s of others: {others}; {median(ratios):.0f} × the fastmcp proxy ({spread(ratios)})"
    value, goal = median(flow["ours"]), "≥ 10 × fastmcp"
    return Figure("gateway.calls_at_32", value, "calls/s", spread(flow["ours"]), peer, goal, median(ratios) >= 10)
