"""The database file: opening it, bringing its schema up to date, and saying in plain words why it cannot be used."""

from importlib.resources import files
from pathlib import Path

import apsw

from remuda.domain.errors import Conflict, RemudaError, StoreCorrupt, StoreFailed, StoreTooNew

APPLICATION_ID = 0x52454D55  # "REMU": says what the file is, also to `file` and to the sqlite3 shell

# Order matters: the more particular first.
_REASONS: tuple[tuple[type[apsw.Error], type[RemudaError], str], ...] = (
    (
        apsw.NotADBError,
        StoreCorrupt,
        "{path} is not a Remuda log or is damaged; `remuda doctor --repair` saves what can be read",
    ),
    (apsw.CorruptError, StoreCorrupt, "{path} is damaged; `remuda doctor --repair` saves every event that can be read"),
    (apsw.FullError, StoreFailed, "the disk is full; nothing acknowledged is lost: free some space, then `remuda up`"),
    (apsw.ReadOnlyError, StoreFailed, "{path} cannot be written; give yourself the right to write there"),
    (apsw.CantOpenError, StoreFailed, "{path} cannot be opened; does the directory exist, and may you write in it?"),
    (apsw.PermissionsError, StoreFailed, "{path} may not be opened by you"),
    (apsw.BusyError, Conflict, "{path} is in use by another process; see `remuda doctor`"),
    (apsw.IOError, StoreFailed, "{path} could not be read or written ({error}); is the disk full or failing?"),
)


def explain(path: Path, error: apsw.Error) -> RemudaError:
    for kind, ours, reason in _REASONS:
        if isinstance(error, kind):
            return ours(reason.format(path=path, error=error))
    return StoreFailed(f"{path}: {error}")


def open_log(path: Path, *, readonly: bool = False) -> apsw.Connection:
    try:
        if not readonly:
            return _opened(path, str(path), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            return _opened(path, str(path), apsw.SQLITE_OPEN_READONLY)
        except apsw.CantOpenError:
            # Even a reader wants to write beside the file, to share it with writers. In a directory that nobody can
            # write in there are none, and all is in the file itself if no write-ahead log is left.
            if not path.exists() or _wal_size(path):
                raise
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            return _opened(path, f"{path.absolute().as_uri()}?immutable=1", flags)
    except apsw.Error as error:
        raise explain(path, error) from error


def _wal_size(path: Path) -> int:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _opened(path: Path, name: str, flags: int) -> apsw.Connection:
    db = apsw.Connection(name, flags=flags)
    try:
        _prepare(db, path, not flags & apsw.SQLITE_OPEN_READWRITE)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: apsw.Connection, path: Path, readonly: bool) -> None:
    db.set_busy_timeout(5000)
    scripts = sorted(
        (each for each in files("remuda.store").joinpath("sql").iterdir() if each.name.endswith(".sql")),
        key=lambda each: each.name,
    )
    version = db.pragma("user_version")
    if version > len(scripts):
        raise StoreTooNew(
            f"{path} was written by a newer Remuda (schema {version}, this one knows {len(scripts)}); upgrade Remuda"
        )
    application = db.pragma("application_id")
    if application != APPLICATION_ID and (application or version or _tables(db)):
        raise StoreCorrupt(f"{path} is a database of another program; move it away and try again")
    if readonly:
        if version == 0:
            raise StoreFailed(f"{path} has nothing in it yet; `remuda up` begins it")
        if version < len(scripts):
            raise StoreFailed(f"{path} has an older schema; `remuda up` brings it up to date")
        return
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    if version < len(scripts):
        with db:
            for script in scripts[version:]:
                db.execute(script.read_text())
            db.pragma("application_id", APPLICATION_ID)
            db.pragma("user_version", len(scripts))


def _tables(db: apsw.Connection) -> int:
    return int(db.execute("select count(*) from sqlite_schema").get)
