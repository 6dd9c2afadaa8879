"""Calls that leave ahead of the disk, on a real runtime: which do, and what is known of them after a hard kill."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from meter.kit import Disk, child_of, post, run, service_of, until
from remuda.agents.prices import Table
from remuda.domain.budget_commands import RecallCall
from remuda.domain.commands import SpawnAgent
from remuda.domain.ledger import Foreseen, Ledger, Limits
from remuda.domain.state import Usage
from remuda.meter import Estimate, Grant, Refusal, Seat
from remuda.meter import ahead as aheads
from remuda.meter.ahead import Ahead
from remuda.meter.books import Books
from remuda.meter.serve import serve_meter
from remuda.runtime.compose import open_runtime
from remuda.runtime.place import make_place
from remuda.runtime.runtime import Runtime
from scripted_model.kit import script
from scripted_model.raw import encoded, request


@asynccontextmanager
async def books_of(runtime: Runtime, budget: int = 100_000) -> AsyncIterator[tuple[Books, Seat]]:
    """Of an agent in the middle of a turn."""
    name = await runtime.spawn(SpawnAgent("crew", "scripted", budget=Limits(tokens=budget)))
    await runtime.send(name, 'playbook: [{"hang": 3600}]')
    await until(lambda: runtime.agent(name).turn)
    prices: asyncio.Future[Table | None] = asyncio.get_running_loop().create_future()
    prices.set_result(None)
    books = Books(runtime, prices)
    await books.recall()
    yield books, Seat(name, runtime.world.live[name].epoch)


async def turns() -> None:
    for _ in range(50):  # of the loop, in which it could be answered
        await asyncio.sleep(0)


def test_a_call_that_was_foreseen_does_not_wait_for_the_disk_and_a_second_one_beside_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path) as runtime, books_of(runtime) as (books, ada):
            disk = Disk(runtime.store, monkeypatch)
            disk.hold()
            first = asyncio.ensure_future(books.reserve(ada, Estimate("m", 100, 600)))
            await turns()
            assert not first.done(), "nothing like it was kept before"
            disk.go()
            assert await first == Grant(ada, 1, "m", 600)
            disk.hold()
            assert await books.reserve(ada, Estimate("m", 200, 600)) == Grant(ada, 2, "m", 600)
            beside = asyncio.ensure_future(books.reserve(ada, Estimate("m", 100, 100)))
            await turns()
            assert not beside.done()
            disk.go()
            assert await beside == Grant(ada, 3, "m", 100)
            disk.hold()
            larger = asyncio.ensure_future(books.reserve(ada, Estimate("m", 2_000, 600)))
            await turns()
            assert not larger.done()
            disk.go()
            assert await larger == Grant(ada, 4, "m", 600)
            for call in (1, 2, 3, 4):
                books.settle(Grant(ada, call, "m"), Usage(10))
            await until(lambda: runtime.loop.shown.ledger.open == {})
            assert runtime.loop.shown.ledger.accounts[f"agent:{ada.agent}"].spent.tokens == 40

    run(story)


def test_ahead_of_the_disk_no_more_is_given_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path) as runtime, books_of(runtime, 2_000) as (books, ada):
            grant = await books.reserve(ada, Estimate("m", 100, 900))
            assert isinstance(grant, Grant)
            books.settle(grant, Usage(100, 900))
            await until(lambda: runtime.loop.shown.ledger.open == {})
            disk = Disk(runtime.store, monkeypatch)
            disk.hold()
            assert await books.reserve(ada, Estimate("m", 300, 900)) == Grant(ada, 2, "m", 700)
            books.settle(Grant(ada, 2, "m"), Usage(300, 700))
            refused = asyncio.ensure_future(books.reserve(ada, Estimate("m", 1, 900)))
            await turns()
            disk.go()
            assert isinstance(await refused, Refusal)

    run(story)


# --- after a hard kill ---


def asked() -> tuple[str, bytes]:
    path, body = request("anthropic", script({"say": "hello"}), stream=False, tools=False)
    return path, encoded({**body, "max_tokens": 700})


@pytest.mark.parametrize("boot", ["the same boot", "another boot"])
def test_a_call_that_left_ahead_of_a_disk_that_never_saw_it_counts_after_a_kill(tmp_path: Path, boot: str) -> None:
    make_place(tmp_path)

    async def story() -> None:
        answer = b'{"type":"message","usage":{"input_tokens":100,"output_tokens":10}}'
        whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer)
        async with service_of([whole], []) as service:
            async with child_of(tmp_path, service.url, "hold") as (child, url):
                assert child.stdout is not None
                await post(url, *asked(), token="ada")
                assert await child.stdout.readline() == b"held\n"
                asking = asyncio.ensure_future(post(url, *asked(), token="ada"))
                await until(lambda: len(service.bodies) == 2)
            await asyncio.gather(asking, return_exceptions=True)
            if boot == "another boot":
                place = tmp_path / ".remuda" / "calls-ahead"
                place.write_bytes(b"x" * 36 + place.read_bytes()[36:])
            for _ in range(2):  # and what is counted once is not counted again
                async with open_runtime(tmp_path, (serve_meter,)) as runtime:
                    spent = runtime.loop.shown.ledger.accounts["agent:crew-1"].spent.tokens
                    first = len(service.bodies[0]) + 64 + 700
                    exact = 100 + 64 + 700  # it is the same request, so no byte of it is new
                    assert spent == 110 + (exact if boot == "the same boot" else first * 5 // 4)
                    assert runtime.loop.state.ledger.open == {}

    run(story)


def test_what_was_stopped_in_order_has_lost_nothing(tmp_path: Path) -> None:
    make_place(tmp_path)

    async def story() -> None:
        async with open_runtime(tmp_path, (serve_meter,)) as runtime, books_of(runtime) as (books, ada):
            for _ in range(3):
                grant = await books.reserve(ada, Estimate("m", 100, 600))
                assert isinstance(grant, Grant)
                books.settle(grant, Usage(10))
        place = tmp_path / ".remuda" / "calls-ahead"
        place.write_bytes(b"x" * 36 + place.read_bytes()[36:])
        async with open_runtime(tmp_path, (serve_meter,)) as runtime:
            assert runtime.loop.shown.ledger.accounts["agent:crew-1"].spent.tokens == 30

    run(story)


# --- the file ---

CALL = RecallCall("ada", 1, 7, 100, 200, 300, priced=True)
LEDGER = Ledger(foreseen={"ada": Foreseen(1, 5, 7, 400, 800, priced=True)})
AT_MOST = RecallCall("ada", 1, 8, 500, 0, 1_000, priced=True)


def test_what_is_noted_is_read_again_after_the_process_and_only_until_it_is_begun_anew(tmp_path: Path) -> None:
    one = Ahead(tmp_path / "ahead")
    assert one.left(LEDGER) == [AT_MOST], "there is nothing that says when it was begun"
    assert not one.note(CALL)
    one.begin()
    assert one.note(CALL)
    other = Ahead(tmp_path / "ahead")
    assert other.left(LEDGER) == [CALL]
    other.begin()
    assert other.left(LEDGER) == []


def test_half_a_line_is_passed_over_and_a_full_file_takes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "ahead"
    one = Ahead(path)
    one.begin()
    while one.note(CALL):
        pass
    lines = len(one.left(LEDGER))
    data = path.read_bytes()
    path.write_bytes(data.replace(b'["ada"', b'\x00"ada"', 1))
    assert len(Ahead(path).left(LEDGER)) == lines - 1
    one.tidy()
    assert one.left(LEDGER) == []
    assert one.note(CALL)
    one.tidy()
    assert one.left(LEDGER) == [CALL], "it is not begun anew for every call"


def test_where_boots_cannot_be_told_apart_no_call_leaves_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aheads, "BOOT", tmp_path / "no such file")
    one = Ahead(tmp_path / "ahead")
    one.begin()
    assert not one.note(CALL)
    assert Ahead(tmp_path / "ahead").left(LEDGER) == [AT_MOST]
