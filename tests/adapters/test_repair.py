"""Saving what can be read of a damaged log."""

import asyncio
from pathlib import Path

import pytest

from remuda.domain.errors import StoreCorrupt
from remuda.domain.events import AgentSpawned, Event, MessageQueued, Recorded, RuntimeStarted
from remuda.domain.state import Message, Sender
from remuda.store.file import open_log
from remuda.store.repair import examine, repair
from remuda.store.sqlite import SqliteStore, restore

EVENTS = 400


def make_log(path: Path) -> None:
    events: list[Event] = [RuntimeStarted("r"), AgentSpawned("ada", "worker", "scripted", "", "", "", ())]
    for number in range(EVENTS - 2):
        message = Message(f"m{number}", Sender.USER, "user", f"message {number} " + "x" * 200, 1.0)
        events.append(MessageQueued("ada", message, number + 1))

    async def write() -> None:
        store = SqliteStore(path)
        await store.append([Recorded(seq, 1.0, "", event) for seq, event in enumerate(events, 1)])
        await store.close()

    asyncio.run(write())


def spoil(path: Path, where: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(where)
        file.write(what)


def messages(path: Path) -> list[str]:
    db = open_log(path)
    try:
        state = restore(db, path)
        return [each.id for each in state.agents["ada"].queue] if state.agents else []
    finally:
        db.close()


def test_a_sound_log_is_found_sound(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    assert (examine(path).events, examine(path).fault) == (EVENTS, "")


def test_of_a_truncated_log_the_beginning_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    half = path.stat().st_size // 2
    with path.open("r+b") as file:
        file.truncate(half)
    with pytest.raises(StoreCorrupt, match="doctor --repair"):
        messages(path)
    done = repair(path)
    assert 50 < done.saved < EVENTS
    assert done.kept.stat().st_size == half
    assert messages(path) == [f"m{number}" for number in range(done.saved - 2)]
    assert examine(path).fault == ""


def test_of_a_log_with_spoiled_bytes_all_before_them_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    spoil(path, path.stat().st_size // 2, b"\xff" * 300)
    assert examine(path).fault
    done = repair(path)
    assert 0 < done.saved < EVENTS
    assert done.lost == EVENTS - done.saved
    assert done.why
    assert messages(path) == [f"m{number}" for number in range(done.saved - 2)]


def test_an_event_that_cannot_be_decoded_ends_what_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    db = open_log(path)
    db.execute("update events set data = x'7b' where seq = 100")
    db.close()
    assert examine(path).events == 99
    assert repair(path).saved == 99


def test_a_hole_in_the_log_ends_what_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    db = open_log(path)
    db.execute("delete from events where seq = 200")
    db.close()
    with pytest.raises(StoreCorrupt, match="event 200"):
        messages(path)
    done = repair(path)
    assert (done.saved, done.lost) == (199, EVENTS - 199)


@pytest.mark.parametrize("content", [b"", b"just some text, of no use to anyone\n" * 10, b"\0" * 8192])
def test_of_something_that_is_no_log_nothing_is_saved_and_it_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "remuda.db"
    path.write_bytes(content)
    done = repair(path)
    assert done.saved == 0
    assert done.kept.read_bytes() == content
    assert messages(path) == []


def test_what_is_in_the_write_ahead_log_is_saved_too(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    make_log(path)
    db = open_log(path)
    db.execute("insert into events values (?, 1.0, '', 'RuntimeStopped', '', ?)", (EVENTS + 1, b'{"instance":"r"}'))
    copies = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    db.close()
    other = tmp_path / "copy"
    other.mkdir()
    for name, data in copies.items():
        (other / name).write_bytes(data)
    assert repair(other / "remuda.db").saved == EVENTS + 1


def test_two_repairs_keep_two_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    kept = set()
    for content in (b"one", b"two"):
        path.write_bytes(content)
        kept.add(repair(path).kept)
    assert len(kept) == 2
