"""What the gateway keeps out of the context, counted as it happens: the clock, the servers, the tokens. Pure.

Held against each other at every turn: what the lists of tools cost with the servers that are listed now, and what they
would cost if nobody ever left. The sum over the turns is what a conversation pays, for it is sent again with each.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from remuda.gateway.events import GatewayEvent, ServerCalled, ServerDied, ServerLeft, ServerRefused, ServerStarted
from remuda.gateway.metatools import TOKENS


class Line(Struct):
    """One server's."""

    tools: int = 0
    tokens: int = 0
    starts: int = 0
    calls: int = 0
    failures: int = 0
    deaths: int = 0
    idled: int = 0  # how often it left for idleness
    last_turn: int = 0
    running: bool = False
    note: str = ""  # what went wrong last


class Books(Struct):
    turn: int = 0
    servers: dict[str, Line] = {}
    listed: int = 0  # tokens of the tools that a client sees now
    most: int = 0  # at any time
    sent: int = 0  # tokens of lists, summed over the turns
    without: int = 0  # the same if nobody had ever left

    def list(self, tokens: int) -> None:
        """What the clients see from now on."""
        self.listed, self.most = tokens, max(self.most, tokens)

    def add(self, event: GatewayEvent) -> None:
        self._pass_turns(event.turn)
        line = self.servers.setdefault(event.server, Line())
        match event:
            case ServerStarted():
                line.tools, line.tokens, line.running = event.tools, event.tokens, True
                line.starts += 1
            case ServerLeft():
                line.running = False
                line.idled += event.why == "idle"
            case ServerDied():
                line.running, line.note = False, event.detail
                line.deaths += 1
            case ServerRefused():
                line.note = event.detail
            case ServerCalled():
                line.calls += 1
                line.failures += not event.ok
                line.last_turn = event.turn

    def _pass_turns(self, turn: int) -> None:
        """What was listed until now was sent with each turn since."""
        passed = turn - self.turn
        self.sent += passed * (TOKENS + self.listed)
        self.without += passed * (TOKENS + self.ever)
        self.turn = turn

    @property
    def ever(self) -> int:
        return sum(line.tokens for line in self.servers.values())

    @property
    def saved_percent(self) -> int:
        return round(100 * (1 - self.listed / self.ever)) if self.ever else 0


def to_json(books: Books) -> Mapping[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(books)
    return {**built, "own_tokens": TOKENS, "ever": books.ever, "saved_percent": books.saved_percent}


def table(books: Books) -> str:
    """The seed of it all: what is listed now, against everything that was ever started."""
    rows = [("server", "tools", "tokens", "starts", "calls", "last used", "")]
    for name, line in sorted(books.servers.items()):
        state = "running" if line.running else "idle" if line.idled else "stopped"
        rows.append(
            (name, str(line.tools), str(line.tokens), str(line.starts), str(line.calls), str(line.last_turn), state)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append(f"turn {books.turn}: {books.listed} tokens of tools listed, {books.ever} if nobody ever left")
    lines.append(f"saved now {books.saved_percent} %; over all turns {max(0, books.without - books.sent)} tokens")
    return "\n".join(lines)
