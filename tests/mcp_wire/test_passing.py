"""Requests that a desk passes on to somebody else: no task waits for them, and each is answered once or given up."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from msgspec import Raw

from mcp_wire.desk import ToolDesk
from remuda.domain.errors import RemudaError
from remuda.mcp import Client, GiveUp, Settle
from remuda.mcp.conversation import Conversation
from remuda.mcp.jsonrpc import Id, Request, RpcError, decode, raw
from remuda.mcp.outbox import Outbox

DONE = raw({"done": True})
MODERN = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}


class PassingDesk(ToolDesk):
    """Passes on what is called `pass`, and remembers how it can be settled."""

    def __init__(self) -> None:
        super().__init__()
        self.settle: dict[Id, Settle] = {}
        self.given_up: list[Id] = []

    def pass_on(self, client: Client, request: Request, settle: Settle) -> GiveUp | None:  # type: ignore[override]  # noqa: ARG002
        match json.loads(bytes(request.params)).get("name"):
            case "pass":
                self.settle[request.id] = settle
            case "at once":
                settle(DONE)
            case "break":
                raise ValueError("a bug")
            case _:
                return None
        return lambda: self.given_up.append(request.id)


class Talk:
    """A client that has said hello, and all that it was told."""

    def __init__(self) -> None:
        self.desk = PassingDesk()
        self.answers: list[tuple[Id, Any]] = []
        self.refused: dict[Id | None, str] = {}
        self.dropped: list[Id] = []
        self.conversation = Conversation(self.desk, self)

    async def hello(self) -> None:
        info = {"name": "t", "version": "1"}
        self.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        await self.answered()
        self.answers.clear()

    async def answered(self) -> None:
        while not self.answers or self.conversation.busy:  # noqa: ASYNC110 - the run is bounded
            await asyncio.sleep(0)

    def ask(self, number: int, method: str = "tools/call", **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.conversation.receive(decode(json.dumps(message).encode()))

    def tell(self, message: bytes, about: Id | None) -> None:
        raise AssertionError(f"nobody was to be told {message!r} about {about}")

    def answer(self, to: Id, message: bytes) -> None:
        self.answers.append((to, json.loads(message)["result"]))

    def refuse(self, to: Id | None, error: RpcError) -> None:
        self.refused[to] = error.message

    def behind(self) -> bool:
        return False

    def drop(self, to: Id) -> None:
        self.dropped.append(to)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


def test_each_is_answered_once_in_whatever_order_and_at_once() -> None:
    async def story() -> None:
        talk = Talk()
        await talk.hello()
        talk.ask(1, name="pass")
        talk.ask(2, name="pass")
        talk.ask(3, name="at once")
        assert talk.answers == [(3, {"done": True})]
        talk.ask(1, name="pass")
        assert "under way already" in talk.refused[1]
        for number in (2, 1, 1):
            talk.desk.settle[number](Raw(b'{"of": %d}' % number))
        assert talk.answers[1:] == [(2, {"of": 2}), (1, {"of": 1})]
        assert not talk.conversation.busy
        talk.ask(1, name="at once")  # the number is free again
        assert talk.answers[-1] == (1, {"done": True})
        await talk.conversation.close()

    run(story())


def test_what_goes_wrong_is_told_and_a_bug_of_ours_is_not_spelled_out() -> None:
    async def story() -> None:
        talk = Talk()
        await talk.hello()
        for number, error in enumerate((RpcError(-1, "no"), RemudaError("cannot be done"), ValueError("secret")), 1):
            talk.ask(number, name="pass")
            talk.desk.settle[number](error)
        talk.ask(4, name="break")
        broke = "this broke inside Remuda; its log has more"
        assert talk.refused == {1: "no", 2: "cannot be done", 3: broke, 4: broke}
        assert not talk.conversation.busy
        await talk.conversation.close()

    run(story())


def test_what_the_client_cancels_or_leaves_is_given_up_and_a_late_answer_is_nobodys() -> None:
    async def story() -> None:
        talk = Talk()
        await talk.hello()
        for number in (1, 2):
            talk.ask(number, name="pass")
        talk.conversation.forget(1)
        talk.conversation.forget(1)
        assert (talk.desk.given_up, talk.dropped) == ([1], [1])
        talk.desk.settle[1](DONE)
        await talk.conversation.close()
        assert (talk.desk.given_up, talk.dropped, talk.answers) == ([1, 2], [1, 2], [])

    run(story())


def test_what_comes_before_the_handshake_or_stands_alone_is_not_passed_on() -> None:
    async def story() -> None:
        talk = Talk()
        talk.ask(1, name="pass")
        while 1 not in talk.refused:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert "before initialize" in talk.refused[1]
        meta = {f"io.modelcontextprotocol/{key}": value for key, value in MODERN.items()}
        talk.ask(2, name="echo", arguments={"text": "x"}, _meta=meta)
        await talk.answered()
        assert talk.desk.settle == {}
        await talk.conversation.close()

    run(story())


def test_the_first_message_is_written_at_once_and_the_rest_of_the_same_go_together() -> None:
    async def story() -> None:
        written: list[bytes] = []
        outbox = Outbox(written.append)
        for message in (b"a", b"b", b"c"):
            outbox.put(message)
        assert written == [b"a\n"]
        await asyncio.sleep(0)
        assert written == [b"a\n", b"b\nc\n"]
        outbox.put(b"d")
        assert written[2:] == [b"d\n"]
        outbox.put(b"e")
        outbox.flush()  # whoever ends it does not wait
        assert written[3:] == [b"e\n"]

    run(story())
