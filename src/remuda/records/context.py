"""session_context.md: what a turn began with. It is written before the turn runs, so it stands with the journal."""

from remuda.records.moment import iso
from remuda.records.text import cell, fenced, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def session_context(begun: "dict[str, Any]") -> bytes:
    """The table that the protocol asks for, then the prompt as it was redacted."""
    rows = [
        ("TURN_ID", str(begun["number"])),
        ("TURN_UUID", begun["uuid"]),
        ("TURN_START_TIME", iso(begun["start"]["wall"])),
        ("TARGET_PROJECT", cell(begun["top"], 1000)),
        ("CURRENT_TURN_DIRECTORY", cell(f"{begun['top']}/{begun['directory']}", 1000)),
        ("CODING_AGENT", cell(begun["agent"])),
        ("Model", cell(begun["model"]) or "not told"),
        ("Session", cell(begun["session"]) or "not told"),
        ("Active branch", cell(begun["branch"], 1000) or "none (detached)"),
        ("Commit before", begun["head"] or "none yet"),
        ("Loaded context files", _listed(begun["contexts"])),
        ("Loaded skills", _listed(begun["skills"])),
        ("Task description", cell(begun["prompt"]) or "none given"),
    ]
    shortened = begun["prompt_length"] - len(begun["prompt"])
    lines = [
        f"# Turn {begun['number']}: session context",
        "",
        table(("Variable", "Value"), rows),
        "",
        "## Prompt",
        "",
        f"sha256 of the exact prompt: `{begun['prompt_sha256']}`, {begun['prompt_length']} characters."
        + (" Secrets were taken out of what stands here." if begun["redacted"] else "")
        + (" It is shortened here." if begun["shortened"] and shortened else ""),
        "",
        fenced(begun["prompt"]),
        "",
    ]
    return "\n".join(lines).encode()


def _listed(names: "list[str]") -> str:
    return ", ".join(cell(name) for name in names) or "none told"
