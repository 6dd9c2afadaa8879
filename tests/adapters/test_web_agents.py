"""Agents over HTTP."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from adapters.web_kit import Site, playbook, site
from remuda.runtime.place import make_place


def test_the_runtime_says_that_it_is_well(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            answer = await web.get("/v1/health")
            assert answer.status == 200
            assert answer.json["status"] == "ok"
            assert answer.json["project"] == str(web.place.root)

    asyncio.run(story())


def test_an_agent_is_spawned_written_to_and_told_what_to_do(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            spawned = await web.post("/v1/agents", {"role": "worker", "message": playbook({"say": "hello\n"})})
            assert spawned.status == 201
            assert spawned.json["agent"]["name"] == "worker-1"
            await web.idle("worker-1", 1)
            sent = await web.post("/v1/agents/worker-1/messages", {"text": "again"})
            assert sent.status == 202
            await web.idle("worker-1", 2)
            for verb, status in (("pause", "paused"), ("resume", "ready"), ("stop", "stopped"), ("retire", "retired")):
                told = await web.post(f"/v1/agents/worker-1/{verb}", {"why": "because"} if verb != "resume" else None)
                assert (told.status, told.json["agent"]["status"]) == (200, status)
            assert (await web.get("/v1/agents")).json["agents"] == []
            (row,) = (await web.get("/v1/agents?all=1")).json["agents"]
            assert (row["alive"], row["why"], row["turns"]) == (False, "because", 2)

    asyncio.run(story())


def test_the_table_is_rendered_by_the_server(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            await web.post("/v1/agents", {"hold": True})
            plain = (await web.get("/v1/agents?format=text")).body.decode()
            assert "scripted (not a model)" in plain
            assert "\x1b" not in plain
            assert "\x1b[" in (await web.get("/v1/agents?format=text&color=1")).body.decode()
            narrow = (await web.get("/v1/agents?format=text&width=90")).body.decode()
            assert max(map(len, narrow.splitlines())) <= max(90, len(plain.splitlines()[0]))

    asyncio.run(story())


BAD: list[tuple[str, str, object, int, str, int]] = [
    ("GET", "/v1/agents/nobody", None, 404, "UnknownAgent", 3),
    ("POST", "/v1/agents/nobody/messages", {"text": "x"}, 404, "UnknownAgent", 3),
    ("POST", "/v1/agents", b"{not json", 400, "Invalid", 2),
    ("POST", "/v1/agents", b"\xff\xfe", 400, "Invalid", 2),
    ("POST", "/v1/agents", [], 400, "Invalid", 2),
    ("POST", "/v1/agents", {"naem": "x"}, 400, "Invalid", 2),
    ("POST", "/v1/agents", {"name": "Not Good"}, 400, "Invalid", 2),
    ("POST", "/v1/agents", {"backend": "nothing"}, 400, "Invalid", 2),
    ("POST", "/v1/agents", {"parent": "nobody"}, 404, "UnknownAgent", 3),
    ("POST", "/v1/agents/ada/messages", {"text": ""}, 400, "Invalid", 2),
    ("POST", "/v1/agents/ada/messages", {"text": "x" * (1 << 20) + "x"}, 400, "Invalid", 2),
    ("POST", "/v1/agents/ada/messages", b'{"text": "\\ud800"}', 400, "Invalid", 2),
    ("POST", "/v1/agents/ada/messages", {"text": 5}, 400, "Invalid", 2),
    ("POST", "/v1/agents/ada/pause", None, 409, "Refused", 3),
    ("GET", "/v1/agents/ada/logs?lines=many", None, 400, "Invalid", 2),
    ("GET", "/v1/events?after=-1", None, 400, "Invalid", 2),
    ("GET", "/v1/events?agent=nobody", None, 404, "UnknownAgent", 3),
    ("GET", "/v1/nothing", None, 404, "NotFound", 2),
    ("DELETE", "/v1/agents", None, 405, "MethodNotAllowed", 2),
]


def test_whatever_is_wrong_is_answered_in_one_shape(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            await web.post("/v1/agents", {"name": "ada", "hold": True})
            before = web.runtime.loop.shown.seq
            for method, target, body, status, error, code in BAD:
                answer = await web.ask(method, target, body)
                said = answer.json
                assert (answer.status, said["error"], said["exit_code"]) == (status, error, code), (target, said)
                assert said["message"]
                assert isinstance(said["possible"], list)
            assert web.runtime.loop.shown.seq == before  # nothing of it was stored

    asyncio.run(story())


def test_a_body_past_the_cap_is_refused_before_it_is_read_to_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            answer = await web.post("/v1/agents", b" " * ((4 << 20) + 1))
            assert (answer.status, answer.json["error"]) == (413, "TooLarge")

    asyncio.run(story())


def test_a_caller_that_hangs_up_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            before = web.runtime.loop.shown.seq
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(web.place.socket))
                caller.sendall(b'POST /v1/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"role": ')
                await web.get("/v1/health")
            assert (await web.get("/v1/health")).json["seq"] == before

    asyncio.run(story())


def test_a_refusal_names_what_is_possible(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            await web.post("/v1/agents", {"name": "ada", "hold": True})
            answer = await web.post("/v1/agents/ada/pause")
            assert answer.json["possible"] == ["starting"]

    asyncio.run(story())


def test_the_same_order_twice_is_done_once_and_answered_alike(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            body = {"hold": True, "message": "hello"}
            first = await web.post("/v1/agents", body, Idempotency_Key="k1")
            second = await web.post("/v1/agents", body, Idempotency_Key="k1")
            assert first.json["agent"]["name"] == second.json["agent"]["name"] == "worker-1"
            assert len(web.runtime.agent("worker-1").queue) == 1
            one = await web.post("/v1/agents/worker-1/messages", {"text": "x"}, Idempotency_Key="k2")
            two = await web.post("/v1/agents/worker-1/messages", {"text": "x"}, Idempotency_Key="k2")
            assert (one.json["seq"], one.json["message_id"]) == (two.json["seq"], two.json["message_id"])
            assert len(web.runtime.agent("worker-1").queue) == 2

    asyncio.run(story())


def test_a_sender_is_whom_its_token_belongs_to_whatever_it_says(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            await web.post("/v1/agents", {"role": "coordinator"})
            await web.post("/v1/agents", {"name": "ada"})
            await web.until(lambda: len(web.runtime.world.live) == 2)
            await web.post("/v1/agents", {"name": "bob", "hold": True})
            for name in ("coordinator", "ada"):
                token = web.runtime.world.live[name].token
                await web.post("/v1/agents/bob/messages", {"text": "x"}, Authorization=f"Bearer {token}")
            await web.post("/v1/agents/bob/messages", {"text": "x"})
            senders = [(each.sender, each.author) for each in web.runtime.agent("bob").queue]
            assert senders == [("coordinator", "coordinator"), ("agent", "ada"), ("user", "user")]
            lead = web.runtime.world.live["coordinator"].token
            child = await web.post("/v1/agents", {"hold": True}, Authorization=f"Bearer {lead}")
            assert child.json["agent"]["parent"] == "coordinator"
            child = await web.post("/v1/agents", {"hold": True}, Authorization=f"Bearer {token}")
            assert "may not spawn" in child.json["message"]
            for verb in ("pause", "stop", "retire"):
                told = await web.post(f"/v1/agents/bob/{verb}", {}, Authorization=f"Bearer {token}")
                assert "may not tell other agents" in told.json["message"]
            stop = await web.post("/v1/runtime/stop", None, Authorization=f"Bearer {token}")
            assert stop.json["error"] == "Refused"
            for header in ("Bearer nonsense", "Basic x", "Bearer"):
                assert (await web.get("/v1/agents", Authorization=header)).status in (400, 409)

    asyncio.run(story())


# --- the socket ---


def test_the_socket_is_the_owners_alone_and_gone_afterwards(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            assert web.place.socket.stat().st_mode & 0o777 == 0o600
            assert web.place.state.stat().st_mode & 0o777 == 0o700
        assert not web.place.socket.exists()

    asyncio.run(story())


@pytest.mark.parametrize("left", ["file", "socket"])
def test_a_socket_that_a_dead_runtime_left_is_cleared_away(tmp_path: Path, left: str) -> None:
    place = make_place(tmp_path)
    if left == "file":
        place.socket.write_text("")
    else:
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(place.socket))

    async def story() -> None:
        async with site(tmp_path) as web:
            assert (await web.get("/v1/health")).status == 200

    asyncio.run(story())


def test_a_project_may_lie_deeper_than_a_socket_path_can_be_long(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)

    async def story() -> None:
        async with site(deep) as web:
            assert (await web.get("/v1/health")).status == 200

    asyncio.run(story())


def test_the_runtime_stops_when_asked_over_http(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            assert (await web.post("/v1/runtime/stop")).status == 202
            await asyncio.wait_for(web.stop.wait(), 5)

    asyncio.run(story())


def test_json_is_valid_also_when_agents_are_given_odd_text(tmp_path: Path) -> None:
    async def story(web: Site) -> None:
        await web.post("/v1/agents", {"name": "ada", "hold": True, "instructions": 'quote " and \u2028 and \x00'})
        answer = await web.get("/v1/agents/ada")
        assert json.loads(answer.body)["instructions"].endswith("\x00")

    async def run() -> None:
        async with site(tmp_path) as web:
            await story(web)

    asyncio.run(run())
