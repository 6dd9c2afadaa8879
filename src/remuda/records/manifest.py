"""manifest.json: the fields of the protocol under their own names, and beside them what makes it verifiable."""

import hashlib
import json
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from remuda.domain.errors import Invalid
from remuda.git.tree import Change
from remuda.records.facts import Turn
from remuda.records.text import path_text
from remuda.version import __version__

VERSION = 1
UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SCHEMA_ID = "https://remuda.dev/schemas/turn-manifest-1.json"

Sha256 = Annotated[str, Meta(pattern="^[a-f0-9]{64}$")]
GitId = Annotated[str, Meta(pattern="^([a-f0-9]{40}|[a-f0-9]{64})$")]
MaybeGitId = Annotated[str, Meta(pattern="^([a-f0-9]{40}|[a-f0-9]{64})?$")]
Time = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
# From the top of the repository, never out of it; quoted as git does where it is not plain text.
Inside = Annotated[str, Meta(min_length=1, pattern=r"^(?!/)(?!\.\.?(/|$))(?!.*/\.\.?(/|$))")]
Count = Annotated[int, Meta(ge=0)]


class Digest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    path: Inside
    sha256: Sha256


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    path: Inside
    sha256: Sha256
    change: Literal["added", "modified", "renamed", "mode"]
    mode: Literal["100644", "100755", "120000", "160000"]
    previous_path: str


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    rule: Annotated[str, Meta(min_length=1)]
    status: Literal["pass", "fail", "skipped"]
    details_path: str


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    task_id: Annotated[str, Meta(pattern=r"^T[1-9][0-9]*-[1-9][0-9]*$")]
    agent: str
    inputs: list[str]
    outputs: list[Digest]
    validations: list[Checked]


class ToolCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    tool: str
    calls: Count
    failed: Count


class TokenCount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    input: Count
    output: Count
    cache_read: Count
    cache_creation: Count


class Execution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    tools: list[ToolCount]
    tokens: TokenCount | None


class Signer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    keyid: str
    public_key: str


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    prompt_hash: Sha256
    tools: list[str]
    started_at: Time
    finished_at: Time
    elapsed_seconds: Annotated[float, Meta(ge=0)]
    active_pattern_name: str
    active_pattern_path: str
    agent: str
    model: str
    session: str
    recorded_by: Literal["hooks", "runtime"]
    runtime: str
    placement: Literal["beside", "files", "branch"]
    folder: Inside
    directory: Inside
    branch: str
    commit_before: MaybeGitId
    commit_after: MaybeGitId
    tree_before: GitId
    tree_after: GitId
    transcript_hash: Annotated[str, Meta(pattern="^([a-f0-9]{64})?$")]
    prompt_redacted: bool
    unread: str
    signer: Signer | None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    schema_version: Literal[1]
    turn_id: Annotated[int, Meta(ge=1)]
    turn_uuid: Annotated[str, Meta(pattern=f"^{UUID7.pattern}$")]
    status: Literal["completed", "failed", "interrupted", "lost"]
    error: str
    summary: str
    execution: Execution
    tasks: list[Task]
    provenance: Provenance
    outputs: list[Output]
    deletions: list[Digest]
    records: list[Digest]


def manifest(turn: Turn, records: dict[str, bytes], signer: Signer | None) -> bytes:
    """`records` are the other files of the turn's directory, by their name in it."""
    begun, ended = turn.begun, turn.ended
    outputs = [_output(turn, each) for each in turn.changes if each.change != "deleted"]
    deletions = [_digest(turn, each) for each in turn.changes if each.change == "deleted"]
    made = Manifest(
        schema_version=1,
        turn_id=turn.number,
        turn_uuid=begun.uuid,
        status=ended.outcome,
        error=ended.error,
        summary=turn.summary,
        execution=Execution(_tools(turn), _tokens(turn)),
        tasks=[
            Task(
                f"T{turn.number}-1",
                begun.agent,
                sorted({each.reads for each in turn.tools if each.reads}),
                [Digest(each.path, each.sha256) for each in outputs],
                [Checked(each.rule, each.status, each.details) for each in turn.validations],
            )
        ],
        provenance=Provenance(
            prompt_hash=begun.prompt_sha256,
            tools=sorted({each.tool for each in turn.tools}),
            started_at=turn.started,
            finished_at=turn.finished,
            elapsed_seconds=round(turn.elapsed, 3),
            active_pattern_name="",
            active_pattern_path="",
            agent=begun.agent,
            model=turn.model,
            session=begun.session,
            recorded_by="runtime" if begun.by == "runtime" else "hooks",
            runtime=f"remuda {__version__}",
            placement=msgspec.convert(begun.records, Literal["beside", "files", "branch"]),
            folder=begun.folder,
            directory=begun.directory,
            branch=ended.branch,
            commit_before=begun.head,
            commit_after=ended.head,
            tree_before=begun.tree,
            tree_after=ended.tree,
            transcript_hash=ended.transcript_sha256,
            prompt_redacted=begun.redacted,
            unread="\n".join(filter(None, (begun.unread, ended.unread)))[:2000],
            signer=signer,
        ),
        outputs=outputs,
        deletions=deletions,
        records=[Digest(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(records.items())],
    )
    return pretty(msgspec.to_builtins(made))


def pretty(value: object) -> bytes:
    """For people as well, unless it holds characters that are not seen: those are then written out."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        text = json.dumps(value, indent=2)
    return text.encode() + b"\n"


def read_manifest(data: bytes) -> Manifest:
    """Strictly by the schema: one key too many, twice or too few, and it is none of ours."""
    try:
        json.loads(data, object_pairs_hook=_once)
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"manifest.json is not a turn manifest of version {VERSION}: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema that is shipped as manifest.schema.json, from the types above."""
    (made,), parts = msgspec.json.schema_components([Manifest], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Turn manifest, version 1",
        **made,
        "$defs": parts,
    }


def _tools(turn: Turn) -> list[ToolCount]:
    names = sorted({each.tool for each in turn.tools})
    uses = {name: [each.ok for each in turn.tools if each.tool == name] for name in names}
    return [ToolCount(name, len(oks), oks.count(False)) for name, oks in uses.items()]


def _tokens(turn: Turn) -> TokenCount | None:
    used = turn.ended.tokens
    return TokenCount(used.input, used.output, used.cache_read, used.cache_creation) if used else None


def _output(turn: Turn, each: Change) -> Output:
    previous = path_text(each.previous) if each.previous else ""
    made = {
        **msgspec.to_builtins(_digest(turn, each)),
        "change": each.change,
        "mode": each.mode,
        "previousPath": previous,
    }
    return msgspec.convert(made, Output)


def _digest(turn: Turn, each: Change) -> Digest:
    return Digest(path_text(each.path), turn.digests[each.blob])
