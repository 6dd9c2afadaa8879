"""The records as they are in git: which turns there are, and what stands in each. Nothing here trusts any of it."""

import re
from dataclasses import dataclass
from pathlib import Path

from remuda.domain.errors import Invalid, Refused
from remuda.git import git
from remuda.git.objects import Entry, Objects
from remuda.records.manifest import Manifest, read_manifest

TAGS, TURNS = "refs/tags/turn/", "refs/turns/"
TRAILER = re.compile(r"^([A-Z][A-Za-z0-9-]*): (.*)$")


@dataclass(frozen=True, slots=True)
class Marked:
    """A record commit and how it was found: by its tag, by the ref with its uuid, or by both."""

    commit: str
    number: int  # of the tag; 0 where there is none
    uuid: str  # of the ref, or of the commit's trailer
    tag: dict[str, str] | None  # the trailers of its annotated tag; None for a tag that is not, or none at all
    message: dict[str, str]  # the trailers of the commit
    parents: tuple[str, ...]
    tree: str

    @property
    def name(self) -> str:
        return f"turn {self.number}" if self.number else f"turn {self.uuid}"


def marked(folder: Path, objects: Objects) -> list[Marked]:
    """Every turn that this repository knows, by number and then by time."""
    listed = git(folder, "for-each-ref", "--format=%(objectname) %(refname)", TAGS, TURNS).decode(errors="replace")
    found: dict[str, Marked] = {}
    for line in listed.splitlines():
        target, _, name = line.partition(" ")
        one = _marked(objects, target, name)
        if one is not None:
            before = found.get(one.commit)
            found[one.commit] = one if before is None or one.number else before
    return sorted(found.values(), key=lambda each: (each.number or 1 << 62, each.uuid))


def _marked(objects: Objects, target: str, name: str) -> Marked | None:
    number = name.removeprefix(TAGS)
    if name.startswith(TAGS) and not (number.isascii() and number.isdigit()):
        return None
    trailers: dict[str, str] | None = None
    at = objects.get(target)
    if at is not None and at.kind == "tag":
        head, _, body = at.data.partition(b"\n\n")
        trailers = _trailers(body)
        target = head.split(b"\n")[0].removeprefix(b"object ").decode(errors="replace")
        at = objects.get(target)
    if at is None or at.kind != "commit":
        # A tag that points at nothing we have (a shallow or broken clone) is a turn all the same.
        return Marked(target, int(number), "", trailers, {}, (), "") if number.isdigit() else None
    head, _, body = at.data.partition(b"\n\n")
    lines = head.decode(errors="replace").split("\n")
    message = _trailers(body)
    return Marked(
        commit=at.id,
        number=int(number) if number.isdigit() else 0,
        uuid=message.get("Turn-Id", ""),
        tag=trailers,
        message=message,
        parents=tuple(each.removeprefix("parent ") for each in lines if each.startswith("parent ")),
        tree=lines[0].removeprefix("tree "),
    )


def _trailers(body: bytes) -> dict[str, str]:
    """Of the last paragraph. A name that stands there twice is worth nothing."""
    last = body.decode(errors="replace").rstrip("\n").rpartition("\n\n")[2]
    pairs = [found.groups() for found in map(TRAILER.match, last.split("\n")) if found]
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}


@dataclass(frozen=True, slots=True)
class Stored:
    """The files of one turn's directory, as its commit has them."""

    directory: str
    entries: dict[str, Entry]  # by path in the directory
    files: dict[str, bytes]
    csv: bytes | None


def stored(objects: Objects, turn: Marked) -> Stored:
    directory = turn.message.get("Turn-Directory", "")
    ledger = directory.rpartition("/turns/")[0]
    if not ledger or ".." in directory.split("/"):
        raise Invalid(f"the commit of {turn.name} does not say where its record is")
    found = dict(_below(objects, f"{turn.commit}:{directory}", ""))
    if not found:
        raise Invalid(f"{directory} is not in the commit of {turn.name}")
    files = {path: each.data for path, entry in found.items() if (each := objects.get(entry.id)) is not None}
    csv = objects.get(f"{turn.commit}:{ledger}/turns_index.csv")
    return Stored(directory, found, files, csv.data if csv else None)


def _below(objects: Objects, tree: str, prefix: str) -> list[tuple[str, Entry]]:
    found: list[tuple[str, Entry]] = []
    for each in objects.entries(tree):
        path = prefix + each.name.decode(errors="backslashreplace")
        found += _below(objects, each.id, f"{path}/") if each.mode == "40000" else [(path, each)]
    return found


def read_turn(objects: Objects, turn: Marked) -> tuple[Stored, Manifest]:
    record = stored(objects, turn)
    return record, read_manifest(record.files.get("manifest.json", b""))


def find_turn(turns: list[Marked], name: str) -> Marked:
    """By number, `turn/7`, or the beginning of a uuid."""
    wanted = name.removeprefix("turn/")
    if wanted.isascii() and wanted.isdigit():
        found = [each for each in turns if each.number == int(wanted)]
    else:
        found = [each for each in turns if each.uuid.startswith(wanted) and wanted]
    if len(found) != 1:
        what = "no turn" if not found else "more than one turn"
        raise Refused(f"there is {what} {name[:60]!r}; see `remuda turn list`")
    return found[0]
