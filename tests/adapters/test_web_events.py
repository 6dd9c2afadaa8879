"""The log and what agents say, over HTTP: pages and streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from adapters.web_kit import WITHIN, Site, playbook, site


async def frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The events of a stream, each with the id that its reader would come back with."""
    seen = ""
    while True:
        block = (await asyncio.wait_for(reader.readuntil(b"\n\n"), WITHIN)).decode()
        fields = dict(line.split(": ", 1) for line in block.strip().split("\n") if not line.startswith(":"))
        seen = fields.get("id", seen)
        if "data" in fields:
            assert fields["event"] == json.loads(fields["data"])["type"]
            yield seen, json.loads(fields["data"])


def test_a_page_of_the_log_tells_where_the_next_begins(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            for _ in range(5):
                await web.post("/v1/agents", {"hold": True})
            first = (await web.get("/v1/events?after=0&limit=2")).json
            assert [each["type"] for each in first["events"]] == ["runtime_started", "spawned"]
            rest = (await web.get(f"/v1/events?after={first['next']}")).json
            assert [each["agent"] for each in rest["events"]] == [f"worker-{number}" for number in (2, 3, 4, 5)]
            assert (await web.get("/v1/events?last=1")).json["events"][0]["agent"] == "worker-5"
            mine = (await web.get("/v1/events?agent=worker-2&last=10")).json["events"]
            assert [each["agent"] for each in mine] == ["worker-2"]
            text = (await web.get("/v1/events?format=text&last=1")).body.decode()
            assert "worker-5" in text

    asyncio.run(story())


def test_a_follower_that_is_cut_off_goes_on_where_it_was_and_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            seen: list[tuple[int, str]] = []
            last, end = "0", 1 + 2 * 60  # the runtime's start, and two events for each agent
            spawning = asyncio.ensure_future(_spawn_many(web, 60))
            while int(last) < end:
                async with web.open("GET", "/v1/events?follow=1", Last_Event_ID=last) as (status, head, reader):
                    assert status == 200
                    assert "text/event-stream" in head
                    left = 7  # then hang up, now and then between the parts of one event
                    async for last_id, event in frames(reader):
                        seen.append((event["seq"], event["type"]))
                        last, left = last_id or last, left - 1
                        if not left or int(last) == end:
                            break
            await spawning
            told = (await web.get("/v1/events?after=0&limit=1000")).json["events"]
            assert {(each["seq"], each["type"]) for each in told} == set(seen)
            assert len(told) == 1 + 3 * 60

    asyncio.run(story())


async def _spawn_many(web: Site, count: int) -> None:
    for _ in range(count):
        await web.post("/v1/agents", {"hold": True, "message": "hello"})


def test_a_stream_without_a_cursor_begins_now_and_ends_with_the_runtime(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            await web.post("/v1/agents", {"hold": True})
            async with web.open("GET", "/v1/events?follow=1&agent=worker-1") as (_, _, reader):
                await asyncio.wait_for(reader.readuntil(b"\n\n"), WITHIN)
                await web.post("/v1/agents", {"hold": True})
                await web.post("/v1/agents/worker-1/messages", {"text": "hi"})
                following = frames(reader)
                types = [(await anext(following))[1]["type"] for _ in range(2)]
                assert types == ["incoming", "queue_changed"]
                web.stop.set()
                await asyncio.wait_for(reader.read(), WITHIN)  # to its end

    asyncio.run(story())


def test_lines_are_followed_over_turns_and_sessions_none_lost_and_none_twice(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as web:
            said = playbook({"loop": {"times": 30, "do": [{"say": "a line\n"}]}}, {"say": "the end of a turn"})
            await web.post("/v1/agents", {"message": said})
            target = "/v1/agents/worker-1/logs?follow=1&lines=1000&format=text"
            async with web.open("GET", target) as (_, _, reader):
                await web.idle("worker-1", 1)
                await web.post("/v1/agents/worker-1/stop")
                await web.post("/v1/agents/worker-1/resume")
                await web.post("/v1/agents/worker-1/messages", {"text": playbook({"say": "of the next session"})})
                await web.idle("worker-1", 2)
                lines: list[str] = []
                while "of the next session" not in lines:
                    lines.append((await asyncio.wait_for(reader.readline(), WITHIN)).decode().rstrip("\n"))
            assert lines.count("a line") == 30
            assert lines.count("the end of a turn") == 1
            all_lines = (await web.get("/v1/agents/worker-1/logs?lines=1000")).json["lines"]
            assert lines == all_lines
            assert (await web.get("/v1/agents/worker-1/logs?lines=1")).json["lines"] == ["of the next session"]
            assert (await web.get("/v1/agents/worker-1/logs?lines=0")).json["lines"] == []

    asyncio.run(story())
