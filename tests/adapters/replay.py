"""Play a recorded conversation with a real program to the pure half of its backend."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from remuda.agents import Hook, ModelCall, Retry, Text, Thought, ToolCall, TurnResult, Update, claude_codec, codex_codec
from remuda.agents.claude_wire import Result, decode
from remuda.agents.codex_codec import Opened, Params, read
from remuda.agents.jsonrpc import Notice, RpcResult
from remuda.agents.jsonrpc import decode as decode_rpc

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"


@dataclass
class Heard:
    updates: list[Update] = field(default_factory=list)
    turns: list[TurnResult] = field(default_factory=list)

    def text(self) -> str:
        return "".join(each.text for each in self.updates if isinstance(each, Text))

    def thoughts(self) -> str:
        return "".join(each.text for each in self.updates if isinstance(each, Thought))

    def tools(self) -> list[tuple[str, str]]:
        return [(each.name, each.status) for each in self.updates if isinstance(each, ToolCall)]

    def calls(self) -> list[ModelCall]:
        return [each for each in self.updates if isinstance(each, ModelCall)]

    def hooks(self) -> list[Hook]:
        return [each for each in self.updates if isinstance(each, Hook)]

    def retries(self) -> list[Retry]:
        return [each for each in self.updates if isinstance(each, Retry)]

    def sums(self) -> tuple[int, int, int]:
        used = [call.usage for call in self.calls()]
        return (
            sum(each.input_tokens for each in used),
            sum(each.output_tokens for each in used),
            sum(each.cache_read_tokens for each in used),
        )


def recorded(name: str) -> Iterable[tuple[str, str]]:
    for line in (TRANSCRIPTS / f"{name}.jsonl").read_text().splitlines():
        each = json.loads(line)
        yield each["side"], each["line"]


def replay_claude(name: str, reading: claude_codec.Reading | None = None) -> Heard:
    reading = reading or claude_codec.Reading()
    heard = Heard()
    for side, line in recorded(name):
        said = decode(line) if side == "agent" else None
        if isinstance(said, Result):
            turn, updates = reading.end_turn(said, now=0)
            heard.turns.append(turn)
            heard.updates.extend(updates)
        elif said:
            heard.updates.extend(reading.update(said))
    return heard


def replay_codex(name: str) -> Heard:
    reading = codex_codec.Reading()
    heard = Heard()
    for side, line in recorded(name):
        match decode_rpc(line) if side == "agent" else None:
            case RpcResult(result=result) if b'"thread"' in bytes(result):
                opened = read(result, Opened)
                reading.thread, reading.model = opened.thread.id, opened.model
            case Notice(method="turn/completed", params=params):
                turn = read(params, Params).turn
                assert turn is not None
                ended, updates = reading.end_turn(turn)
                heard.turns.append(ended)
                heard.updates.extend(updates)
            case Notice(method=method, params=params):
                heard.updates.extend(reading.update(method, read(params, Params)))
    return heard
