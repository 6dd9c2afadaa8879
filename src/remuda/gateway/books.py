"""What the gateway keeps out of the context, counted as it happens: the clock, the servers, the tokens. Pure.

Held against each other at every turn: what the lists of tools cost with the servers that are listed now, what they
would cost if nobody ever left, and what a client without a gateway would pay that has all of them from the start. The
sum over the turns is what a conversation pays, for it is sent again with each.
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
    note: str = ""  # what went wrong, if it did not run since


class Books(Struct):
    turn: int = 0
    servers: dict[str, Line] = {}
    listed: int = 0  # tokens of the tools that a client sees now
    most: int = 0  # at any time
    sent: int = 0  # tokens of lists, summed over the turns
    without: int = 0  # the same if nobody had ever left
    known: int = 0  # tokens of all servers whose tools are known, started or not
    direct: int = 0  # summed over the turns, for a client that has all of them and no gateway

    def list(self, tokens: int, known: int = 0) -> None:
        """What the clients see from now on."""
        self.listed, self.most, self.known = tokens, max(self.most, tokens), known

    def add(self, event: GatewayEvent) -> None:
        self._pass_turns(event.turn)
        line = self.servers.setdefault(event.server, Line())
        match event:
            case ServerStarted():
                line.tools, line.tokens, line.running, line.note = event.tools, event.tokens, True, ""
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
        self.direct += passed * self.known
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
    """The seed of it all: what is listed now, against everything that was ever started and all that there is."""
    rows: list[tuple[str, ...]] = [("server", "tools", "tokens", "starts", "calls", "failed", "last used", "")]
    for name, line in sorted(books.servers.items()):
        figures = (line.tools, line.tokens, line.starts, line.calls, line.failures, line.last_turn or "-")
        rows.append((name, *map(str, figures), _state(line)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"{name}: {line.note}" for name, line in sorted(books.servers.items()) if _state(line) == "failed"]
    lines.append(f"turn {books.turn}: {books.listed} tokens of tools listed, {books.ever} if nobody ever left")
    lines.append(f"saved now {books.saved_percent} %; over all turns {max(0, books.without - books.sent)} tokens")
    if books.known > books.ever:
        over_all = max(0, books.direct - books.sent)
        lines.append(f"every server that is known has {books.known}; against that {over_all} were saved over all turns")
    return "\n".join(lines)


def _state(line: Line) -> str:
    if line.running:
        return "running"
    return "failed" if line.note else "idle" if line.idled else "stopped"
