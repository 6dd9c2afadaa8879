"""Steps 7 to 10: from the facts of a turn that has ended to its record in git. Each step may be done again: killed
anywhere, the next start does them all and comes to the same bytes."""

import fcntl
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from remuda.domain.errors import Conflict, RemudaError
from remuda.git import GitFailed, git
from remuda.git.objects import Objects
from remuda.git.record import BEFORE, Note, Recorded, annotate, commit, resolve, tag, tidy
from remuda.records import index
from remuda.records.artifacts import adr, pull_request
from remuda.records.context import session_context
from remuda.records.facts import Turn, load
from remuda.records.files import Lock, read, write_whole
from remuda.records.journal import OpenTurn
from remuda.records.keeping import BESIDE, BRANCH
from remuda.records.manifest import Manifest, manifest, read_manifest
from remuda.records.signing import load_key
from remuda.records.snapshot import LEDGER_FILES
from remuda.records.statement import envelope, pae, statement
from remuda.records.text import one_line, path_text

log = logging.getLogger("remuda.records")

NOTES = "refs/notes/remuda"
ATTESTATION = "attestation.json"


@dataclass(slots=True)
class Record:
    """What the facts make: every byte that will be written, and the commit once it is there."""

    turn: Turn
    manifest: Manifest
    objects: Objects
    files: dict[str, bytes]  # of the turn's directory, in the order of the steps
    commit: str = ""
    failed: list[str] = field(default_factory=list)

    @property
    def manifest_sha256(self) -> str:
        return hashlib.sha256(self.files["manifest.json"]).hexdigest()

    @property
    def at(self) -> int:
        return int(self.turn.finished_at)


def build(open_turn: OpenTurn, objects: Objects, key: Path | None) -> Record:
    turn, begun = load(open_turn, objects), open_turn.facts("begun") or {}
    files = {"session_context.md": session_context(begun), "pull_request.md": pull_request(turn), "adr.md": adr(turn)}
    files |= turn.logs
    signer, sign = load_key(key) if key else (None, None)
    files["manifest.json"] = manifest(turn, dict(files), signer)
    made = read_manifest(files["manifest.json"])
    blobs = {path_text(each.path): each.blob for each in turn.changes}
    payload = statement(made, hashlib.sha256(files["manifest.json"]).hexdigest(), blobs)
    signatures = [(signer.keyid, sign(pae(payload)))] if signer and sign else []
    files[ATTESTATION] = envelope(payload, signatures)
    return Record(turn, made, objects, files)


def publish(open_turn: OpenTurn, key: Path | None = None) -> Record | None:
    """The whole record. None when another process is at it, or has been. A step that fails is written down and the
    rest go on; the turn then stays in the journal, and the next start tries again."""
    try:
        busy = os.open(open_turn.folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(busy, fcntl.LOCK_EX)
        if not os.path.exists(f"{open_turn.folder}/ended.json"):
            return None
        with Objects(Path(open_turn.repository.common)) as objects:
            record = build(open_turn, objects, key)
            for name, step in STEPS:
                _do(open_turn, record, name, step)
        if not record.failed:
            open_turn.close()
        _tidy(open_turn, record)
        return record
    finally:
        os.close(busy)


def _tidy(open_turn: OpenTurn, record: Record) -> None:
    common = Path(open_turn.repository.common)
    try:
        with Lock(f"{open_turn.repository.shared}/refs-lock"):
            tidy(_folder(open_turn, record), common)
    except (RemudaError, OSError) as error:
        log.info("the packs of records were not put together: %s", error)


def _do(open_turn: OpenTurn, record: Record, name: str, step: "Step") -> None:
    try:
        step(open_turn, record)
    except (RemudaError, OSError) as error:
        record.failed.append(f"{name}: {error}")
        open_turn.add("errors", {"step": name, "error": str(error)})
        log.warning("turn %d: %s failed: %s", open_turn.number, name, error)


# --- the steps ---


def _files(_turn: OpenTurn, record: Record) -> None:
    """Into the work tree, where the project wants them there."""
    begun = record.turn.begun
    if begun.records == BESIDE or not os.path.isdir(begun.top):
        return
    folder = f"{begun.top}/{begun.directory}"
    for name, data in record.files.items():
        path = f"{folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if read(path) != data:
            write_whole(path, data)


def _index(open_turn: OpenTurn, record: Record) -> None:
    """The view in the work tree; made anew from the records where it cannot be used."""
    begun = record.turn.begun
    if begun.records == BESIDE or not os.path.isdir(begun.top):
        return
    folder = f"{begun.top}/{begun.folder}"
    path = f"{folder}/turns_index.csv"
    os.makedirs(folder, exist_ok=True)
    with Lock(f"{open_turn.repository.shared}/index-lock"):
        before = read(path)
        rows = index.with_row(before, index.row(record.manifest))
        data = rows if rows is not None else index.render(rows_in(Path(folder)))
        if data != before:
            write_whole(path, data)
        if read(f"{folder}/.gitattributes") is None:
            write_whole(f"{folder}/.gitattributes", index.ATTRIBUTES)


def rows_in(folder: Path) -> list[index.Row]:
    """A row for each readable manifest in a ledger."""
    found = []
    for path in sorted(folder.glob("turns/*/manifest.json")):
        try:
            found.append(index.row(read_manifest(path.read_bytes())))
        except (RemudaError, OSError) as error:
            log.warning("%s is left out of the index: %s", path, error)
    return found


def _commit(open_turn: OpenTurn, record: Record) -> None:
    folder, begun, ended, objects = _folder(open_turn, record), record.turn.begun, record.turn.ended, record.objects
    ref, ledger = f"refs/turns/{begun.uuid}", begun.folder
    with Lock(f"{open_turn.repository.shared}/refs-lock"):
        kept = objects.id(f"{ended.head}:{ledger}/turns") if ended.head else ""
        before = _before(folder, record)
        files = {f"{begun.directory}/{name}": data for name, data in record.files.items()}
        files[f"{ledger}/turns_index.csv"] = _committed_index(record)
        files[f"{ledger}/.gitattributes"] = index.ATTRIBUTES
        made = Recorded(
            tree=ended.tree,
            files=files,
            kept=(f"{ledger}/turns", kept) if kept else None,
            parents=tuple(dict.fromkeys(filter(None, (ended.head, BEFORE if before else begun.head)))),
            message=commit_message(record),
            at=record.at,
        )
        if objects.id(ref):  # a try before this one came so far, perhaps without its note
            record.commit = commit(folder, ref, made, before=before)
            annotate(folder, NOTES, record.commit, note_text(record))
        else:
            note = Note(NOTES, note_text(record), objects.id(NOTES))
            record.commit = commit(folder, ref, made, before=before, note=note)


def _before(folder: Path, record: Record) -> Recorded | None:
    """A clone must be able to compare with the work as it was before the turn. The commit that was checked out will do
    where nothing else was in the work tree but records; else there has to be one of our own."""
    begun, objects = record.turn.begun, record.objects
    if begun.head:
        tree = objects.id(f"{begun.head}^{{tree}}")
        has_records = tree != begun.tree and objects.id(f"{begun.head}:{begun.folder}")
        if tree == begun.tree or (has_records and _only_records(folder, tree, begun.tree, begun.folder)):
            return None
    return Recorded(begun.tree, {}, None, (begun.head,) if begun.head else (), before_message(record), record.at)


def _only_records(folder: Path, tree: str, work: str, ledger: str) -> bool:
    differ = git(folder, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, work).split(b"\0")
    return all(is_ledger(path, ledger) for path in differ if path)


def is_ledger(path: bytes, ledger: str) -> bool:
    """Whether a path is one of the records' own."""
    rest = path.removeprefix(os.fsencode(f"{ledger}/"))
    return rest != path and os.fsdecode(rest.split(b"/")[0]) in LEDGER_FILES


def _committed_index(record: Record) -> bytes:
    """Of the records in the commit's own history: nothing that is elsewhere, so that it is the same at any time."""
    added, head = index.row(record.manifest), record.turn.ended.head
    before = record.objects.get(f"{head}:{record.turn.begun.folder}/turns_index.csv") if head else None
    return index.with_row(before.data if before else None, added) or index.render([added])


def _tag(open_turn: OpenTurn, record: Record) -> None:
    if not record.commit:
        raise Conflict("there is no commit to tag yet")
    folder, name = _folder(open_turn, record), f"turn/{record.turn.number}"
    there = record.objects.id(f"refs/tags/{name}^{{commit}}")
    if there == record.commit:
        return
    if there:
        raise Conflict(
            f"tag {name} is on another commit ({there[:12]}); it is left alone. The record is {record.commit[:12]}"
        )
    try:
        tag(folder, name, record.commit, tag_message(record), record.at)
    except GitFailed as error:
        if resolve(folder, "refs/tags/turn"):
            raise Conflict(
                "a tag named `turn` is in the way of `turn/…`; rename it (git tag NEW turn && git tag -d turn), "
                "then `remuda turn recover`"
            ) from error
        raise


def _branch(_turn: OpenTurn, record: Record) -> None:
    """Move the branch that is checked out onto the commit, if it is still where the turn left it."""
    begun, ended = record.turn.begun, record.turn.ended
    if begun.records != BRANCH or not record.commit or not os.path.isdir(begun.top):
        return
    top = Path(begun.top)
    now = resolve(top, "HEAD")
    if now != record.commit:
        if now != ended.head:
            raise Conflict(f"the branch has moved since turn {begun.number} ended; its record is {record.commit[:12]}")
        git(
            top,
            "update-ref",
            "-m",
            f"turn {begun.number}",
            "HEAD",
            record.commit,
            ended.head or "0" * len(record.commit),
        )
    git(top, "read-tree", record.commit)
    with suppress(GitFailed):  # so it says that something has changed in the work tree since; that is as it should be
        git(top, "update-index", "-q", "--refresh")


Step = Callable[[OpenTurn, Record], None]
STEPS: tuple[tuple[str, Step], ...] = (
    ("files", _files),
    ("index", _index),
    ("commit", _commit),
    ("tag", _tag),
    ("branch", _branch),
)


# --- messages ---


def commit_message(record: Record) -> str:
    turn = record.turn
    who = one_line(turn.begun.agent).replace(":", "-") + (f":{one_line(turn.model)}" if turn.model else "")
    return (
        f"turn {turn.number}: {one_line(turn.summary, 60)}\n\nTurn-Id: {turn.begun.uuid}\n"
        f"Turn-Directory: {turn.begun.directory}\nAssisted-by: {who}\n"
    )


def before_message(record: Record) -> str:
    return f"before turn {record.turn.number}: the work as it was\n\nTurn-Base-Of: {record.turn.begun.uuid}\n"


def tag_message(record: Record) -> str:
    attested = hashlib.sha256(record.files[ATTESTATION]).hexdigest()
    return (
        f"turn {record.turn.number}\n\nTurn-Id: {record.turn.begun.uuid}\n"
        f"Manifest-SHA256: {record.manifest_sha256}\nAttestation-SHA256: {attested}\n"
    )


def note_text(record: Record) -> bytes:
    return f"turn {record.turn.number} {record.turn.begun.uuid} sha256:{record.manifest_sha256}\n".encode()


def _folder(open_turn: OpenTurn, record: Record) -> Path:
    """Where git is asked: the turn's own work tree, or the repository where that is gone."""
    top = record.turn.begun.top
    return Path(top if os.path.isdir(top) else open_turn.repository.common)
