"""Record what the real Claude Code and Codex say, for tests that have no program at hand.

    PYTHONPATH=tests python tests/transcripts/record.py [claude] [codex] [claude.tour]

Each story runs live against the scripted model and leaves `<program>.<story>.jsonl`. Where it ran is taken out of the
lines, and so are the long lists of what the program offers: they tell of a machine and a version, not of the protocol.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from adapters.agent_kit import Recorder
from live.native_kit import NATIVE, Stage, script, stage
from remuda.agents import Answered, Asked, Wire
from waiting import until

HERE = Path(__file__).parent

TOUR = (
    {"think": "Hm."},
    {"say": "I run a command."},
    {"shell": "echo one"},
    {"write": {"path": "notes.txt", "text": "alpha\n"}},
    {"say": "All done."},
)
FAULTS: tuple[tuple[object, ...], ...] = (
    ({"error": 401},),
    ({"error": 429, "retry_after": 0.2, "times": 1}, {"say": "At last."}),
    ({"error": 429},),
    ({"error": 500},),
    ({"error": 529},),
    ({"context_exceeded": True},),
    ({"refuse": "I will not."},),
    ({"say": "Half a sent"}, {"cut": True}),
)


async def tour(it: Stage) -> None:
    async with it.session() as session:
        await session.prompt(script(*TOUR))
        await session.prompt(script({"say": "Again."}))


async def faults(it: Stage) -> None:
    async with it.session() as session:
        for steps in FAULTS:
            await session.prompt(script(*steps))


async def interrupted(it: Stage) -> None:
    async with it.session() as session:
        turn = asyncio.create_task(session.prompt(script({"say": "Working. "}, {"hang": True})))
        await until(lambda: bool(it.heard.text()))
        await session.cancel()
        await turn
        turn = asyncio.create_task(session.prompt(script({"shell": "sleep 0.1; tail -f /dev/null"})))
        await until(lambda: bool(it.heard.tools()))
        await session.cancel()
        await turn


async def denied(it: Stage) -> None:
    async def ask(_: Asked) -> Answered:
        return Answered(allow=False, why="Not in here.")

    async with it.session(ask=ask) as session:
        await session.prompt(script({"write": {"path": "notes.txt", "text": "alpha\n"}}, {"say": "So be it."}))


async def resumed(it: Stage) -> None:
    async with it.session() as first:
        await first.prompt(script({"say": "Before."}))
        await first.end(gentle=True)  # Claude Code keeps what was spent only when it is let go in peace
    it.heard.updates.clear()
    async with it.session(resume=first.ref) as second:
        await second.prompt(script({"recall": True}))


HOOKS = {
    "SessionStart": "echo hello",
    "UserPromptSubmit": "grep -q unheard && { echo 'not this prompt' >&2; exit 2; }; exit 0",
    "PreToolUse": "grep -q forbidden && { echo 'not this word' >&2; exit 2; }; exit 0",
    "PostToolUse": "exit 1",
}
SAYS_NO = (
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'
)


async def hooked(it: Stage) -> None:
    hooks: dict[str, list[dict[str, Any]]] = {
        event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in HOOKS.items()
    }
    hooks["PreToolUse"].append({"matcher": "Write", "hooks": [{"type": "command", "command": f"echo '{SAYS_NO}'"}]})
    async with it.session(options={"settings": json.dumps({"hooks": hooks})}) as session:
        writes = {"write": {"path": "notes.txt", "text": "alpha\n"}}
        await session.prompt(script({"shell": "echo one"}, {"shell": "echo forbidden"}, writes, {"say": "All done."}))
        await session.prompt(script({"say": "unheard"}))
        await session.prompt(script({"say": "Again."}))


STORIES: Mapping[str, Callable[[Stage], Awaitable[None]]] = {
    each.__name__: each for each in (tour, faults, interrupted, denied, resumed)
}
OF_ONE: Mapping[str, Mapping[str, Callable[[Stage], Awaitable[None]]]] = {"claude": {"hooked": hooked}}


async def record(name: str, only: str) -> None:
    for title, story in {**STORIES, **OF_ONE.get(name, {})}.items():
        if only and title != only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            async with stage(name, Path(folder)) as it:
                await story(it)
                address = it.model.url.removeprefix("http://")
                places = {folder: "/there", folder.replace("/", "-"): "-there", address: "127.0.0.1:1"}
                lines = list(told(it.heard, places))
        (HERE / f"{name}.{title}.jsonl").write_text("\n".join([*lines, ""]))


def told(heard: Recorder, places: Mapping[str, str]) -> Iterable[str]:
    for update in heard.updates:
        if isinstance(update, Wire) and update.side != "stderr" and (line := slim(update.line)):
            text = json.dumps({"side": update.side, "line": line})
            for place, instead in places.items():
                text = text.replace(place, instead)
            yield text


# What a line of each kind keeps. Other kinds are kept whole, or left out if they tell of the machine alone.
KEEPS: Mapping[str, tuple[str, ...]] = {
    "init": ("type", "subtype", "session_id", "model", "permissionMode", "mcp_servers"),
    "thread": ("id",),
}
OF_THE_MACHINE = ("remoteControl/status/changed", "configWarning", "thread/started", "deprecationNotice")


def slim(line: str) -> str:
    message: dict[str, Any] = json.loads(line)
    if message.get("method") in OF_THE_MACHINE:
        return ""
    if message.get("subtype") == "init":
        message = _only(message, "init")
    if message.get("type") == "control_response" and message["response"].get("request_id") == "1":
        message["response"]["response"] = {}
    result = message.get("result")
    if isinstance(result, dict) and "codexHome" in result:
        message["result"] = {}
    if isinstance(result, dict) and "thread" in result:
        message["result"] = {"thread": _only(result["thread"], "thread"), "model": result.get("model")}
    return json.dumps(message)


def _only(message: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key in KEEPS[kind]}


if __name__ == "__main__":
    for each in sys.argv[1:] or NATIVE:
        program, _, only = each.partition(".")
        asyncio.run(record(program, only))
