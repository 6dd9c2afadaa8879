"""What the HTTP front does with those who should not be there, and with what should not be sent."""

import asyncio
import json

import pytest

from mcp_wire.desk import ToolDesk
from mcp_wire.kit import TOKEN, Answer, Site, run, site, until
from remuda.mcp import eras
from remuda.mcp.http import LARGEST_BODY
from remuda.mcp.http_stream import MOST_BYTES, Said, Stream
from remuda.mcp.jsonrpc import INVALID_REQUEST, PARSE_ERROR

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


async def begin(served: Site) -> str:
    return (await served.post(HELLO)).headers["mcp-session-id"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80@127.0.0.1"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Mcp-Session-Id": "made-up"}, 404),
    ],
)
def test_who_is_not_let_in(headers: dict[str, str], status: int) -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with site(desk) as served:
            assert (await served.post(HELLO, **headers)).status == status
            assert desk.clients == []

    run(story())


def test_a_page_of_this_very_machine_is_let_in() -> None:
    async def story() -> None:
        async with site(ToolDesk()) as served:
            assert (await served.post(HELLO, Origin=f"http://localhost:{served.port}")).status == 200

    run(story())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, PARSE_ERROR),
        (b"not json", 400, PARSE_ERROR),
        ([HELLO, LIST], 400, INVALID_REQUEST),
        ({"id": 1}, 400, INVALID_REQUEST),
        (b'"' + b"x" * LARGEST_BODY + b'"', 413, INVALID_REQUEST),
        (LIST, 400, INVALID_REQUEST),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(body: object, status: int, code: int) -> None:
    async def story() -> None:
        async with site(ToolDesk()) as served:
            answer = await served.post(body)
            assert (answer.status, answer.json["error"]["code"]) == (status, code)

    run(story())


def test_a_session_is_for_the_token_that_began_it() -> None:
    async def story() -> None:
        desks = {"one": ToolDesk(), "two": ToolDesk()}
        async with site(desks["one"]) as served:
            served.front._door = desks.get
            name = (await served.post(HELLO, Authorization="Bearer one")).headers["mcp-session-id"]
            for method in ("POST", "GET", "DELETE"):
                data = json.dumps(LIST).encode() if method == "POST" else b""
                answer = await served.ask(method, data, Authorization="Bearer two", Mcp_Session_Id=name)
                assert answer.status == 404
            answer = await served.post(LIST, Authorization="Bearer one", Mcp_Session_Id=name)
            assert answer.status == 200

    run(story())


def test_a_request_before_the_handshake_is_told_so() -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with site(desk) as served:
            name = await served.front._begin(desk)
            answer = await served.post(LIST, Mcp_Session_Id=name)
            assert "before initialize" in answer.json["error"]["message"]

    run(story())


def test_two_requests_of_one_id_cannot_be_under_way() -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with site(desk) as served:
            name = await begin(served)
            call = {**LIST, "method": "tools/call", "params": {"name": "wait"}}
            first = asyncio.ensure_future(served.post(call, Mcp_Session_Id=name))
            await until(lambda: desk.waiting == 1)
            answer = await served.post(call, Mcp_Session_Id=name)
            assert "under way already" in answer.json["error"]["message"]
            await served.ask("DELETE", Mcp_Session_Id=name)
            assert (await first).status == 404
            assert (desk.waiting, desk.cancelled, desk.clients) == (0, 1, [])

    run(story())


def test_a_client_that_takes_no_stream_gets_the_answer_alone() -> None:
    async def story() -> None:
        async with site(ToolDesk()) as served:
            name = await begin(served)
            params = {"name": "count", "_meta": {"progressToken": 1}}
            call = {**LIST, "method": "tools/call", "params": params}
            alone = await served.post(call, Mcp_Session_Id=name, Accept="application/json")
            assert alone.json["result"]["content"][0]["text"] == "counted"
            streamed = await served.post(call, Mcp_Session_Id=name)
            assert streamed.headers["content-type"].startswith("text/event-stream")
            assert [json.loads(each[6:])["method" if n < 3 else "id"] for n, each in enumerate(events(streamed))] == [
                *["notifications/progress"] * 3,
                1,
            ]

    run(story())


def events(answer: Answer) -> list[bytes]:
    return [line for line in answer.body.splitlines() if line.startswith(b"data: ")]


def test_the_newer_era_says_in_the_status_what_went_wrong() -> None:
    async def story() -> None:
        async with site(ToolDesk()) as served:
            meta = {eras.VERSION: "2026-07-28", eras.CAPABILITIES: {}}
            ask = {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": meta}}
            assert (await served.post(ask, MCP_Protocol_Version="2026-07-28")).status == 404
            without = {**ask, "params": {}}
            assert (await served.post(without, MCP_Protocol_Version="2026-07-28")).status == 400
            later = {**ask, "params": {"_meta": {**meta, eras.VERSION: "2031-01-01"}}}
            answer = await served.post(later)
            assert (answer.status, answer.json["error"]["code"]) == (400, eras.UNSUPPORTED_VERSION)

    run(story())


def test_a_full_house_makes_room_by_forgetting_the_session_that_was_idle_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remuda.mcp.http.MOST_SESSIONS", 2)

    async def story() -> None:
        async with site(ToolDesk()) as served:
            names = [await begin(served) for _ in range(3)]
            answers = [(await served.post(LIST, Mcp_Session_Id=name)).status for name in names]
            assert answers == [404, 200, 200]

    run(story())


def test_whoever_listens_when_the_front_closes_is_let_go_and_left_once() -> None:
    async def story() -> None:
        desk = ToolDesk()
        async with site(desk) as served:
            meta = {eras.VERSION: "2026-07-28", eras.CAPABILITIES: {}}
            listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
            listen["params"] = {"_meta": meta, "notifications": {"toolsListChanged": True}}
            listening = asyncio.ensure_future(served.post(listen, MCP_Protocol_Version="2026-07-28"))
            name = await begin(served)
            aside = asyncio.ensure_future(served.ask("GET", Mcp_Session_Id=name))
            await until(lambda: len(desk.clients) == 2 and served.front._sessions[name].aside is not None)
            await served.front.close()
            (answer, heard) = await asyncio.gather(listening, aside)
            assert b"acknowledged" in answer.body
            assert heard.status == 200
            assert (desk.clients, desk.gone) == ([], 2)

    run(story())


def test_a_version_that_nobody_speaks_is_refused_by_name() -> None:
    async def story() -> None:
        async with site(ToolDesk()) as served:
            session = await begin(served)
            answer = await served.post(LIST, Mcp_Session_Id=session, MCP_Protocol_Version="1999-01-01")
            assert answer.status == 400
            assert "'1999-01-01' of the protocol is not spoken here" in answer.json["error"]["message"]
            assert (await served.post(LIST, Mcp_Session_Id=session, MCP_Protocol_Version="2025-06-18")).status == 200

    run(story())


def test_what_waits_for_a_client_that_does_not_read_is_bounded_by_its_size() -> None:
    async def story() -> None:
        stream = Stream()
        for number in range(100):
            stream.put(Said(b"%d" % number + b"x" * (MOST_BYTES // 10)))
        stream.put(Said(b"y" * 2 * MOST_BYTES, last=True))  # an answer is never lost for its size
        said = await stream.get()
        assert said is not None
        assert said.last
        for number in range(100):
            stream.put(Said(b"%d" % number + b"x" * (MOST_BYTES // 10)))
        first = await stream.get()
        assert first is not None
        assert first.message.startswith(b"91x")

    run(story())
