"""Real repositories with real turns in them."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from remuda.git.objects import Objects
from remuda.records.begin import Asked, begin, end, use_tool
from remuda.records.binding import read_history
from remuda.records.journal import OpenTurn
from remuda.records.keeping import Keeping
from remuda.records.ledger import marked
from remuda.records.publish import Record, publish
from remuda.records.repository import find_repository
from remuda.records.verify import Ground, Verified, is_shallow, verify

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip
SECRET = "ghp_" + "a1B2" * 9


def git(folder: Path, *arguments: str, stdin: bytes = b"", **env: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **IDENTITY, **env},
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout.decode(errors="surrogateescape").strip()


def repository(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    """With one commit, unless there is nothing to commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", "--template=")
    for path, text in (files or {"readme.txt": "hello\n"}).items():
        write(folder, path, text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def write(top: Path, path: str, text: str) -> None:
    at = top / path
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(text)


Work = Callable[[OpenTurn], None]


def record(
    top: Path,
    work: Work | None = None,
    *,
    asked: Asked | None = None,
    keeping: Keeping | None = None,
    key: Path | None = None,
    **said: object,
) -> Record:
    """One whole turn: it begins, something is done in it, it ends, and it is on record."""
    turn = begin(find_repository(str(top)), keeping or Keeping(), asked or Asked("Do it.", "claude", model="m-1"))
    if work is None:
        write(top, "work.txt", f"of turn {turn.number}\n")
    else:
        work(turn)
    use_tool(turn, "Write", argument="work.txt")
    outcome = str(said.pop("outcome", "completed"))
    assert end(turn, outcome, **{"summary": "did it", **said})
    made = publish(turn, key)
    assert made is not None
    assert made.failed == [], made.failed
    return made


def verified(folder: Path, trusted: Mapping[str, str] | None = None) -> list[Verified]:
    with Objects(folder) as objects:
        turns = marked(folder, objects)
        ground = Ground(folder, objects, read_history(folder, turns), is_shallow(folder), trusted)
        return [verify(ground, each) for each in turns]


def all_valid(folder: Path) -> int:
    """How many turns there are; every one of them is valid."""
    results = verified(folder)
    assert [(each.verdict, each.wrong, each.unseen) for each in results] == [("valid", [], [])] * len(results)
    return len(results)


def key_pair(folder: Path, name: str = "key") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "turns", "-f", str(path)], check=True)
    return path
