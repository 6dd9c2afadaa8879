"""What happens to tool servers, as values: for the log, for `remuda gateway stats`, for whoever watches."""

from typing import Literal

from msgspec import Struct

Why = Literal["idle", "budget", "reload", "stopped"]


class ServerStarted(Struct, frozen=True):
    turn: int
    server: str
    seconds: float
    tools: int
    tokens: int


class ServerLeft(Struct, frozen=True):
    turn: int
    server: str
    why: Why
    idle_turns: int
    tokens: int  # of its list, which need no longer be in the context


class ServerDied(Struct, frozen=True):
    turn: int
    server: str
    detail: str


class ServerRefused(Struct, frozen=True):
    """It could not be started, or its tools are not those that were approved."""

    turn: int
    server: str
    detail: str


class ServerCalled(Struct, frozen=True):
    """Shapes only: what was said is nobody's affair but theirs."""

    turn: int
    server: str
    tool: str
    ok: bool
    seconds: float
    result_bytes: int


GatewayEvent = ServerStarted | ServerLeft | ServerDied | ServerRefused | ServerCalled


def in_words(event: GatewayEvent) -> str:
    match event:
        case ServerStarted():
            return f"turn {event.turn}: {event.server} started in {event.seconds:.2f} s, {event.tools} tools"
        case ServerLeft():
            idle = f" after {event.idle_turns} idle turns" if event.why == "idle" else f" ({event.why})"
            return f"turn {event.turn}: {event.server} left{idle}, {event.tokens} tokens of tools"
        case ServerDied():
            return f"turn {event.turn}: {event.server} died: {event.detail}"
        case ServerRefused():
            return f"turn {event.turn}: {event.server} refused: {event.detail}"
        case ServerCalled():
            how = "ok" if event.ok else "failed"
            return f"turn {event.turn}: {event.server}/{event.tool} {how} in {event.seconds:.3f} s"
