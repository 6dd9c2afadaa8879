"""The gateway: what it adds to a call, and how many calls a second go through it.

One client of bare bytes speaks to each target in turn over the same pipes, and behind each stands the same small server
that only echoes. The raw pipe is the floor: the client and the server with nothing between them. The peers are a proxy
made with fastmcp and lazy-mcp, each started as its own documentation says.
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
from bench.peers import python_of

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


class Target:
    """A program that speaks MCP on its pipes, ready to be called."""

    def __init__(self, name: str, argv: Sequence[str], folder: Path, call: dict[str, Any]) -> None:
        self.name, self._call = name, call
        self._number = 0
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")},
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
        (folder / "gateway.toml").write_text(f"[gateway.servers.echo]\ncommand = {json.dumps(server)}\n")
        (folder / "lazy.json").write_text(lazy_settings(server))
        lazy = {
            "name": "invoke_command",
            "arguments": {"server": "echo", "command_name": "echo", "parameters": given},
        }
        starts: dict[str, tuple[list[str], dict[str, Any]]] = {
            "raw": (server, plain),
            "ours": (
                [sys.executable, "-P", "-m", "remuda.cli.entry", "gateway", "serve"],
                {**plain, "name": "echo__echo"},
            ),
            "fastmcp": ([str(peers), "-c", FASTMCP, *server], plain),
            "lazy-mcp": ([str(peers.parent / "lazy-mcp"), "--config", str(folder / "lazy.json")], lazy),
        }
        found: dict[str, Target] = {}
        for name, (argv, call) in starts.items():
            found[name] = Target(name, argv, folder, call)
            open_targets.callback(found[name].close)
        yield found


def lazy_settings(server: Sequence[str]) -> str:
    entry = {"name": "echo", "description": "echoes", "command": list(server)}
    return json.dumps({"servers": [entry]})


def figures() -> list[Figure]:
    taken: dict[str, list[list[float]]] = {}
    flow: dict[str, list[float]] = {}
    with targets() as found:
        for _ in range(ROUNDS):
            for name, target in found.items():
                taken.setdefault(name, []).append(target.latencies())
                flow.setdefault(name, []).append(target.per_second(MANY // 10 if name == "fastmcp" else MANY))
    middle = {name: [median(each) for each in rounds] for name, rounds in taken.items()}
    late = {name: [statistics.quantiles(each, n=20)[-1] for each in rounds] for name, rounds in taken.items()}
    return [added("p50", middle, 0.3), added("p95", late, None), calls(flow), *gateway_intent.figures()]


def added(what: str, taken: dict[str, list[float]], goal: float | None) -> Figure:
    """Milliseconds on top of the raw pipe, round by round."""
    on_top = {name: [(a - b) / 1000 for a, b in zip(each, taken["raw"], strict=True)] for name, each in taken.items()}
    others = ", ".join(f"{name} {median(on_top[name]):.2f} ms" for name in on_top if name not in ("raw", "ours"))
    ours = median(on_top["ours"])
    peer = f"raw pipe {median(taken['raw']):.0f} µs; added by {others}"
    told = f"≤ {goal} ms" if goal else "less than each peer"
    least = min(median(each) for name, each in on_top.items() if name not in ("raw", "ours"))
    return Figure(f"gateway.added_{what}", ours, "ms", spread(on_top["ours"]), peer, told, ours <= (goal or least))


def calls(flow: dict[str, list[float]]) -> Figure:
    ratios = [ours / theirs for ours, theirs in zip(flow["ours"], flow["fastmcp"], strict=True)]
    others = ", ".join(f"{name} {median(each):,.0f}" for name, each in flow.items() if name != "ours")
    peer = f"calls/s of others: {others}; {median(ratios):.0f} × the fastmcp proxy ({spread(ratios)})"
    value, goal = median(flow["ours"]), "≥ 10 × fastmcp"
    return Figure("gateway.calls_at_32", value, "calls/s", spread(flow["ours"]), peer, goal, median(ratios) >= 10)
