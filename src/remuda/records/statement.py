"""Provenance in the form that others read: an in-toto Statement v1 with SLSA's provenance, in a DSSE envelope.

The build type is our own and no SLSA level is claimed. The subjects are the manifest, the files that the turn left, and
the git tree of the work.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from remuda.records.manifest import Manifest

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://remuda.dev/turn/v1"
BUILDER = "https://remuda.dev/runtime"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def statement(manifest: Manifest, manifest_sha256: str, blobs: Mapping[str, str]) -> bytes:
    """`blobs` gives git's id of each output. All of it follows from the manifest and git, so who verifies can make it
    again and compare."""
    origin = manifest.provenance
    subjects: list[dict[str, Any]] = [
        {"name": f"{origin.directory}/manifest.json", "digest": {"sha256": manifest_sha256}},
        {"name": "work", "digest": {"gitTree": origin.tree_after}},
    ]
    for output in manifest.outputs:
        digest = {"sha256": output.sha256}
        if output.mode != "160000":
            digest["gitBlob"] = blobs[output.path]
        subjects.append({"name": output.path, "digest": digest})
    made = {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "turnId": manifest.turn_id,
                    "turnUuid": manifest.turn_uuid,
                    "promptHash": origin.prompt_hash,
                    "agent": origin.agent,
                    "model": origin.model,
                },
                "internalParameters": {"placement": origin.placement},
                "resolvedDependencies": _dependencies(manifest),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"remuda": origin.runtime.removeprefix("remuda ")}},
                "metadata": {
                    "invocationId": manifest.turn_uuid,
                    "startedOn": origin.started_at,
                    "finishedOn": origin.finished_at,
                },
                "byproducts": [
                    {"name": f"{origin.directory}/{each.path}", "digest": {"sha256": each.sha256}}
                    for each in manifest.records
                ],
            },
        },
    }
    return json.dumps(made, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(errors="backslashreplace")


def _dependencies(manifest: Manifest) -> list[dict[str, Any]]:
    origin = manifest.provenance
    found = [{"name": "work before", "digest": {"gitTree": origin.tree_before}}]
    if origin.commit_before:
        found.append({"name": "commit before", "digest": {"gitCommit": origin.commit_before}})
    return found


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope(payload: bytes, signatures: list[tuple[str, bytes]]) -> bytes:
    """(key id, signature). Without a key it stands unsigned, and says so by an empty list."""
    made = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(sig).decode()} for keyid, sig in signatures],
    }
    return json.dumps(made, indent=2).encode() + b"\n"


def open_envelope(data: bytes) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The payload and its signatures. ValueError for what is no envelope of ours."""
    made = json.loads(data)
    if not isinstance(made, dict) or set(made) != {"payload", "payloadType", "signatures"}:
        raise ValueError("it is no DSSE envelope")
    if made["payloadType"] != PAYLOAD_TYPE:
        raise ValueError(f"its payload is {str(made['payloadType'])[:60]!r}, not an in-toto statement")
    try:
        found = [(str(each["keyid"]), base64.b64decode(each["sig"], validate=True)) for each in made["signatures"]]
        return base64.b64decode(made["payload"], validate=True), found
    except (TypeError, KeyError) as error:
        raise ValueError("its signatures cannot be read") from error
