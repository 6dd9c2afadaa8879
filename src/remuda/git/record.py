"""One commit with the work and what is written about it, made in one call to git and without touching a branch, the
index or the work tree. The same input makes the same commit."""

import os
from dataclasses import dataclass
from pathlib import Path

from remuda.git import GitFailed, git, line

AUTHOR = "Remuda <turns@remuda.invalid>"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the commit is made of."""

    tree: str  # the work
    files: dict[str, bytes]  # the records, laid over it
    kept: tuple[str, str] | None  # (path, tree id): records of earlier turns that stay
    parents: tuple[str, ...]
    message: str
    at: int  # seconds


MOST_PACKS = 64


def tidy(folder: Path, common: Path) -> None:
    """A record is a small pack, flushed once, where loose objects would be flushed one by one. So that ten thousand
    turns are not ten thousand packs, the small ones are put together now and then."""
    packs = os.listdir(common / "objects/pack")
    lazy = any(name.endswith(".promisor") for name in packs)  # a partial clone has rules of its own for its packs
    if not lazy and sum(name.endswith(".pack") for name in packs) > MOST_PACKS:
        git(folder, "repack", "-q", "-d", "--geometric=2")


@dataclass(frozen=True, slots=True)
class Note:
    """On the commit that is made, in a line of notes that goes on from `after`."""

    ref: str
    text: bytes
    after: str


BEFORE = ":2"  # as a parent: the commit that is made just before


def commit(
    folder: Path, ref: str, recorded: Recorded, *, before: Recorded | None = None, note: Note | None = None
) -> str:
    """Its id. `ref` is made to point at it; `before` is made first, for a parent that does not exist yet."""
    stream = [_commit(ref, BEFORE, before)] if before else []
    stream.append(_commit(ref, ":1", recorded))
    if note:
        stream.append(_note(note, recorded.at))
    stream.append(b"get-mark :1\ndone\n")
    options = ("-c", "core.fsync=pack,pack-metadata,reference", "-c", "fastimport.unpackLimit=1")
    made = git(folder, *options, "fast-import", "--quiet", "--done", "--date-format=raw", stdin=b"".join(stream))
    return made.decode().strip()


def _commit(ref: str, mark: str, recorded: Recorded) -> bytes:
    who = f"{AUTHOR} {recorded.at} +0000"
    parts = [
        f"commit {ref}\nmark {mark}\nauthor {who}\ncommitter {who}\n".encode(),
        _data(recorded.message.encode()),
        *(f"{'merge' if number else 'from'} {parent}\n".encode() for number, parent in enumerate(recorded.parents)),
        f'M 040000 {recorded.tree} ""\n'.encode(),
    ]
    if recorded.kept:
        parts.append(f"M 040000 {recorded.kept[1]} {_quoted(recorded.kept[0])}\n".encode())
    for path, data in recorded.files.items():
        parts += [f"M 100644 inline {_quoted(path)}\n".encode(), _data(data)]
    return b"".join([*parts, b"\n"])


def _note(note: Note, at: int) -> bytes:
    head = [f"commit {note.ref}\ncommitter {AUTHOR} {at} +0000\n".encode(), _data(b"Notes of turns\n")]
    if note.after:
        head.append(f"from {note.after}\n".encode())
    return b"".join([*head, b"N inline :1\n", _data(note.text), b"\n"])


def _data(data: bytes) -> bytes:
    return f"data {len(data)}\n".encode() + data + b"\n"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def resolve(folder: Path, name: str) -> str:
    """The id behind a name, or nothing."""
    try:
        return line(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except GitFailed:
        return ""


def tag(folder: Path, name: str, target: str, message: str, at: int) -> None:
    """Annotated, and only where there is none: whoever moves a tag moves what others rely on."""
    who = AUTHOR.partition(" <")
    env = {
        "GIT_COMMITTER_NAME": who[0],
        "GIT_COMMITTER_EMAIL": who[2].rstrip(">"),
        "GIT_COMMITTER_DATE": f"@{at} +0000",
    }
    options = ("-c", "core.fsync=loose-object,reference", "-c", "tag.gpgSign=false", "-c", "core.commentChar=;")
    git(folder, *options, "tag", "-a", "--no-sign", "--cleanup=verbatim", "-F", "-", name, target,
        stdin=message.encode(), env=env)  # fmt: skip


def annotate(folder: Path, ref: str, target: str, text: bytes) -> None:
    """Put a note on a commit that has none."""
    if not git(folder, "notes", f"--ref={ref}", "list").count(f" {target}\n".encode()):
        who = AUTHOR.partition(" <")
        env = {f"GIT_{each}_{what}": value for each in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", who[0]), ("EMAIL", who[2].rstrip(">")))}  # fmt: skip
        git(folder, "notes", f"--ref={ref}", "add", "-F", "-", target, stdin=text, env=env)
