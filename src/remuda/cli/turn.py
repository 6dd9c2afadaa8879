"""The records of turns: list, show, verify, index, export, recover; and what an agent gives to the one it is in."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from remuda.cli.call import width
from remuda.cli.say import json_option, note, out, out_json
from remuda.domain.errors import Invalid, Refused, RemudaError
from remuda.git import GitFailed, git, line
from remuda.git.objects import Objects
from remuda.records.binding import read_history
from remuda.records.export import FORMATS
from remuda.records.facts import Decision
from remuda.records.files import write_whole
from remuda.records.index import render, row
from remuda.records.journal import open_turns
from remuda.records.keeping import BadKeeping, keeping_of
from remuda.records.ledger import Marked, find_turn, marked, read_turn
from remuda.records.publish import Record
from remuda.records.recover import dead, recover, unfinished
from remuda.records.repository import NoRepository, Repository, find_repository
from remuda.records.say import give_decision, give_summary
from remuda.records.signing import allowed_signers
from remuda.records.verify import Finding, Ground, Verified, is_shallow, unknown_turns, verify
from remuda.runtime.config import load_settings, signing_key
from remuda.views.table import Column, table

log = logging.getLogger("remuda.records")

UNVERIFIABLE = 3
FINDINGS = get_args(Finding)
HEADS = (
    Column("turn", right=True),
    Column("status"),
    Column("agent"),
    Column("started"),
    Column("seconds", right=True),
    Column("changed", right=True),
    Column("summary", elastic=True),
)
FAIL_ON = ("validation", "orphaned")


def here() -> Repository:
    try:
        return find_repository(os.getcwd())
    except NoRepository as error:
        raise Invalid(str(error)) from error


@contextmanager
def opened() -> Iterator[tuple[Path, Objects, list[Marked]]]:
    """Every turn that the repository knows. A bare one will do for reading."""
    folder = Path.cwd()
    try:
        line(folder, "rev-parse", "--git-dir")
    except GitFailed as error:
        raise Invalid(f"{folder} is not in a git repository") from error
    _roll_forward()
    with Objects(folder) as objects:
        yield folder, objects, marked(folder, objects)


def _roll_forward() -> None:
    """What has ended and is not yet on record is put there first, so that the answer holds it. Where that cannot be,
    the answer says so."""
    try:
        repository = find_repository(os.getcwd())
        if open_turns(repository):
            recover(repository, dead, signing_key(Path(repository.top)))
    except (NoRepository, RemudaError, OSError) as error:
        log.info("nothing was recovered: %s", error)


@click.group()
def turn() -> None:
    """The records of turns: what was asked, what changed, what was checked. Each is in git, under the tag turn/N."""


@turn.command("list")
@json_option
def list_turns(as_json: bool) -> None:
    """Show every turn, the unfinished ones too."""
    with opened() as (_, objects, turns):
        rows = [_row(objects, each) for each in turns]
    rows += _under_way()
    if as_json:
        out_json({"turns": rows})
        return
    if not rows:
        out("no turns are recorded here yet")
        return
    cells = [[str(each.get(head.title, "")) for head in HEADS] for each in rows]
    out(table(HEADS, cells, width=width() or None).rstrip("\n"))


def _row(objects: Objects, each: Marked) -> dict[str, Any]:
    try:
        _, manifest = read_turn(objects, each)
    except RemudaError as error:
        return {"turn": each.number, "status": "unreadable", "summary": error.message, "uuid": each.uuid}
    return {
        "turn": manifest.turn_id,
        "uuid": manifest.turn_uuid,
        "status": manifest.status,
        "agent": manifest.provenance.agent,
        "started": manifest.provenance.started_at,
        "seconds": round(manifest.provenance.elapsed_seconds),
        "changed": len(manifest.outputs) + len(manifest.deletions),
        "summary": manifest.summary,
        "commit": each.commit,
        "tag": f"turn/{each.number}" if each.number else None,
    }


def _under_way() -> list[dict[str, Any]]:
    try:
        repository = find_repository(os.getcwd())
    except NoRepository:
        return []
    found = []
    for each, why in unfinished(repository):
        begun = each.facts("begun") or {}
        status = "under way" if why == "under way" else "incomplete"
        found.append({"turn": each.number, "status": status, "agent": begun.get("agent", ""), "summary": why})
    return found


@turn.command()
@click.argument("name")
@click.option("--file", "wanted", default="pull_request.md", help="Another file of the record, as manifest.json.")
@json_option
def show(name: str, wanted: str, as_json: bool) -> None:
    """Show the record of a turn: its number, or the beginning of its uuid."""
    with opened() as (_, objects, turns):
        record, manifest = read_turn(objects, find_turn(turns, name))
    if as_json:
        out_json(msgspec.to_builtins(manifest))
    elif wanted not in record.files:
        raise Refused(f"the record of {name} has no file {wanted[:60]!r}", possible=sorted(record.files))
    else:
        out(record.files[wanted].decode(errors="replace").rstrip("\n"))


# --- verify ---


@turn.command("verify")
@click.argument("which", required=False)
@click.option("--all", "everything", is_flag=True, help="Every turn; the same as naming none.")
@click.option(
    "--fail-on",
    default=",".join(FAIL_ON),
    show_default=True,
    help=f"What of a valid record counts as a failure: {', '.join(FINDINGS)}; or nothing.",
)
@click.option("--allowed-signers", type=click.Path(path_type=Path), help="Accept signatures of these keys only.")
@json_option
def verify_turns(which: str | None, everything: bool, fail_on: str, allowed_signers: Path | None, as_json: bool) -> int:
    """Check records against git: of all turns, of one (7), of some (3..9), or of those in a range of commits
    (main..HEAD).

    Exit codes: 0 all valid, 1 one is not, 3 one cannot be verified here.
    """
    fails = _findings(fail_on)
    if which and everything:
        raise Invalid("name turns or say --all, not both")
    with opened() as (folder, objects, turns):
        ground = Ground(
            folder, objects, read_history(folder, turns), is_shallow(folder), _trusted(folder, allowed_signers)
        )
        chosen, absent = _chosen(folder, ground, turns, which)
        results = [verify(ground, each) for each in chosen]
    if as_json:
        out_json({"turns": [_told(each, fails) for each in results], "absent": absent, "shallow": ground.shallow})
    else:
        _print(results, absent, fails)
    if any(each.wrong or fails & each.findings.keys() for each in results):
        return 1
    return UNVERIFIABLE if absent or ground.shallow or any(each.unseen for each in results) else 0


def _findings(text: str) -> set[str]:
    names = {each.strip() for each in text.split(",") if each.strip()}
    if unknown := sorted(names - set(FINDINGS)):
        raise Invalid(f"there is nothing called {unknown[0][:60]!r} to fail on", possible=FINDINGS)
    return names


def _trusted(folder: Path, given: Path | None) -> dict[str, str] | None:
    if given is None:
        settings = load_settings(folder / "remuda.toml").turns
        given = folder / settings.allowed_signers if settings.allowed_signers else None
    return dict(allowed_signers(given)) if given else None


def _chosen(folder: Path, ground: Ground, turns: list[Marked], which: str | None) -> tuple[list[Marked], list[str]]:
    """The turns that are meant, and the uuids of those that are meant and not here."""
    if which is None:
        return turns, unknown_turns(ground.history, turns)
    first, dots, last = which.partition("..")
    if not dots:
        return [find_turn(turns, which)], []
    if first.isdigit() and last.isdigit():
        return [each for each in turns if int(first) <= each.number <= int(last)], []
    try:
        listed = git(folder, "log", "--format=%H %(trailers:key=Turn-Id,valueonly,separator=%x20)", which, "--")
    except GitFailed as error:
        raise Invalid(f"{which[:60]!r} is no turn and no range of turns or commits") from error
    words = set(listed.decode(errors="replace").split())
    found = [each for each in turns if each.uuid in words or each.commit in words]
    return found, [uuid for uuid in unknown_turns(ground.history, turns) if uuid in words]


def _told(each: Verified, fails: set[str]) -> dict[str, Any]:
    return {
        "turn": each.turn.number,
        "uuid": each.turn.uuid,
        "commit": each.turn.commit,
        "verdict": each.verdict,
        "failed": bool(each.wrong or fails & each.findings.keys()),
        "wrong": each.wrong,
        "unverifiable": each.unseen,
        "findings": each.findings,
        "binding": each.binding,
        "bound_by": each.bound_by,
        "signed_by": each.signed_by,
    }


def _print(results: list[Verified], absent: list[str], fails: set[str]) -> None:
    for each in results:
        notes = [*each.wrong, *each.unseen, *(f"{text}" for text in each.findings.values())]
        state = each.verdict if each.wrong or not fails & each.findings.keys() else "failed"
        out(f"{each.turn.name}: {state}, {each.binding or 'unbound'}" + "".join(f"\n  {text}" for text in notes))
    for uuid in absent:
        out(f"turn {uuid[:60]}: unverifiable\n  commits speak of it and its record is not here; `git fetch --tags`")
    if not results and not absent:
        out("no turns are recorded here")


# --- views of it ---


@turn.command()
@click.option("--write", is_flag=True, help="Into the ledger's folder of the work tree.")
def index(write: bool) -> None:
    """Make turns_index.csv anew from the records."""
    with opened() as (_, objects, turns):
        rows = []
        for each in turns:
            try:
                rows.append(row(read_turn(objects, each)[1]))
            except RemudaError as error:
                note(f"{each.name} is left out: {error.message}")
    data = render(rows)
    if not write:
        out(data.decode().rstrip("\r\n"))
        return
    repository = here()
    try:
        path = Path(repository.top, keeping_of(repository).folder, "turns_index.csv")
    except BadKeeping as error:
        raise Invalid(str(error)) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(str(path), data)
    out(f"{path}: {len(rows)} turns")


@turn.command()
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="json", show_default=True)
@click.argument("names", nargs=-1)
def export(form: str, names: tuple[str, ...]) -> None:
    """Print records for other programs: those named, or all."""
    with opened() as (_, objects, turns):
        chosen = [find_turn(turns, name) for name in names] or turns
        data = FORMATS[form]([(each, *read_turn(objects, each)) for each in chosen], objects)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


@turn.command("recover")
@json_option
def recover_turns(as_json: bool) -> int:
    """Bring to its end whatever a crash left half done. It may be run at any time, as often as you like."""
    repository = here()
    done = recover(repository, dead, signing_key(Path(repository.top)))
    told = [_recovered(each) for each in done]
    if as_json:
        out_json({"turns": told})
    else:
        for each in told:
            out(f"turn {each['turn']}: " + ("; ".join(each["failed"]) or f"recorded in {each['commit'][:12]}"))
        if not told:
            out("nothing to recover")
    return int(any(each["failed"] for each in told))


def _recovered(record: Record) -> dict[str, Any]:
    return {"turn": record.turn.number, "commit": record.commit, "failed": record.failed}


# --- what an agent gives ---


@turn.command()
@click.option("--title", required=True)
@click.option("--context", required=True, help="What made a decision necessary.")
@click.option("--decision", required=True, help="What was decided.")
@click.option("--rationale", multiple=True, help="A reason; may be given more than once, as may the next two.")
@click.option("--alternative", "alternatives", multiple=True)
@click.option("--consequence", "consequences", multiple=True)
def decide(title: str, context: str, decision: str, **lists: tuple[str, ...]) -> None:
    """Give the turn that is under way here a decision for its adr.md."""
    made = Decision(title, context, decision, **{name: list(given) for name, given in lists.items()})
    number = give_decision(here(), made, agent=os.environ.get("REMUDA_AGENT", ""))
    out(f"recorded for turn {number}")


@turn.command()
@click.argument("text")
def summary(text: str) -> None:
    """Give the turn that is under way here its summary, in your words."""
    out(f"recorded for turn {give_summary(here(), text, agent=os.environ.get('REMUDA_AGENT', ''))}")
