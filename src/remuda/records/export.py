"""Records for other programs: in-toto, Agent Trace, CSV, JSON."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from remuda.git.objects import Objects
from remuda.records import index
from remuda.records.ledger import Marked, Stored
from remuda.records.manifest import Manifest, Output
from remuda.records.publish import ATTESTATION
from remuda.records.text import path_bytes
from remuda.version import __version__

AGENT_TRACE = "0.1.0"

One = tuple[Marked, Stored, Manifest]


def in_toto(turns: list[One], _objects: Objects) -> bytes:
    """The envelopes, one to a line, as attestation bundles are kept (JSON Lines)."""
    found = [json.loads(stored.files[ATTESTATION]) for _, stored, _ in turns]
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in found)


def as_json(turns: list[One], _objects: Objects) -> bytes:
    found = [
        {"commit": turn.commit, "tag": f"turn/{turn.number}" if turn.number else None, **msgspec.to_builtins(manifest)}
        for turn, _, manifest in turns
    ]
    return json.dumps(found, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"


def as_csv(turns: list[One], _objects: Objects) -> bytes:
    return index.render([index.row(manifest) for _, _, manifest in turns])


def agent_trace(turns: list[One], objects: Objects) -> bytes:
    """One record for each turn. The format knows files and the lines that an agent wrote in them; it has no place for
    deletions, and none for who wrote which line of a file that was edited, so a whole file is told as one range."""
    return b"".join(
        json.dumps(_trace(objects, *each), ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
        + b"\n"
        for each in turns
    )


def _trace(objects: Objects, turn: Marked, stored: Stored, manifest: Manifest) -> dict[str, Any]:
    origin = manifest.provenance
    contributor: dict[str, str] = {"type": "ai"}
    if origin.model:
        contributor["model_id"] = origin.model if "/" in origin.model else f"{origin.agent}/{origin.model}"
    files = [
        {
            "path": output.path,
            "conversations": [
                {
                    "contributor": contributor,
                    "ranges": _ranges(objects, turn, output),
                    "related": [{"type": "turn", "url": f"urn:uuid:{manifest.turn_uuid}"}],
                }
            ],
        }
        for output in manifest.outputs
    ]
    digest = json.loads(base64.b64decode(json.loads(stored.files[ATTESTATION])["payload"]))["subject"][0]["digest"]
    return {
        "version": AGENT_TRACE,
        "id": manifest.turn_uuid,
        "timestamp": origin.finished_at,
        "vcs": {"type": "git", "revision": turn.commit},
        "tool": {"name": "remuda", "version": __version__},
        "files": files,
        "metadata": {"dev.remuda": {"turn": manifest.turn_id, "agent": origin.agent, "manifest": digest}},
    }


def _ranges(objects: Objects, turn: Marked, output: Output) -> list[dict[str, Any]]:
    found = objects.get(turn.commit.encode() + b":" + path_bytes(output.path))
    data = found.data if found and found.kind == "blob" else b""
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return [{"start_line": 1, "end_line": lines, "content_hash": f"sha256:{output.sha256}"}] if lines else []


FORMATS: Mapping[str, Callable[[list[One], Objects], bytes]] = {
    "in-toto": in_toto,
    "agent-trace": agent_trace,
    "csv": as_csv,
    "json": as_json,
}
