"""pull_request.md and adr.md, from facts. What the model says stands where it is marked as said; the rest happened."""

from collections import Counter
from collections.abc import Sequence

from remuda.git.tree import Change
from remuda.records.facts import Decision, Turn, Validation
from remuda.records.text import cell, fenced, one_line, path_text, table, visible

LONGEST_TABLE = 500  # rows; the manifest has them all
LONGEST_PROSE = 8000
NO_DECISION = "No architectural decision made this turn"


def pull_request(turn: Turn) -> bytes:
    inside = f"{turn.begun.folder.split('/')[0]}/"
    added = [each for each in turn.changes if each.change in ("added", "renamed")]
    rest = [each for each in turn.changes if each.change not in ("added", "renamed")]
    parts = [
        f"# Turn {turn.number} – {turn.started[:10]} – {cell(turn.summary)}",
        "## Turn summary",
        "\n".join(f"- {each}" for each in _summary(turn)),
        "## Turn duration",
        f"- Started: {turn.started}\n- Finished: {turn.finished}\n- Elapsed (TURN_ELAPSED_TIME): {turn.elapsed:.0f} s",
        "## Input prompt summary",
        fenced(turn.begun.prompt[:LONGEST_PROSE]),
        "## Tasks executed",
        table(("task name", "tools/agents used"), [(f"T{turn.number}-1: {cell(turn.begun.prompt)}", _used(turn))]),
        f"## Files added under ./{cell(inside)}",
        _files(turn, [path_text(each.path) for each in added if each.path.startswith(inside.encode())]),
        f"## Files added outside ./{cell(inside)}",
        _changes_table(turn, [each for each in added if not each.path.startswith(inside.encode())]),
        f"## Files modified outside ./{cell(inside)}",
        _changes_table(turn, [each for each in rest if not each.path.startswith(inside.encode())]),
        "## Compliance checklist",
        "\n".join(_checklist(turn)),
    ]
    return ("\n\n".join(parts) + "\n").encode()


def _summary(turn: Turn) -> list[str]:
    said = [each.summary for each in turn.said if each.summary] or ([turn.ended.summary] if turn.ended.summary else [])
    lines = [f"In the agent's words: {cell(one_line(text, 1000), 1000)}" for text in said[-3:]]
    lines.append(
        f"The turn {turn.plain_summary.replace(':', ',', 1)}.".replace("The turn completed", "The turn was completed")
    )
    tokens = turn.ended.tokens
    if tokens:
        lines.append(
            f"Tokens: {tokens.input} in, {tokens.output} out, {tokens.cache_read} read from the cache, "
            f"{tokens.cache_creation} written to it."
        )
    if turn.ended.error:
        lines.append(f"Error: {cell(turn.ended.error, 1000)}")
    checks = Counter(each.status for each in turn.validations)
    lines.append(f"Validations: {checks['pass']} passed, {checks['fail']} failed, {checks['skipped']} skipped.")
    return lines


def _used(turn: Turn) -> str:
    counted = Counter(each.tool for each in turn.tools)
    tools = ", ".join(f"{cell(name)} ×{count}" for name, count in sorted(counted.items()))
    model = f" ({cell(turn.model)})" if turn.model else ""
    return f"{cell(turn.begun.agent)}{model}: {tools or 'no tool told'}"


def _files(turn: Turn, paths: list[str]) -> str:
    ours = [
        f"{turn.begun.directory}/{name}"
        for name in ("session_context.md", "pull_request.md", "adr.md", "manifest.json")
    ]
    return _bounded(("file path",), [(cell(path, 1000),) for path in [*ours, *paths]])


def _changes_table(turn: Turn, found: list[Change]) -> str:
    rows = []
    for each in found:
        what = each.change + (f" from {cell(path_text(each.previous), 1000)}" if each.previous else "")
        rows.append((f"T{turn.number}-1", what, cell(path_text(each.path), 1000)))
    return _bounded(("task", "description", "file path"), rows)


def _bounded(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    more = len(rows) - LONGEST_TABLE
    note = f"\n\n{more} more are in manifest.json." if more > 0 else ""
    return table(heads, rows[:LONGEST_TABLE]) + note


def _checklist(turn: Turn) -> list[str]:
    marks = {"pass": "x", "fail": " ", "skipped": " "}
    lines = [_tick("x", "session_context.md, pull_request.md, adr.md and manifest.json are written by the runtime")]
    return lines + [_tick(marks[each.status], _checked(each)) for each in turn.validations]


def _checked(each: Validation) -> str:
    return f"{cell(each.rule)}: {each.status}" + (f" ({cell(each.why, 300)})" if each.why else "")


def _tick(mark: str, text: str) -> str:
    return f"- [{mark}] {text}"


def adr(turn: Turn) -> bytes:
    """The decisions that the agent gave, or the one sentence that there were none."""
    if not turn.decisions:
        return f"{NO_DECISION} — {cell(turn.summary)}.\n".encode()
    parts = [f"# Turn {turn.number}: decisions"]
    parts.append(
        f"- Date: {turn.finished[:10]}\n- Agent: {cell(turn.begun.agent)}"
        + (f" ({cell(turn.model)})" if turn.model else "")
        + "\n- Status: accepted"
    )
    for number, each in enumerate(turn.decisions, 1):
        parts += _decision(number, each)
    return ("\n\n".join(parts) + "\n").encode()


def _decision(number: int, each: Decision) -> list[str]:
    return [
        f"## {number}. {cell(each.title)}",
        "### Context",
        _prose(each.context),
        "### Decision",
        _prose(each.decision),
        "### Rationale",
        _listed(each.rationale, "{}."),
        "### Alternatives considered",
        _listed(each.alternatives, "-"),
        "### Consequences",
        _listed(each.consequences, "-"),
    ]


def _listed(items: list[str], mark: str) -> str:
    return "\n".join(f"{mark.format(n)} {cell(item, 2000)}" for n, item in enumerate(items, 1)) or "None given."


def _prose(text: str) -> str:
    """Quoted, line by line: what is said cannot look like a heading of ours."""
    lines = visible(text[:LONGEST_PROSE]).strip().splitlines()
    return "\n".join(f"> {cell(line, 2000)}" if line.strip() else ">" for line in lines) or "None given."
