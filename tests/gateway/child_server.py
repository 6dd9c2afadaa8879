"""A tool server that does as it is told: its tools do well or badly, and the variable CHILD says how it behaves itself.

It stands on the standard library alone and starts in milliseconds: `python -I -S child_server.py`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

CHILD: dict[str, Any] = json.loads(os.environ.get("CHILD", "{}"))
ANY = {"type": "object", "properties": {}}
NAMES = [
    "echo",
    "fail",
    "error",
    "image",
    "structured",
    "count",
    "wait",
    "crash",
    "big",
    "noise",
    "twice",
    "ask",
    "env",
]
NAMES += ["grow", "log", "pid", "count_calls", "touch", "watched", "write", "heard"]
WRITING = threading.Lock()
calls = 0
asked: dict[Any, Any] = {}
heard: list[Any] = []  # answers to questions that `write` asked
watched: set[str] = set()


def write(line: str) -> None:
    with WRITING:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def tools() -> list[dict[str, Any]]:
    names = CHILD.get("tools") or NAMES
    names = [f"tool{number}" for number in range(CHILD["many"])] if "many" in CHILD else names
    described = CHILD.get("description", "does")
    return [{"name": name, "description": f"{described} {name}", "inputSchema": ANY} for name in names]


def listed(params: dict[str, Any]) -> dict[str, Any]:
    if path := CHILD.get("lists"):  # how often it was asked
        with open(path, "a") as file:
            file.write(".")
    every, size = tools(), CHILD.get("page", 10_000_000)
    start = int(params.get("cursor") or 0)
    page: dict[str, Any] = {"tools": every[start : start + size]}
    if CHILD.get("endless"):
        return {"tools": [{**every[0], "name": f"{every[0]['name']}{start or ''}"}], "nextCursor": str(start + 1)}
    return page | ({"nextCursor": str(start + size)} if start + size < len(every) else {})


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(number: Any, name: str, given: dict[str, Any], meta: dict[str, Any]) -> Any:
    plain = {
        "echo": lambda: text(given.get("text", "")),
        "fail": lambda: text("it went wrong", isError=True),
        "image": lambda: {"content": [{"type": "image", "data": "cG5n", "mimeType": "image/png"}]},
        "structured": lambda: text("{}", structuredContent={"a": [1, 2.50]}, _meta={"own": 1}),
        "big": lambda: text("x" * int(given["size"])),
        "env": lambda: text(json.dumps(dict(os.environ))),
        "pid": lambda: text(str(os.getpid())),
        "count_calls": lambda: text(str(calls)),
        "heard": lambda: text(json.dumps(heard[-100:])),
        "watched": lambda: text(" ".join(sorted(watched))),
    }
    return plain[name]() if name in plain else misbehave(number, name, meta)  # type: ignore[no-untyped-call]


def misbehave(number: Any, name: str, meta: dict[str, Any]) -> Any:
    match name:
        case "count":
            for step in (1, 2, 3):
                params = {"progressToken": meta.get("progressToken"), "progress": step, "total": 3, "message": "so far"}
                send(method="notifications/progress", params=params)
        case "crash":
            sys.stderr.write("the disk is on fire\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        case "touch":
            for uri in sorted(watched):
                send(method="notifications/resources/updated", params={"uri": uri})
        case "noise":
            write("INFO: serving")
            write('{"half": ')
        case "twice":
            send(id=number, result=text("once"))
        case "log":
            send(method="notifications/message", params={"level": "info", "data": "hello"})
        case "grow":
            CHILD["tools"] = [*(CHILD.get("tools") or NAMES), "grown"]
            send(method="notifications/tools/list_changed")
    return text(f"you called {name}")


def modern(number: Any, method: str, params: dict[str, Any]) -> bool:
    """A server of the newer era alone: every request must say who asks."""
    key = "io.modelcontextprotocol/protocolVersion"
    if (params.get("_meta") or {}).get(key) != "2026-07-28":
        data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        send(id=number, error={"code": -32022, "message": "Unsupported protocol version", "data": data})
        return False
    if method == "server/discover":
        send(id=number, result={"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        return False
    return True


def reply(message: dict[str, Any]) -> None:
    global calls
    number, method, params = message["id"], message["method"], message.get("params") or {}
    if method in CHILD.get("never", ()) or (CHILD.get("modern") and not modern(number, method, params)):
        return
    match method:
        case "initialize":
            can = {"tools": {"listChanged": True}, "logging": {}, "prompts": {}, "resources": {"subscribe": True}}
            info = {"name": "child", "version": "1"}
            send(
                id=number,
                result={"protocolVersion": params["protocolVersion"], "capabilities": can, "serverInfo": info},
            )
        case "tools/list":
            send(id=number, result=listed(params))
        case "prompts/list":
            send(id=number, result={"prompts": [{"name": "greet", "description": "says hello"}]})
        case "prompts/get":
            content = {"type": "text", "text": f"hello from {params['name']}"}
            send(id=number, result={"messages": [{"role": "user", "content": content}]})
        case "resources/list":
            send(id=number, result={"resources": [{"uri": CHILD.get("uri", "mem://one"), "name": "one"}]})
        case "resources/read" | "resources/subscribe" | "resources/unsubscribe":
            send(id=number, result=about_resource(method, params["uri"]))
        case "tools/call":
            calls += 1
            answer_call(number, params)
        case _ if method == "logging/setLevel":
            send(id=number, result={})
        case _:
            send(id=number, error={"code": -32601, "message": f"no {method}"})


def about_resource(method: str, uri: str) -> dict[str, Any]:
    if method == "resources/read":
        return {"contents": [{"uri": uri, "text": "contents"}]}
    (watched.add if method == "resources/subscribe" else watched.discard)(uri)
    return {}


def answer_call(number: Any, params: dict[str, Any]) -> None:
    name, given, meta = params["name"], params.get("arguments") or {}, params.get("_meta") or {}
    match name:
        case "error":
            send(id=number, error={"code": -32000, "message": "no such table"})
        case "wait":
            sys.stderr.write(f"waiting {number}\n")
            sys.stderr.flush()
        case "write":  # word for word; ID stands for the number of this very call
            for line in given["lines"] * given.get("times", 1):
                write(line.replace("ID", str(number)))
            if given.get("answers", True):
                send(id=number, result=text("written"))
        case "ask":
            asked["question"] = number
            send(id="question", method=given.get("method", "roots/list"), params=given.get("params", {}))
        case _:
            send(id=number, result=call(number, name, given, meta))


def main() -> None:
    if said := CHILD.get("stderr"):
        sys.stderr.write(said + "\n")
        sys.stderr.flush()
    if "exit" in CHILD:
        sys.exit(CHILD["exit"])
    if path := CHILD.get("starts"):
        with open(path, "a") as file:
            file.write(f"{os.getpid()}\n")
    if path := CHILD.get("leaves"):  # somebody who does not end with it
        left = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
        with open(path, "a") as file:
            file.write(f"{left.pid}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message and not asked:
            heard.append(message)
        elif "method" not in message:
            send(id=asked.pop("question"), result=text(json.dumps(message.get("result", message.get("error")))))
        elif "id" in message:
            reply(message)
        elif path := CHILD.get("told"):
            with open(path, "a") as file:
                file.write(line)


main()
