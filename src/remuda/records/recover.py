"""Whatever a crash left half done is brought to its end: at every start, before every begin, and by hand."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remuda.records.begin import end
from remuda.records.journal import OpenTurn, open_turns
from remuda.records.moment import alive
from remuda.records.publish import Record, publish
from remuda.records.repository import Repository

FORGOTTEN = 7 * 24 * 3600.0  # seconds after which a turn whose owner cannot be asked for counts as over

Facts = dict[str, Any]
Abandoned = Callable[[Facts], bool]


def recover(repository: Repository, abandoned: Abandoned, key: Path | None = None) -> list[Record]:
    """End the turns that nobody will end any more, and finish the records of all that have ended."""
    done = []
    for turn in open_turns(repository):
        begun = turn.facts("begun")
        if begun is None:
            continue
        if turn.facts("ended") is None and abandoned(begun):
            end(turn, "lost" if begun["by"] == "runtime" else "interrupted", error="nobody ended this turn")
        record = publish(turn, key)
        if record:
            done.append(record)
    return done


def dead(begun: Facts) -> bool:
    """Whether the process that a turn belongs to is gone."""
    owner = begun.get("owner") or {}
    if owner:
        return not alive(int(owner["pid"]), str(owner["start"]), str(owner["boot"]))
    return time.time() - float(begun["start"]["wall"]) > FORGOTTEN


def unfinished(repository: Repository) -> list[tuple[OpenTurn, str]]:
    """Turns that are under way or whose record is not complete, with what stands in the way."""
    found = []
    for turn in open_turns(repository):
        ended = os.path.exists(f"{turn.folder}/ended.json")
        errors = turn.lines("errors")
        why = f"{errors[-1]['step']}: {errors[-1]['error']}" if errors else ""
        found.append((turn, why or ("its record is not complete" if ended else "under way")))
    return found
