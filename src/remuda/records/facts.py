"""What is known of a turn, typed: the journal's files as they are read back. Records are made from these alone."""

from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from remuda.domain.errors import StoreCorrupt
from remuda.git.objects import Objects
from remuda.git.tree import Change, changes
from remuda.records import moment
from remuda.records.files import read
from remuda.records.journal import OpenTurn
from remuda.records.text import one_line

Outcome = Literal["completed", "failed", "interrupted", "lost"]
Status = Literal["pass", "fail", "skipped"]


class Moment(msgspec.Struct, frozen=True):
    wall: float
    steady: float
    boot: str


class Begun(msgspec.Struct, frozen=True):
    uuid: str
    number: int
    by: str
    start: Moment
    top: str
    records: str
    folder: str
    directory: str
    agent: str
    model: str
    session: str
    branch: str
    head: str
    tree: str
    unread: str
    prompt: str
    prompt_length: int
    prompt_sha256: str
    redacted: bool
    contexts: list[str] = []
    skills: list[str] = []


class Tokens(msgspec.Struct, frozen=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0


class Validation(msgspec.Struct, frozen=True):
    rule: str
    status: Status
    details: str = ""  # the name of its log below the turn's directory
    why: str = ""  # one line


# The protocol's rules, in its order. Each stands in every record, if only to say that it was not looked at.
RULES = (
    "tests-pass",
    "lint-clean",
    "typecheck",
    "build-succeeds",
    "security-scan",
    "metadata-headers",
    "version-incremented",
    "branch-convention",
    "commit-convention",
)


class Ended(msgspec.Struct, frozen=True):
    end: Moment
    outcome: Outcome
    error: str
    summary: str
    model: str
    branch: str
    head: str
    tree: str
    unread: str
    tokens: Tokens | None = None
    validations: list[Validation] = []
    transcript_sha256: str = ""


class ToolUse(msgspec.Struct, frozen=True):
    tool: str
    ok: bool = True
    argument: str = ""
    reads: str = ""


class Decision(msgspec.Struct, frozen=True):
    """What an agent gives to the record of a decision, through `record_decision`."""

    title: str
    context: str
    decision: str
    rationale: list[str] = []
    alternatives: list[str] = []
    consequences: list[str] = []


class Said(msgspec.Struct, frozen=True):
    summary: str = ""
    decision: Decision | None = None


class Turn(msgspec.Struct, frozen=True):
    """All of it, with what changed worked out."""

    begun: Begun
    ended: Ended
    tools: list[ToolUse]
    said: list[Said]
    logs: dict[str, bytes]  # of validations, by name
    changes: list[Change]
    digests: dict[str, str]  # blob -> sha256

    @property
    def number(self) -> int:
        return self.begun.number

    @property
    def started(self) -> str:
        return moment.iso(self.begun.start.wall)

    @property
    def finished(self) -> str:
        return moment.iso(self.finished_at)

    @property
    def finished_at(self) -> float:
        return moment.finish(msgspec.structs.asdict(self.begun.start), msgspec.structs.asdict(self.ended.end))

    @property
    def elapsed(self) -> float:
        return moment.elapsed(msgspec.structs.asdict(self.begun.start), msgspec.structs.asdict(self.ended.end))

    @property
    def model(self) -> str:
        return self.ended.model or self.begun.model

    @property
    def validations(self) -> list[Validation]:
        return self.ended.validations or [Validation(rule, "skipped", why="not run") for rule in RULES]

    @property
    def decisions(self) -> list[Decision]:
        return [each.decision for each in self.said if each.decision]

    @property
    def summary(self) -> str:
        """In the agent's words where it gave some; else in ours, from what happened."""
        given = [each.summary for each in self.said if each.summary]
        text = given[-1] if given else self.ended.summary
        return one_line(text) if text.strip() else self.plain_summary

    @property
    def plain_summary(self) -> str:
        kinds = [each.change for each in self.changes]
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
        what = f"{', '.join(counts)} file{'s' if len(kinds) != 1 else ''}" if counts else "no file changed"
        return f"{self.ended.outcome}: {what}"


def load(turn: OpenTurn, objects: Objects) -> Turn:
    """Everything that the journal holds of a turn that has ended."""
    begun = _decode(turn, "begun", Begun)
    ended = _decode(turn, "ended", Ended)
    top = Path(begun.top) if Path(begun.top).is_dir() else Path(turn.repository.common)
    found = [] if begun.tree == ended.tree else changes(top, begun.tree, ended.tree)
    logs = {
        each.details: read(f"{turn.folder}/{each.details.replace('/', '-')}") or b""
        for each in ended.validations
        if each.details
    }
    return Turn(
        begun=begun,
        ended=ended,
        tools=msgspec.convert(turn.lines("tools"), list[ToolUse]),
        said=msgspec.convert(turn.lines("said"), list[Said]),
        logs=logs,
        changes=found,
        digests={each.blob: objects.digest(each.mode, each.blob) for each in found},
    )


_T = TypeVar("_T")


def _decode(turn: OpenTurn, name: str, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(turn.facts(name), kind)  # a path may hold bytes that strict JSON would not take
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreCorrupt(
            f"{turn.folder}/{name}.json cannot be read: {error}; move the folder away to give turn {turn.number} up"
        ) from error
