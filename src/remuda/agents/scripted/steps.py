"""What each kind of step does. A step tells through `Turn`, and looks up when the turn is cancelled."""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen
    from threading import Event
    from typing import Any

    from remuda.agents.scripted.conversation import Conversation

    Json = Any
    Steps = list[dict[str, Any]]
    Send = Callable[[Mapping[str, Any]], None]
    Request = Callable[[str, Mapping[str, Any]], Json]  # (method, params) -> the client's answer, or None if cancelled

CHUNK = 6  # words in one piece of a streamed text
OUTPUT_LIMIT = 64 * 1024
POLL = 0.02  # seconds between two looks whether the turn was cancelled


class Failed(Exception):
    """The turn is answered with an error."""

    def __init__(self, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.data = data


class Cancelled(Exception):
    """Somebody sent session/cancel."""


class Turn:
    """One prompt on its way to an answer."""

    def __init__(self, conversation: Conversation, prompt: str, send: Send, request: Request, cancelled: Event) -> None:
        self.conversation = conversation
        self.prompt = prompt
        self.cancelled = cancelled
        self.said: list[str] = []
        self.used: dict[str, int] = {}
        self.request = request
        self._send = send
        self.number = len(conversation.all("prompt"))
        self.tools = 0

    def update(self, kind: str, /, **fields: Json) -> None:
        params = {"sessionId": self.conversation.id, "update": {"sessionUpdate": kind, **fields}}
        self._send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def begin_tool(self, name: str, kind: str, arguments: Json) -> str:
        self.tools += 1
        call = f"call-{self.number}-{self.tools}"
        title = " ".join(arguments["command"]) if "command" in arguments else name
        self.update(
            "tool_call", toolCallId=call, name=name, title=title, kind=kind, status="in_progress", rawInput=arguments
        )
        return call

    def end_tool(self, call: str, result: str, *, failed: bool = False, raw: Json = None) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": result}}]
        fields = {"content": content} if raw is None else {"content": content, "rawOutput": raw}
        self.update("tool_call_update", toolCallId=call, status="failed" if failed else "completed", **fields)


def perform(turn: Turn, steps: Steps) -> None:
    for step in steps:
        if turn.cancelled.is_set():
            raise Cancelled
        kind = next(key for key in step if key in PERFORM)
        PERFORM[kind](turn, step)


def pieces(text: str) -> list[str]:
    """The text in streamable pieces that join to exactly it."""
    words = text.split(" ")
    groups = [" ".join(words[at : at + CHUNK]) for at in range(0, len(words), CHUNK)]
    return [group + " " for group in groups[:-1]] + groups[-1:]


def say(turn: Turn, step: Json) -> None:
    _say(turn, step["say"])


def _say(turn: Turn, text: str) -> None:
    turn.said.append(text)
    for piece in pieces(text):
        turn.update("agent_message_chunk", content={"type": "text", "text": piece})


def think(turn: Turn, step: Json) -> None:
    for piece in pieces(step["think"]):
        turn.update("agent_thought_chunk", content={"type": "text", "text": piece})


def recall(turn: Turn, step: Json) -> None:  # noqa: ARG001 - every step has the same shape
    seen = len(turn.conversation.all("prompt"))
    _say(turn, f"I have seen {seen} prompt{'' if seen == 1 else 's'} in this conversation.")


def run(turn: Turn, step: Json) -> None:
    from subprocess import DEVNULL, PIPE, STDOUT, Popen

    call = turn.begin_tool("run", "execute", {"command": step["run"]})
    try:
        process = Popen(step["run"], cwd=turn.conversation.cwd, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
    except OSError as error:
        return turn.end_tool(call, str(error), failed=True)
    output = _read_until_done(process, turn)
    code = process.wait()
    if turn.cancelled.is_set():
        turn.end_tool(call, output + "(cancelled)", failed=True)
        raise Cancelled
    shown = output if code == 0 else f"{output}(exit code {code})"
    return turn.end_tool(call, shown, failed=code != 0, raw={"output": output, "exit_code": code})


def spawn(turn: Turn, step: Json) -> None:
    from subprocess import DEVNULL, Popen

    call = turn.begin_tool("spawn", "execute", {"command": step["spawn"]})
    cwd = turn.conversation.cwd
    try:
        process = Popen(step["spawn"], cwd=cwd, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)
    except OSError as error:
        return turn.end_tool(call, str(error), failed=True)
    return turn.end_tool(call, f"pid {process.pid}", raw={"pid": process.pid})


def write(turn: Turn, step: Json) -> None:
    path, text = step["write"]["path"], step["write"]["text"]
    call = turn.begin_tool("write", "edit", {"path": path})
    root = os.path.realpath(turn.conversation.cwd)
    target = os.path.realpath(os.path.join(root, path))  # a link that leads out is outside too
    if os.path.commonpath((root, target)) != root:
        return turn.end_tool(call, f"{path} is outside of {root}; refused", failed=True)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return turn.end_tool(call, str(error), failed=True)
    return turn.end_tool(call, f"wrote {len(text)} characters to {path}")


def tool(turn: Turn, step: Json) -> None:
    told = step["tool"]
    arguments, result = told.get("arguments", {}), told.get("result", "")
    call = turn.begin_tool(told["name"], "other", arguments if isinstance(arguments, dict) else {"value": arguments})
    turn.end_tool(call, result if isinstance(result, str) else json.dumps(result), raw=result)


def call(turn: Turn, step: Json) -> None:
    told = step["call"]
    arguments = told.get("arguments", {})
    number = turn.begin_tool(told["name"], "other", arguments)
    servers = turn.conversation.servers
    server = servers.get(told.get("server", "remuda"))
    if server is None:
        return turn.end_tool(number, f"no such tool server; there are: {', '.join(servers) or 'none'}", failed=True)
    try:
        result, failed = server.call(told["name"], arguments)
    except OSError as error:
        result, failed = str(error), True
    _say(turn, f"{told['name']}: {result}\n")
    return turn.end_tool(number, result, failed=failed)


def ask(turn: Turn, step: Json) -> None:
    told = step["ask"]
    turn.tools += 1
    call = f"call-{turn.number}-{turn.tools}"
    wish = {"toolCallId": call, "name": told["tool"], "title": told["tool"], "rawInput": told.get("arguments", {})}
    wish["locations"] = [{"path": path} for path in told.get("paths", [])]
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Deny", "kind": "reject_once"},
    ]
    params = {"sessionId": turn.conversation.id, "toolCall": wish, "options": options}
    answer = turn.request("session/request_permission", params)
    if answer is None:
        raise Cancelled
    allowed = answer.get("outcome", {}).get("optionId") == "yes"
    perform(turn, step.get("do" if allowed else "otherwise", []))


def use(turn: Turn, step: Json) -> None:
    told = step["use"]
    tokens = {
        "inputTokens": told.get("input", 0),
        "outputTokens": told.get("output", 0),
        "cachedReadTokens": told.get("cache_read", 0),
        "cachedWriteTokens": told.get("cache_creation", 0),
    }
    for name, count in tokens.items():
        turn.used[name] = turn.used.get(name, 0) + count
    context = told.get("context", tokens["inputTokens"] + tokens["cachedReadTokens"] + tokens["outputTokens"])
    fields: dict[str, Json] = {"used": context, "size": told.get("window", 200_000)}
    call: dict[str, Json] = dict(tokens)
    if "cost_usd" in told:
        turn.conversation.spent += told["cost_usd"]
        fields["cost"] = {"amount": round(turn.conversation.spent, 9), "currency": "USD"}
        call["costUsd"] = told["cost_usd"]
    turn.update("usage_update", **fields, _meta={"remuda/call": call})


def hang(turn: Turn, step: Json) -> None:
    seconds = None if step["hang"] is True else step["hang"]
    if not step.get("deaf"):
        turn.cancelled.wait(seconds)
        return
    from threading import Event

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    think(turn, {"think": "Now deaf."})  # so that who waits for it knows from when on SIGTERM is in vain
    Event().wait(seconds)


def crash(turn: Turn, step: Json) -> None:  # noqa: ARG001
    how = step["crash"]
    if isinstance(how, int):
        os._exit(how)
    os.kill(os.getpid(), signal.Signals[how])


def fail(turn: Turn, step: Json) -> None:  # noqa: ARG001
    told = step["fail"] if isinstance(step["fail"], dict) else {"message": step["fail"]}
    data = {name: told[name] for name in ("kind", "retry_after") if name in told}
    raise Failed(told["message"], {"remuda/failure": data} if data else None)


def garbage(turn: Turn, step: Json) -> None:  # noqa: ARG001
    os.write(sys.stdout.fileno(), (step["garbage"] + "\n").encode())


def loop(turn: Turn, step: Json) -> None:
    for _ in range(step["loop"]["times"]):
        perform(turn, step["loop"]["do"])


def _read_until_done(process: Popen[bytes], turn: Turn) -> str:
    """All output up to the exit: not to the end of the pipe, which a grandchild may hold."""
    from select import select

    assert process.stdout
    pipe = process.stdout.fileno()
    output = b""
    while not turn.cancelled.is_set():
        over = process.poll() is not None  # asked first, so that what it wrote last is still read
        if select([pipe], [], [], 0 if over else POLL)[0] and (data := os.read(pipe, 65536)):
            output = (output + data)[-OUTPUT_LIMIT:]
        elif over:
            break
        elif select([pipe], [], [], 0)[0]:  # the pipe is closed, but the program goes on
            turn.cancelled.wait(POLL)
    if process.poll() is None:
        process.kill()
    process.stdout.close()
    return output.decode(errors="replace")


PERFORM: Mapping[str, Callable[[Turn, Json], None]] = {
    "say": say,
    "think": think,
    "run": run,
    "spawn": spawn,
    "write": write,
    "tool": tool,
    "call": call,
    "ask": ask,
    "use": use,
    "hang": hang,
    "crash": crash,
    "fail": fail,
    "garbage": garbage,
    "recall": recall,
    "loop": loop,
}
