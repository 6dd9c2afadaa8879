"""The checks at the end of a turn, for a hook: what to write down, or what to tell the agent first."""

from pathlib import Path
from typing import Any

import msgspec

from remuda.records.facts import Begun
from remuda.records.journal import OpenTurn
from remuda.records.project import wanted
from remuda.records.repository import find_repository, head
from remuda.records.snapshot import snapshot
from remuda.records.validations import Checks, validate

TOLD = "[remuda] The work was checked and is not complete yet. Mend it, then end your turn again.\n\n"


def check(turn: OpenTurn, *, again: bool) -> tuple[dict[str, Any], str]:
    """The facts for the record, and what the agent has to hear before its turn may end. It hears it once: an agent that
    cannot mend it must be able to stop."""
    begun = msgspec.convert(turn.facts("begun"), Begun)
    return run(turn, begun, wanted(Path(begun.top)).checks, again=again)


def run(turn: OpenTurn, begun: Begun, checks: Checks, *, again: bool) -> tuple[dict[str, Any], str]:
    if not checks.any:
        return {}, ""
    here = find_repository(begun.top)
    tree, commit = snapshot(here, begun.folder).tree, head(here)[1]
    result = validate(turn, begun, tree, commit, checks)
    if result.told and not again:
        return {}, TOLD + result.told
    facts: dict[str, Any] = {"validations": msgspec.to_builtins(result.validations)}
    return facts, ""
