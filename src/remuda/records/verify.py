"""Whether a record is what it claims to be: all of it is worked out again from git's objects, with no private state."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from remuda.domain.errors import RemudaError
from remuda.git import line
from remuda.git.objects import Missing, Objects
from remuda.git.tree import Change, changes
from remuda.records import index
from remuda.records.artifacts import NO_DECISION
from remuda.records.binding import Binding, History, binding
from remuda.records.ledger import Marked, Stored, read_turn
from remuda.records.manifest import Manifest
from remuda.records.publish import ATTESTATION, is_ledger
from remuda.records.signing import fingerprint, holds
from remuda.records.snapshot import LEDGER_FILES
from remuda.records.statement import open_envelope, pae, statement
from remuda.records.text import path_text

Verdict = Literal["valid", "invalid", "unverifiable"]
REQUIRED = ("session_context.md", "pull_request.md", "adr.md")
PLAIN = "100644"
HEADINGS = ("### Context", "### Decision", "### Rationale", "### Alternatives considered", "### Consequences")
# What a valid record may still have to say, and a caller may take for a failure.
Finding = Literal["validation", "skipped", "unsigned", "rebound", "orphaned", "unfinished"]


@dataclass(slots=True)
class Verified:
    turn: Marked
    wrong: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # why it cannot be verified here
    findings: dict[Finding, str] = field(default_factory=dict)
    manifest: Manifest | None = None
    binding: Binding | None = None
    bound_by: str = ""
    signed_by: str = ""

    @property
    def verdict(self) -> Verdict:
        return "invalid" if self.wrong else "unverifiable" if self.unseen else "valid"


@dataclass(frozen=True, slots=True)
class Ground:
    """What a repository is verified against."""

    folder: Path
    objects: Objects
    history: History
    shallow: bool
    trusted: Mapping[str, str] | None  # key id -> public key; None: any key will do, and is named


def is_shallow(folder: Path) -> bool:
    return line(folder, "rev-parse", "--is-shallow-repository") == "true"


def verify(ground: Ground, turn: Marked) -> Verified:
    found = Verified(turn)
    if ground.shallow:
        found.unseen.append("the clone is shallow; `git fetch --unshallow` (in CI: fetch-depth: 0), then try again")
    if not turn.tree:
        found.unseen.append(f"its commit {turn.commit[:12]} is not here; `git fetch --tags`")
        return found
    try:
        record, manifest = read_turn(ground.objects, turn)
        found.manifest = manifest
        _tag(found, record, manifest)
        _artifacts(found, record, manifest)
        _index(found, record, manifest)
        blobs = _content(ground, found, manifest)
        _attestation(ground, found, record, manifest, blobs)
        _completion(found, manifest)
        _bind(ground, found, manifest)
    except Missing as error:
        found.unseen.append(str(error))
    except RemudaError as error:
        found.wrong.append(error.message)
    return found


def _tag(found: Verified, record: Stored, manifest: Manifest) -> None:
    turn, sha256 = found.turn, hashlib.sha256(record.files["manifest.json"]).hexdigest()
    if turn.uuid != manifest.turn_uuid:
        found.wrong.append(f"the commit is of turn {turn.uuid or 'nobody'}, the manifest of {manifest.turn_uuid}")
    if record.directory != manifest.provenance.directory:
        found.wrong.append("the manifest is of another directory")
    if not turn.number:
        found.findings["unfinished"] = "it has no tag here"
        return
    if turn.tag is None:
        found.wrong.append(f"tag turn/{turn.number} is not annotated")
        return
    if turn.number != manifest.turn_id:
        found.wrong.append(f"tag turn/{turn.number} is on the record of turn {manifest.turn_id}")
    if turn.tag.get("Turn-Id") != manifest.turn_uuid:
        found.wrong.append("the tag names another turn's uuid")
    if turn.tag.get("Manifest-SHA256") != sha256:
        found.wrong.append("manifest.json is not the one that was tagged")
    if turn.tag.get("Attestation-SHA256") != hashlib.sha256(record.files.get(ATTESTATION, b"")).hexdigest():
        found.wrong.append(f"{ATTESTATION} is not the one that was tagged")


def _artifacts(found: Verified, record: Stored, manifest: Manifest) -> None:
    listed = {each.path: each.sha256 for each in manifest.records}
    for name in REQUIRED:
        if name not in record.files:
            found.wrong.append(f"{name} is missing")
        elif name not in listed:
            found.wrong.append(f"{name} is not in the manifest")
    for name, sha256 in listed.items():
        if name in record.files and hashlib.sha256(record.files[name]).hexdigest() != sha256:
            found.wrong.append(f"{name} is not as it was recorded")
        elif name not in record.files and name not in REQUIRED:
            found.wrong.append(f"{name} is missing")
    for name, entry in record.entries.items():
        if name not in (*listed, "manifest.json", ATTESTATION):
            found.wrong.append(f"{name} is in the directory and not in the manifest")
        if entry.mode != PLAIN:
            found.wrong.append(f"{name} is no plain file (mode {entry.mode})")
    _adr(found, record)


def _adr(found: Verified, record: Stored) -> None:
    adr = record.files.get("adr.md", b"").decode(errors="replace")
    if not adr.startswith(NO_DECISION) and not all(heading in adr for heading in HEADINGS):
        found.wrong.append("adr.md is neither a decision record nor the sentence that there was none")


def _index(found: Verified, record: Stored, manifest: Manifest) -> None:
    rows = index.parse(record.csv) if record.csv is not None else None
    if rows is None:
        found.wrong.append("turns_index.csv is missing or is no index")
    elif rows.count(index.row(manifest)) != 1:
        found.wrong.append("turns_index.csv has no row for this turn as it was recorded")


def _content(ground: Ground, found: Verified, manifest: Manifest) -> Mapping[str, str]:
    """The work itself: the trees before and after, and every path that differs between them. Path -> blob."""
    turn, origin = found.turn, manifest.provenance
    if _work_tree(ground.objects, turn.tree, origin.folder) != origin.tree_after:
        found.wrong.append("the work in the commit is not the work that was recorded")
    base = _base(ground, turn, manifest)
    if base is None:
        found.wrong.append("the work as it was before the turn is not among the commit's parents")
        return {}
    raw = changes(ground.folder, base, turn.tree, renames=False)
    differ = [each for each in raw if not is_ledger(each.path, origin.folder)]
    sums = {each.blob: ground.objects.digest(each.mode, each.blob) for each in differ if each.change != "deleted"}
    _compare(found, manifest, differ, sums)
    return {path_text(each.path): each.blob for each in differ if each.change != "deleted"}


def _compare(found: Verified, manifest: Manifest, differ: list[Change], sums: Mapping[str, str]) -> None:
    there = {path_text(each.path): (each.mode, sums[each.blob]) for each in differ if each.change != "deleted"}
    gone = {path_text(each.path) for each in differ if each.change == "deleted"}
    told = {each.path: (each.mode, each.sha256) for each in manifest.outputs}
    deleted = {each.path for each in manifest.deletions} | {
        each.previous_path for each in manifest.outputs if each.change == "renamed"
    }
    for path in sorted(there.keys() | told.keys()):
        if there.get(path) != told.get(path):
            found.wrong.append(
                f"{path} is not as the manifest says" if path in told else f"{path} is not in the manifest"
            )
    for path in sorted(gone ^ deleted):
        found.wrong.append(f"{path} {'was deleted and is not in the manifest' if path in gone else 'was not deleted'}")
    tasks = [each for task in manifest.tasks for each in task.outputs]
    if [(each.path, each.sha256) for each in tasks] != [(each.path, each.sha256) for each in manifest.outputs]:
        found.wrong.append("the outputs of the tasks are not those of the turn")


def _work_tree(objects: Objects, tree: str, folder: str) -> str:
    """The id of a tree without the records in it."""
    names = tuple(each.encode() for each in LEDGER_FILES)
    return objects.tree_without(tree, [part.encode() for part in folder.split("/")], names) or _empty(len(tree))


def _empty(width: int) -> str:
    return hashlib.new("sha1" if width == 40 else "sha256", b"tree 0\0", usedforsecurity=False).hexdigest()


def _base(ground: Ground, turn: Marked, manifest: Manifest) -> str | None:
    """The tree of the parent that is the work before the turn; None when no parent is."""
    origin = manifest.provenance
    for parent in turn.parents:
        commit = ground.objects.get(parent)
        if commit is None:
            raise Missing(f"commit {parent[:12]} is not here; `git fetch --unshallow` or `git fetch` brings it")
        tree = commit.data[5 : commit.data.index(b"\n")].decode()
        if _work_tree(ground.objects, tree, origin.folder) == origin.tree_before:
            return tree
    return None


def _attestation(ground: Ground, found: Verified, record: Stored, manifest: Manifest, blobs: Mapping[str, str]) -> None:
    try:
        payload, signatures = open_envelope(record.files.get(ATTESTATION, b""))
    except ValueError as error:
        found.wrong.append(f"{ATTESTATION} cannot be read: {error}")
        return
    plain = dict.fromkeys((each.path for each in manifest.outputs), "") | dict(blobs)
    expected = statement(manifest, hashlib.sha256(record.files["manifest.json"]).hexdigest(), plain)
    if payload != expected:
        found.wrong.append(f"{ATTESTATION} attests something else than this record")
    signer = manifest.provenance.signer
    if signer is None and not signatures:
        found.findings["unsigned"] = "it is not signed"
        return
    _signature(ground, found, manifest, pae(payload), dict(signatures))


def _signature(
    ground: Ground, found: Verified, manifest: Manifest, signed: bytes, signatures: dict[str, bytes]
) -> None:
    signer = manifest.provenance.signer
    if signer is None or signer.keyid not in signatures or len(signatures) != 1:
        found.wrong.append("its signature was taken away or put there by someone else")
        return
    try:
        public = signer.public_key if fingerprint(signer.public_key) == signer.keyid else ""
    except (ValueError, IndexError):
        public = ""
    if ground.trusted is not None:
        public = ground.trusted.get(signer.keyid, "")
        if not public:
            found.wrong.append(f"it is signed by {signer.keyid}, who is not among the allowed signers")
            return
    if not public or not holds(public, signatures[signer.keyid], signed):
        found.wrong.append("its signature does not hold")
    found.signed_by = signer.keyid


def _completion(found: Verified, manifest: Manifest) -> None:
    """The rest of the protocol's table: tests and lint, and whatever else was checked."""
    checked = [each for task in manifest.tasks for each in task.validations]
    failed = [each.rule for each in checked if each.status == "fail"]
    passed = {each.rule for each in checked if each.status == "pass"}
    skipped = [rule for rule in ("tests-pass", "lint-clean") if rule not in passed and rule not in failed]
    if failed:
        found.findings["validation"] = f"failed: {', '.join(failed)}"
    if skipped:
        found.findings["skipped"] = f"not checked: {', '.join(skipped)}"


def _bind(ground: Ground, found: Verified, manifest: Manifest) -> None:
    found.binding, found.bound_by = binding(ground.folder, ground.objects, ground.history, found.turn, manifest)
    if found.binding == "rebound":
        found.findings["rebound"] = f"its commit left the branch; {found.bound_by[:12]} holds the same content"
    elif found.binding == "orphaned":
        found.findings["orphaned"] = "no commit that is checked out holds its work"


def unknown_turns(history: History, turns: list[Marked]) -> list[str]:
    """Turns that commits speak of and whose records are not here."""
    known = {each.uuid for each in turns}
    return sorted(uuid for uuid in history.carrying if uuid not in known)
