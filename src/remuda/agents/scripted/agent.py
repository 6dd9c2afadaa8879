"""The scripted agent's side of the protocol.

The main thread serves one request after the other. A second thread reads stdin, so that a cancel is seen in the
middle of a turn and the end of stdin ends the process.
"""

from __future__ import annotations

import json
import os
import sys
from _queue import Empty, SimpleQueue  # `queue` without the rest of that module
from threading import Event, Thread

from remuda.agents.scripted import conversation, playbook, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Json = Any

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
NOT_FOUND = -32002
INTERNAL_ERROR = -32603
PARSE_ERROR = -32700


class Refusal(Exception):
    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def send(message: Mapping[str, Json]) -> None:
    """Straight to the pipe: a crash right after must not swallow it."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


class Agent:
    def __init__(self, book: str, memory: str) -> None:
        self._book_path = book
        self._memory = memory
        self._book: dict[str, Json] = {}
        self._conversations: dict[str, conversation.Conversation] = {}
        self.cancelled = Event()
        self.answers: SimpleQueue[Json] = SimpleQueue()
        self._asked = 0
        self.methods: Mapping[str, Callable[[Json], Json]] = {
            "initialize": self.initialize,
            "session/new": self.new,
            "session/load": self.load,
            "session/resume": self.resume,
            "session/prompt": self.prompt,
        }

    def initialize(self, params: Json) -> Json:  # noqa: ARG002
        return {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": True,
                "sessionCapabilities": {"resume": {}},
                "mcpCapabilities": {"http": True},
            },
            "agentInfo": {
                "name": "remuda-scripted",
                "title": "Scripted agent (follows a playbook, not a model)",
                "version": "1",
            },
            "authMethods": [],
        }

    def new(self, params: Json) -> Json:
        self._read_book()
        begun = conversation.begin(self._memory, params["cwd"])
        begun.use(params.get("mcpServers", []))
        self._conversations[begun.id] = begun
        return {"sessionId": begun.id}

    def resume(self, params: Json) -> Json:
        self._read_book()
        name = params["sessionId"]
        found = conversation.find(self._memory, name, params["cwd"])
        if found is None:
            raise Refusal(NOT_FOUND, f"no conversation {name} in {self._memory}")
        found.use(params.get("mcpServers", []))
        self._conversations[name] = found
        return {}

    def load(self, params: Json) -> Json:
        self.resume(params)
        kinds = {"prompt": "user_message_chunk", "reply": "agent_message_chunk"}
        name = params["sessionId"]
        for what, text in self._conversations[name].history():
            if what in kinds:
                update = {"sessionUpdate": kinds[what], "content": {"type": "text", "text": text}}
                send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": name, "update": update}})
        return {}

    def prompt(self, params: Json) -> Json:
        ours = self._conversations.get(params["sessionId"])
        if ours is None:
            raise Refusal(INVALID_PARAMS, f"no session {params['sessionId']} is open here")
        # Instructions may stand in blocks ahead of it; the message itself is the last.
        message = [block["text"] for block in params["prompt"] if block.get("type") == "text"][-1]
        ours.remember("prompt", message)
        turn = steps.Turn(ours, message, send, self.request, self.cancelled)
        reason = self._follow(turn)
        if turn.said:
            ours.remember("reply", "\n".join(turn.said))
        result: dict[str, Json] = {"stopReason": reason}
        if turn.used:
            result["usage"] = {**turn.used, "totalTokens": sum(turn.used.values())}
        return result

    def request(self, method: str, params: Mapping[str, Json]) -> Json:
        """Ask the client, and wait for its answer for as long as the turn is not cancelled."""
        self._asked += 1
        number = f"ask-{self._asked}"
        send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while not self.cancelled.is_set():
            try:
                answer = self.answers.get(timeout=steps.POLL)
            except Empty:
                continue
            if answer.get("id") == number:
                return answer.get("result") or {}
        return None

    def _follow(self, turn: steps.Turn) -> str:
        try:
            steps.perform(turn, self._steps_for(turn))
        except steps.Cancelled:
            return "cancelled"
        except steps.Failed as failed:
            raise Refusal(INTERNAL_ERROR, str(failed), failed.data) from None
        return "cancelled" if self.cancelled.is_set() else "end_turn"

    def _steps_for(self, turn: steps.Turn) -> list[dict[str, Json]]:
        carried = playbook.steps_in(turn.prompt)
        if carried is not None:
            return carried
        once, chosen = playbook.choose(self._book, turn.prompt, set(turn.conversation.all("used")))
        if once is not None:
            turn.conversation.remember("used", once)
        return greeting(turn.prompt) if chosen is None else chosen

    def _read_book(self) -> None:
        self._book = playbook.load(self._book_path) if self._book_path else {}


def greeting(prompt: str) -> list[dict[str, Json]]:
    first = (prompt.strip().splitlines() or ["nothing"])[0]
    return [
        {"say": "Hello! I am Remuda's scripted agent: I follow a playbook and am no model. "},
        {"say": f"You said: {first}"},
    ]


def serve(arguments: list[str]) -> None:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    agent = Agent(options.get("--playbook", ""), options.get("--memory") or default_memory())
    inbox: SimpleQueue[Json] = SimpleQueue()
    Thread(target=read_stdin, args=(agent, inbox), daemon=True).start()
    while (message := inbox.get()) is not None:
        if "id" in message and "method" in message:
            send({"jsonrpc": "2.0", "id": message["id"], **answer_to(agent, message)})
    os._exit(0)


def default_memory() -> str:
    temporary = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"remuda-scripted-{os.getuid()}")  # noqa: S108
    return os.environ.get("REMUDA_SCRIPTED_MEMORY") or temporary


def read_stdin(agent: Agent, inbox: SimpleQueue[Json]) -> None:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError as error:
            send({"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": str(error)}})
            continue
        if message.get("method") == "session/cancel":
            agent.cancelled.set()
            continue
        if message.get("method") == "session/prompt":
            agent.cancelled.clear()  # here and not when it is served: a cancel may already stand behind it
        (inbox if "method" in message else agent.answers).put(message)
    agent.cancelled.set()  # nobody listens any more; a turn that hears it ends, and then we do
    inbox.put(None)


def answer_to(agent: Agent, message: Json) -> dict[str, Json]:
    method = agent.methods.get(message["method"])
    if method is None:
        return error(METHOD_NOT_FOUND, f"the scripted agent does not know {message['method']}")
    try:
        return {"result": method(message.get("params") or {})}
    except Refusal as refusal:
        return error(refusal.code, str(refusal), refusal.data)
    except playbook.BadPlaybook as bad:
        return error(INVALID_PARAMS, str(bad))
    except (KeyError, IndexError, TypeError) as missing:
        return error(INVALID_PARAMS, f"{message['method']}: bad parameters: {missing!r}")


def error(code: int, message: str, data: Json = None) -> dict[str, Json]:
    told = {"code": code, "message": message}
    return {"error": told if data is None else {**told, "data": data}}
