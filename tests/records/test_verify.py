"""Clean history is green; whatever is changed in it is found. Checked besides by a library that is not ours."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from records.kit import all_valid, git, key_pair, record, repository, verified, write
from remuda.records.keeping import Keeping
from remuda.records.signing import allowed_signers, fingerprint
from remuda.records.statement import pae

PLACE = "ai/agentic-pipeline/turns/turn-{}"

Files = dict[str, tuple[str, bytes]]


def forged(top: Path, number: int, change: Callable[[Files], None], *, retag: bool = True) -> None:
    """What someone who may push does: another commit with the record changed, and the tag moved onto it."""
    commit = git(top, "rev-parse", f"turn/{number}^{{commit}}")
    files: Files = {}
    for line in git(top, "ls-tree", "-r", commit).split("\n"):
        head, path = line.split("\t")
        mode, _, blob = head.split()
        data = git_bytes(top, "cat-file", "blob", blob)
        files[path] = (mode, data)
    change(files)
    entries = []
    for path, (mode, data) in files.items():
        blob = git(top, "hash-object", "-w", "--stdin", stdin=data)
        entries.append(f"{mode} {blob}\t{path}")
    index = str(top / ".git/forger")
    Path(index).unlink(missing_ok=True)
    git(top, "update-index", "--index-info", stdin=("\n".join(entries) + "\n").encode(), GIT_INDEX_FILE=index)
    tree = git(top, "write-tree", GIT_INDEX_FILE=index)
    raw = git(top, "cat-file", "commit", commit).split("\n")
    made = git(
        top, "hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join([f"tree {tree}", *raw[1:], ""]).encode()
    )
    place = PLACE.format(number)
    message = git(top, "tag", "-l", "--format=%(contents)", f"turn/{number}")
    if retag:
        for name, path in (("Manifest-SHA256", "manifest.json"), ("Attestation-SHA256", "attestation.json")):
            digest = hashlib.sha256(files[f"{place}/{path}"][1]).hexdigest() if f"{place}/{path}" in files else ""
            lines = [f"{name}: {digest}" if line.startswith(name) else line for line in message.split("\n")]
            message = "\n".join(lines)
    git(top, "tag", "-f", "-a", "--cleanup=verbatim", "-F", "-", f"turn/{number}", made, stdin=f"{message}\n".encode())
    uuid = next(line.removeprefix("Turn-Id: ") for line in message.split("\n") if line.startswith("Turn-Id"))
    git(top, "update-ref", f"refs/turns/{uuid}", made)


def git_bytes(top: Path, *arguments: str) -> bytes:
    return git(top, *arguments).encode(errors="surrogateescape") + b"\n"


def in_place(name: str, number: int = 2) -> str:
    return f"{PLACE.format(number)}/{name}"


def edit(path: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        mode, data = files[path]
        assert old in data, (path, data)
        files[path] = (mode, data.replace(old, new))

    return change


def with_mode(path: str, mode: str) -> Callable[[Files], None]:
    return lambda files: files.update({path: (mode, files[path][1])})


def without(path: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        del files[path]

    return change


def add(path: str) -> Callable[[Files], None]:
    return lambda files: files.update({path: ("100644", b"new\n")})


def swap(name: str) -> Callable[[Files], None]:
    """The file of turn 1, put in the place of that of turn 2."""
    return lambda files: files.update({in_place(name): files[in_place(name, 1)]})


def recomputed(files: Files) -> None:
    """A file is changed and every digest with it, in the manifest and in the statement."""
    files["work.txt"] = ("100644", b"evil\n")
    mode, data = files[in_place("manifest.json")]
    found = json.loads(data)
    old, new = found["outputs"][0]["sha256"], hashlib.sha256(b"evil\n").hexdigest()
    fresh = data.replace(old.encode(), new.encode())
    files[in_place("manifest.json")] = (mode, fresh)
    envelope = json.loads(files[in_place("attestation.json")][1])
    payload = base64.b64decode(envelope["payload"]).replace(old.encode(), new.encode())
    payload = payload.replace(hashlib.sha256(data).hexdigest().encode(), hashlib.sha256(fresh).hexdigest().encode())
    envelope["payload"] = base64.b64encode(payload).decode()
    files[in_place("attestation.json")] = ("100644", json.dumps(envelope).encode())


def unsigned(files: Files) -> None:
    envelope = json.loads(files[in_place("attestation.json")][1])
    envelope["signatures"] = []
    files[in_place("attestation.json")] = ("100644", json.dumps(envelope).encode())


MATRIX: dict[str, Callable[[Files], None]] = {
    "a byte of the work": edit("work.txt", b"of turn", b"by turn"),
    "a byte of a file that the turn left alone": edit("readme.txt", b"hello", b"hallo"),
    "a byte of the context": edit(in_place("session_context.md"), b"Do it", b"Do so"),
    "a byte of the pull request": edit(in_place("pull_request.md"), b"did it", b"did so"),
    "a byte of the adr": edit(in_place("adr.md"), b"did it", b"did so"),
    "a byte of the manifest": edit(in_place("manifest.json"), b'"did it"', b'"did so"'),
    "a status in the manifest": edit(in_place("manifest.json"), b'"completed"', b'"failed"'),
    "a byte of the index": edit("ai/agentic-pipeline/turns_index.csv", b"did it", b"did so"),
    "the mode of the work": with_mode("work.txt", "100755"),
    "the work as a link": with_mode("work.txt", "120000"),
    "an artifact as a link": with_mode(in_place("adr.md"), "120000"),
    "an artifact that can be run": with_mode(in_place("pull_request.md"), "100755"),
    "an artifact taken away": without(in_place("session_context.md")),
    "the attestation taken away": without(in_place("attestation.json")),
    "a file of the work taken away": without("readme.txt"),
    "a file added to the work": add("backdoor.txt"),
    "a file added to the record": add(in_place("note.md")),
    "another turn's manifest": swap("manifest.json"),
    "another turn's attestation": swap("attestation.json"),
    "every digest recomputed": recomputed,
    "the signature taken away": unsigned,
}  # fmt: skip


@pytest.mark.parametrize("what", MATRIX)
@pytest.mark.parametrize("retag", [False, True])
def test_whatever_is_changed_is_found(what: str, retag: bool, tmp_path: Path) -> None:
    key = key_pair(tmp_path)
    top = repository(tmp_path / "r")
    record(top, key=key, keeping=Keeping("branch"))
    record(top, key=key, keeping=Keeping("branch"))
    trusted = dict(allowed_signers(key.with_suffix(".pub")))
    assert [each.verdict for each in verified(top, trusted)] == ["valid", "valid"]
    forged(top, 2, MATRIX[what], retag=retag)
    first, second = verified(top, trusted)
    assert first.verdict == "valid"
    assert second.verdict == "invalid", what
    assert second.wrong


def test_a_record_signed_anew_by_somebody_else_is_found_by_who_says_whom_to_trust(tmp_path: Path) -> None:
    ours, theirs = key_pair(tmp_path, "ours"), key_pair(tmp_path, "theirs")
    top = repository(tmp_path / "r")
    record(top, key=theirs)
    assert [each.verdict for each in verified(top)] == ["valid"]
    (found,) = verified(top, dict(allowed_signers(ours.with_suffix(".pub"))))
    assert found.verdict == "invalid"
    assert "allowed signers" in found.wrong[0]


def test_a_lightweight_tag_in_place_of_ours_is_found(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    made = record(top)
    git(top, "tag", "-f", "turn/1", made.commit)
    (found,) = verified(top)
    assert found.wrong == ["tag turn/1 is not annotated"]


def test_a_tag_moved_onto_another_turns_record_is_found(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top)
    record(top)
    git(top, "update-ref", "refs/tags/turn/2", git(top, "rev-parse", "refs/tags/turn/1"))
    assert any("on the record of turn 1" in text for each in verified(top) for text in each.wrong)


def test_an_independent_library_verifies_the_envelope_and_refuses_a_changed_one(tmp_path: Path) -> None:
    key = key_pair(tmp_path)
    top = repository(tmp_path / "r")
    record(top, key=key)
    data = json.loads(git(top, "show", f"turn/1:{in_place('attestation.json', 1)}"))
    public = base64.b64decode(key.with_suffix(".pub").read_text().split()[1])[-32:]
    keyid = data["signatures"][0]["keyid"]
    judge = SSlibKey(keyid, "ed25519", "ed25519", {"public": public.hex()})
    envelope = Envelope.from_dict(json.loads(json.dumps(data)))
    assert set(envelope.verify([judge], 1)) == {keyid}
    assert envelope.pae() == pae(envelope.payload)
    assert keyid == fingerprint(key.with_suffix(".pub").read_text())
    data["payload"] = base64.b64encode(envelope.payload.replace(b'"turnId":1', b'"turnId":2')).decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(data).verify([judge], 1)


def test_the_statement_is_in_the_form_that_in_toto_and_slsa_ask_for(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    made = record(top)
    envelope = json.loads(git(top, "show", f"turn/1:{in_place('attestation.json', 1)}"))
    found = json.loads(base64.b64decode(envelope["payload"]))
    assert (found["_type"], found["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    subjects = {each["name"]: each["digest"] for each in found["subject"]}
    assert subjects["work.txt"]["gitBlob"] == git(top, "rev-parse", "turn/1:work.txt")
    assert subjects[in_place("manifest.json", 1)]["sha256"] == made.manifest_sha256
    definition, run = found["predicate"]["buildDefinition"], found["predicate"]["runDetails"]
    assert definition["externalParameters"]["promptHash"] == hashlib.sha256(b"Do it.").hexdigest()
    assert {"gitCommit": git(top, "rev-parse", "HEAD")} in [
        each["digest"] for each in definition["resolvedDependencies"]
    ]
    assert run["metadata"]["invocationId"] == made.manifest.turn_uuid


# --- clones ---


def test_a_fresh_clone_verifies_without_any_private_state(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    write(top, "dirty.txt", "before any turn\n")
    record(top)
    record(top, keeping=Keeping("branch"))
    git(tmp_path, "clone", "-q", top.as_uri(), "clone")
    assert not (tmp_path / "clone/.git/remuda").exists()
    assert all_valid(tmp_path / "clone") == 2


def test_a_shallow_clone_is_unverifiable_and_never_passes(tmp_path: Path) -> None:
    top = repository(tmp_path / "r")
    record(top, keeping=Keeping("branch"))
    record(top, keeping=Keeping("branch"))
    git(tmp_path, "clone", "-q", "--depth=1", top.as_uri(), "clone")
    git(tmp_path / "clone", "fetch", "-q", "--depth=1", "origin", "refs/tags/turn/*:refs/tags/turn/*")
    results = verified(tmp_path / "clone")
    assert len(results) == 2
    assert {each.verdict for each in results} == {"unverifiable"}
    assert all("unshallow" in each.unseen[0] for each in results)


# --- history that is rewritten ---


def on_branch(tmp_path: Path) -> Path:
    top = repository(tmp_path / "r")
    record(top, keeping=Keeping("branch"))
    return top


def test_after_an_amend_it_is_rebound_not_silently_green(tmp_path: Path) -> None:
    top = on_branch(tmp_path)
    git(top, "commit", "-q", "--amend", "-m", "another message, and the trailer is gone")
    (found,) = verified(top)
    assert (found.verdict, found.binding, found.bound_by) == ("valid", "rebound", git(top, "rev-parse", "HEAD"))
    assert "rebound" in found.findings


def test_after_an_amend_that_changes_the_work_it_is_orphaned(tmp_path: Path) -> None:
    top = on_branch(tmp_path)
    write(top, "work.txt", "something else\n")
    git(top, "commit", "-q", "--amend", "--no-edit", "-a")
    (found,) = verified(top)
    assert found.binding == "orphaned"


def test_after_a_rebase_a_squash_and_a_cherry_pick_it_is_rebound(tmp_path: Path) -> None:
    top = on_branch(tmp_path)
    record(top, lambda _: write(top, "more.txt", "more\n"), keeping=Keeping("branch"))
    tip = git(top, "rev-parse", "HEAD")
    git(top, "checkout", "-q", "-b", "other", "main~2")
    write(top, "elsewhere.txt", "moved on\n")
    git(top, "add", "elsewhere.txt")
    git(top, "commit", "-q", "-m", "the base moves")
    git(top, "checkout", "-q", "-b", "squashed")
    git(top, "merge", "-q", "--squash", tip)
    git(top, "commit", "-q", "-m", "all in one")
    assert [each.binding for each in verified(top)] == ["rebound", "rebound"]
    git(top, "checkout", "-q", "main")
    git(top, "rebase", "-q", "other")
    assert [each.binding for each in verified(top)] == ["rebound", "rebound"]
    git(top, "checkout", "-q", "-b", "picked", "other")
    git(top, "cherry-pick", "main~1")
    assert [each.binding for each in verified(top)] == ["rebound", "orphaned"]


def test_after_a_reset_it_is_orphaned(tmp_path: Path) -> None:
    top = on_branch(tmp_path)
    git(top, "reset", "-q", "--hard", "HEAD~1")
    (found,) = verified(top)
    assert (found.verdict, found.binding) == ("valid", "orphaned")
