"""What is true of the log in SQLite beyond what every store promises."""

import asyncio
import random
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from contracts.stories import fold, story
from fakes import run
from remuda.domain.errors import Conflict, StoreFailed
from remuda.domain.events import Recorded, RuntimeStopped
from remuda.store import codec
from remuda.store.codec import SHAPE, encode_event
from remuda.store.file import APPLICATION_ID
from remuda.store.sqlite import SqliteStore

WRITER = Path(__file__).with_name("append_forever.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def fill(path: Path, log: list[Recorded], *, snapshots: tuple[int, ...] = ()) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        done = 0
        for at in (*snapshots, len(log)):
            await store.append(log[done:at])
            done = at
            if at in snapshots:
                await store.save_snapshot(fold(log[:at]))
        await store.close()

    run(told())


def test_the_log_is_written_ahead_and_flushed_in_full(path: Path) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        assert store._db.pragma("journal_mode") == "wal"
        assert store._db.pragma("synchronous") == 2  # FULL
        await store.close()

    run(told())


def test_appends_that_gather_while_the_disk_is_busy_are_committed_together(path: Path) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        commits = 0

        def count() -> bool:
            nonlocal commits
            commits += 1
            return False

        store._db.set_commit_hook(count)
        await asyncio.gather(
            *(store.append([Recorded(seq, 1.0, "", RuntimeStopped("r"))]) for seq in range(1, 2001)),
        )
        assert 1 <= commits < 200
        await store.close()

    run(told())


def test_one_bad_append_fails_its_group_and_never_leaves_a_gap(path: Path) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        numbers = (1, 2, 9, 3)
        futures = [store.append([Recorded(number, 1.0, "", RuntimeStopped("r"))]) for number in numbers]
        await asyncio.wait(futures)
        kept = [record.seq for record in await store.read(0, 100)]
        assert kept == list(range(1, len(kept) + 1))
        acknowledged = [number for number, future in zip(numbers, futures, strict=True) if not future.exception()]
        assert set(acknowledged) <= set(kept)
        await store.close()

    run(told())


def test_an_event_that_cannot_be_encoded_is_an_answer_and_not_a_silence(path: Path) -> None:
    async def told() -> None:
        store = SqliteStore(path)
        with pytest.raises(StoreFailed, match="could not be written"):
            await store.append([Recorded(1, 1.0, "", RuntimeStopped("\ud800"))])
        await store.append([Recorded(1, 1.0, "", RuntimeStopped("fine"))])
        await store.close()

    run(told())


def test_two_writers_cannot_both_win(path: Path) -> None:
    async def told() -> None:
        one, other = SqliteStore(path), SqliteStore(path)
        await one.append([Recorded(1, 1.0, "", RuntimeStopped("one"))])
        with pytest.raises(Conflict, match="somebody else has written"):
            await other.append([Recorded(1, 1.0, "", RuntimeStopped("other"))])
        assert [record.event for record in await other.read(0, 9)] == [RuntimeStopped("one")]
        await one.close()
        await other.close()

    run(told())


def test_a_closed_log_opens_again_with_all_that_was_acknowledged(path: Path) -> None:
    log = story()
    fill(path, log, snapshots=(40,))

    async def told() -> None:
        store = SqliteStore(path)
        assert await store.restore() == fold(log)
        assert await store.read(0, 10_000) == log
        await store.close()

    run(told())


def test_a_file_of_the_first_schema_is_brought_up_to_date_with_its_events(path: Path) -> None:
    log = story()
    db = apsw.Connection(str(path))
    db.execute(files("remuda.store").joinpath("sql", "001_events.sql").read_text())
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", 1)
    for record in log[:60]:
        agent = getattr(record.event, "agent", "")
        row = (record.seq, record.at, record.cause, type(record.event).__name__, agent, encode_event(record.event))
        db.execute("insert into events (seq, at, cause, kind, agent, data) values (?, ?, ?, ?, ?, ?)", row)
    db.close()

    async def told() -> None:
        store = SqliteStore(path)
        assert await store.restore() == fold(log[:60])
        await store.append(log[60:])
        await store.save_snapshot(fold(log))
        assert await store.restore() == fold(log)
        await store.close()

    run(told())


def test_snapshots_are_passed_over_when_damaged_or_of_another_shape(path: Path) -> None:
    log = story()
    fill(path, log, snapshots=(40, 80))
    db = apsw.Connection(str(path))
    db.execute("update snapshots set data = substr(data, 1, 100) where seq = 80")
    db.execute("update snapshots set shape = 'another' where seq = 40")
    db.execute("insert into snapshots values (90, ?, ?)", (SHAPE, b'{"seq": "ninety"}'))
    db.execute("insert into snapshots values (91, ?, ?)", (SHAPE, b"\xff\xfe"))
    db.close()

    async def told() -> None:
        store = SqliteStore(path)
        assert await store.restore() == fold(log)
        await store.close()

    run(told())


def test_a_snapshot_is_really_used(path: Path) -> None:
    """Seen by changing an event that it holds: what came before a snapshot is not read again."""
    log = story()
    fill(path, log, snapshots=(80,))
    db = apsw.Connection(str(path))
    db.execute("update events set data = x'7b7d', kind = 'Nonsense' where seq = 10")
    db.close()

    async def told() -> None:
        store = SqliteStore(path)
        assert await store.restore() == fold(log)
        await store.close()

    run(told())


def test_only_the_last_two_snapshots_are_kept(path: Path) -> None:
    fill(path, story(), snapshots=(20, 40, 60, 80))
    db = apsw.Connection(str(path))
    assert [row[0] for row in db.execute("select seq from snapshots order by seq")] == [60, 80]
    db.close()


@pytest.mark.parametrize(("noun", "one", "two"), [("Session", "ref", "resumes"), ("Metrics", "input_tokens", "calls")])
def test_fields_that_change_places_or_names_change_the_shape(
    monkeypatch: pytest.MonkeyPatch, noun: str, one: str, two: str
) -> None:
    kind = getattr(codec, noun)
    before = codec.shape()
    swap = {one: two, two: one}
    monkeypatch.setattr(kind, "_fields", tuple(swap.get(name, name) for name in kind._fields))
    assert codec.shape() != before


def test_a_killed_writer_loses_nothing_that_it_acknowledged(path: Path) -> None:
    dice = random.Random(7)
    before = 0
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        acknowledged = before
        for _ in range(dice.randrange(1, 60)):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        left = writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        acknowledged = int(left[-1]) if left else acknowledged
        assert acknowledged > before
        before = run(count(path))
        assert before >= acknowledged


async def count(path: Path) -> int:
    """How many events there are, which must be numbered without a gap and make the state."""
    store = SqliteStore(path)
    records = await store.read(0, 1_000_000)
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert (await store.restore()).seq == len(records)
    await store.close()
    return len(records)
