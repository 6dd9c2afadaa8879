"""What is in the work tree, as a git tree: through an index of our own, so that the user's is never touched.

The private index is begun as a copy of the user's, so that git knows from the first time which files are as it last saw
them, and it is kept, so that the next snapshot reads only what changed. When the user's index changes it is begun anew:
what is tracked may have changed with it. Ignored files are left out; so are the records themselves, for a ledger of ten
thousand turns must not make the next turn slow.
"""

import os

from remuda.records.files import Lock, discard, read, write_whole
from remuda.records.repository import Repository

LEDGER_FILES = ("turns", "turns_index.csv", ".gitattributes")  # ours, below the ledger's folder
LONGEST_EVIDENCE = 2000

# As deaf as `remuda.git` to what surrounds us; that room cannot be imported here for what it costs.
_OURS = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


class SnapshotFailed(Exception):
    """git could not tell what is in the work tree."""


class Snapshot:
    """A tree, and what git could not read, in its own words."""

    def __init__(self, tree: str, unread: str) -> None:
        self.tree, self.unread = tree, unread


def snapshot(repository: Repository, folder: str) -> Snapshot:
    """Of the work tree without the ledger, which is in `folder`."""
    os.makedirs(repository.own, mode=0o700, exist_ok=True)
    index = f"{repository.own}/index"
    with Lock(f"{repository.own}/lock"):
        discard(f"{index}.lock")  # of a git that was killed: nobody else uses this index while we hold our own lock
        try:
            found = _look(repository, index, folder)
        except SnapshotFailed:  # a damaged private index is no more than a lost cache
            discard(index)
            found = _look(repository, index, folder)
        write_whole(f"{repository.own}/seed", _identity(repository, folder), 0o600, flush=False)
    return found


def _look(repository: Repository, index: str, folder: str) -> Snapshot:
    excludes = _seed(repository, index, folder)
    surroundings = _environment(index)
    options = ("-c", f"core.excludesFile={excludes}", "-c", "core.untrackedCache=true", *_CALM)
    code, _, said = run(repository.top, (*options, "add", "-A", "--ignore-errors"), surroundings)
    if code not in (0, 1):
        raise SnapshotFailed(f"git add failed ({code}): {said}")
    failed, tree, why = run(repository.top, (*_CALM, "write-tree"), surroundings)
    if failed:
        raise SnapshotFailed(f"git write-tree failed ({failed}): {why or said}")
    return Snapshot(tree, said if code else "")


_CALM = ("-c", "core.fsmonitor=false", "-c", "core.splitIndex=false", "-c", "core.safecrlf=false",
         "-c", "advice.addEmbeddedRepo=false")  # fmt: skip


def _seed(repository: Repository, index: str, folder: str) -> str:
    """See that the private index can be used; the file of what it must not see."""
    path = f"{repository.own}/excludes"
    seeded = read(f"{repository.own}/seed")
    users = read(f"{repository.own}/users-excludes")
    fresh = seeded != _identity(repository, folder) or not os.path.exists(index) or users is None
    if fresh:
        code, said, _ = run(repository.top, ("config", "--type=path", "--get", "core.excludesFile"), _environment(""))
        users = os.fsencode(said if code == 0 else _default_excludes())
        write_whole(f"{repository.own}/users-excludes", users, 0o600, flush=False)
        _copy_index(repository, index, folder)
    wanted = (_try_read(os.fsdecode(users or b"")) or b"").rstrip(b"\n") + b"\n" + _patterns(folder)
    if read(path) != wanted:
        write_whole(path, wanted, 0o600, flush=False)
    return path


def _default_excludes() -> str:
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.path.expanduser('~')}/.config"
    return f"{home}/git/ignore"


def _try_read(path: str) -> bytes | None:
    try:
        return read(path) if path else None
    except OSError:
        return None


def _patterns(folder: str) -> bytes:
    """The ledger's own files, as ignore rules from the root."""
    escaped = "".join(f"\\{each}" if each in "\\*?[ " else each for each in folder)
    return b"".join(os.fsencode(f"/{escaped}/{name}\n") for name in LEDGER_FILES)


def _identity(repository: Repository, folder: str) -> bytes:
    """Of the user's index as it is now; git replaces it whenever it changes."""
    try:
        seen = os.stat(f"{repository.git_dir}/index")
        return f"{seen.st_ino} {seen.st_size} {seen.st_mtime_ns} {folder}".encode(errors="surrogateescape")
    except FileNotFoundError:
        return b"none " + os.fsencode(folder)


def _copy_index(repository: Repository, index: str, folder: str) -> None:
    data = _try_read(f"{repository.git_dir}/index")
    if data is None:
        discard(index)
        return
    write_whole(index, data, 0o600, flush=False)
    ours = [f"{folder}/{name}" for name in LEDGER_FILES]
    surroundings = {**_environment(index), "GIT_LITERAL_PATHSPECS": "1"}
    remove = ("rm", "-r", "-q", "-f", "--cached", "--ignore-unmatch", "--sparse", "--", *ours)
    code, _, said = run(repository.top, (*_CALM, *remove), surroundings)
    if code:
        raise SnapshotFailed(f"git rm --cached in the private index failed ({code}): {said}")


def _environment(index: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _PASSED}
    return {**kept, **_OURS, "GIT_INDEX_FILE": index} if index else {**kept, **_OURS}


_PASSED = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")


def run(folder: str, arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[int, str, str]:
    """git's exit code, its answer and what it said about it. `subprocess` would cost more than git itself."""
    answer, told = os.pipe(), _scratch()
    try:
        try:
            child = os.posix_spawn(
                _git(),
                ["git", "-C", folder, *arguments],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, answer[1], 1),
                    (os.POSIX_SPAWN_DUP2, told, 2),
                ],
            )
        finally:
            os.close(answer[1])
        out = b""
        while more := os.read(answer[0], 1 << 16):
            out += more
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = os.pread(told, LONGEST_EVIDENCE, 0)
    finally:
        os.close(answer[0])
        os.close(told)
    return code, os.fsdecode(out).rstrip("\n"), said.decode(errors="replace").strip()


def _scratch() -> int:
    """A file without a name, for what git says while we read its answer."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("said")
    path = f"{os.environ.get('TMPDIR') or '/tmp'}/remuda-{os.getpid()}"  # noqa: S108  (exclusive, and gone at once)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return file


def _git() -> str:
    for folder in os.get_exec_path():
        path = f"{folder}/git"
        if os.access(path, os.X_OK):
            return path
    raise SnapshotFailed("git was not found on PATH; install git")
