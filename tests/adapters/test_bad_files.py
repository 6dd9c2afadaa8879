"""Files that are not what they should be, and disks that are full: one sentence that says what to do, nothing lost."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from contracts.stories import fold, story
from fakes import run
from remuda.domain.errors import RemudaError, StoreCorrupt, StoreFailed, StoreTooNew
from remuda.domain.events import Recorded, RuntimeStopped
from remuda.store.file import APPLICATION_ID, open_log
from remuda.store.sqlite import SqliteStore

LOG = story()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"

    async def filled() -> None:
        store = SqliteStore(path)
        for record in LOG:
            await store.append([record])
        await store.close()

    run(filled())
    return path


def refusal(path: Path) -> RemudaError:
    """What opening and restoring raises."""

    async def told() -> None:
        store = SqliteStore(path)
        try:
            await store.restore()
        finally:
            await store.close()

    with pytest.raises(RemudaError) as refused:
        run(told())
    return refused.value


def change(path: Path, *statements: str) -> None:
    db = apsw.Connection(str(path))
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_file_of_a_newer_schema_is_refused(path: Path) -> None:
    change(path, "pragma user_version = 99")
    error = refusal(path)
    assert isinstance(error, StoreTooNew)
    assert "was written by a newer Remuda (schema 99" in str(error)
    assert "upgrade Remuda" in str(error)


def test_an_event_that_only_a_newer_version_knows_is_refused(path: Path) -> None:
    change(path, "update events set kind = 'AgentTeleported' where seq = 20")
    error = refusal(path)
    assert isinstance(error, StoreTooNew)
    assert "event 20 is a 'AgentTeleported'" in str(error)


@pytest.mark.parametrize(
    "statement",
    ["pragma application_id = 42", "pragma application_id = 0"],
)
def test_another_programs_database_is_refused_and_left_alone(path: Path, statement: str) -> None:
    change(path, statement)
    before = path.read_bytes()
    error = refusal(path)
    assert isinstance(error, StoreCorrupt)
    assert "database of another program; move it away" in str(error)
    assert path.read_bytes() == before


def test_another_programs_tables_are_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    change(path, "create table recipes (name text)")
    assert "database of another program" in str(refusal(path))


@pytest.mark.parametrize("content", [b"dear diary, " * 500, b"\x00" * 8192, bytes(range(256)) * 64])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(content)
    error = refusal(path)
    assert isinstance(error, StoreCorrupt)
    assert "remuda doctor --repair" in str(error) or "another program" in str(error)


@pytest.mark.parametrize("keep", [0.05, 0.3, 0.5, 0.9])
def test_a_truncated_file_is_refused_with_what_to_do(path: Path, keep: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    error = refusal(path)
    assert isinstance(error, StoreCorrupt)
    assert "is damaged; `remuda doctor --repair`" in str(error)


@pytest.mark.parametrize("page", range(1, 6))
def test_a_page_of_noise_is_found_or_does_no_harm(path: Path, page: int) -> None:
    data = bytearray(path.read_bytes())
    data[page * 4096 : page * 4096 + 4096] = b"\xa5" * min(4096, max(0, len(data) - page * 4096))
    path.write_bytes(data)

    async def told() -> None:
        store = SqliteStore(path)
        try:
            assert await store.restore() == fold(LOG)
        finally:
            await store.close()

    try:
        run(told())
    except RemudaError as error:
        assert isinstance(error, StoreCorrupt)  # noqa: PT017 - either is right, a wrong state is not


FALSE = """update events set kind = 'SessionStarted', data = cast('{"agent":"%s","epoch":1,"ref":""}' as blob)
    where seq = 30"""


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("delete from events where seq = 30", "lacks event 30"),
        ("delete from events where seq <= 2", "lacks event 1"),
        ("update events set data = x'7b7d' where seq = 30", "event 30"),
        ("update events set data = x'ff00' where seq = 30", "event 30"),
        (FALSE % "ghost", "event 30 does not follow"),
        (FALSE % "worker-1", "event 30 does not follow"),
    ],
)
def test_a_log_with_a_hole_or_a_false_event_is_refused_and_says_where(path: Path, statement: str, told: str) -> None:
    change(path, statement)
    error = refusal(path)
    assert isinstance(error, StoreCorrupt)
    assert told in str(error)


def test_a_snapshot_of_events_that_are_gone_is_passed_over(path: Path) -> None:
    async def saved() -> None:
        store = SqliteStore(path)
        await store.save_snapshot(fold(LOG))
        await store.close()

    run(saved())
    change(path, "delete from events where seq > (select max(seq) - 10 from events)")

    async def told() -> None:
        store = SqliteStore(path)
        assert await store.restore() == fold(LOG[:-10])
        await store.close()

    run(told())


def test_a_folder_that_is_not_there_and_a_folder_in_the_files_place_are_said(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "log.db", tmp_path):
        error = refusal(path)
        assert isinstance(error, StoreFailed)
        assert "cannot be opened" in str(error)


def test_reading_only_says_when_a_file_is_too_old_to_read(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    change(path, "pragma user_version = 1", f"pragma application_id = {APPLICATION_ID}")
    with pytest.raises(StoreFailed, match="older schema; `remuda up` brings it up to date"):
        open_log(path, readonly=True)


# --- a full disk ---


async def fill_up(path: Path, prepare: Callable[[SqliteStore], None]) -> tuple[int, BaseException | None]:
    """Append until it fails; how many were acknowledged, and what the failure said."""
    store = SqliteStore(path)
    prepare(store)
    acknowledged = 0
    try:
        while acknowledged < 10_000:
            await store.append([Recorded(acknowledged + 1, 1.0, "", RuntimeStopped("x" * 5000))])
            acknowledged += 1
    except StoreFailed as failure:
        with pytest.raises(RemudaError):  # and nothing after it slips in behind the gap
            await store.append([Recorded(acknowledged + 2, 1.0, "", RuntimeStopped("later"))])
        return acknowledged, failure
    finally:
        await store.close()
    return acknowledged, None


async def kept(path: Path) -> list[int]:
    store = SqliteStore(path)
    records = await store.read(0, 100_000)
    await store.close()
    return [record.seq for record in records]


def test_a_full_disk_is_said_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    acknowledged, failure = run(fill_up(path, lambda store: store._db.pragma("max_page_count", 100)))
    assert acknowledged > 10
    assert "the disk is full; nothing acknowledged is lost" in str(failure)
    assert run(kept(path)) == list(range(1, acknowledged + 1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk takes more rights than we have")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full_loses_nothing_acknowledged_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    path = small_disk / "log.db"
    acknowledged, failure = run(fill_up(path, lambda _: None))
    assert acknowledged > 10
    assert "the disk is full" in str(failure) or "is the disk full or failing" in str(failure)
    ballast.unlink()
    assert run(kept(path)) == list(range(1, acknowledged + 1))
    again, _ = run(fill_up_from(path, acknowledged))
    assert again > acknowledged


async def fill_up_from(path: Path, last: int) -> tuple[int, None]:
    store = SqliteStore(path)
    await store.append([Recorded(last + 1, 1.0, "", RuntimeStopped("room again"))])
    await store.close()
    return last + 1, None
