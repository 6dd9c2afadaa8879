"""The settings of a project that the slower half of the records needs, for whoever runs without the runtime.

`remuda.toml` is checked key by key in `runtime/config.py`, which is above this room. Here it is only read.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from remuda.domain.errors import Invalid
from remuda.records.validations import COMMANDS, DEFAULT_LIMIT, Checks


@dataclass(frozen=True, slots=True)
class Wanted:
    checks: Checks
    key: Path | None


def wanted(top: Path) -> Wanted:
    try:
        turns = tomllib.loads((top / "remuda.toml").read_text()).get("turns", {})
    except FileNotFoundError:
        turns = {}
    except (OSError, ValueError) as error:
        raise Invalid(f"{top / 'remuda.toml'} cannot be read: {error}") from error
    key = str(turns.get("signing_key", ""))
    checks = Checks(
        commands={rule: tuple(map(str, turns.get(name, ()))) for rule, name in COMMANDS.items()},
        headers=tuple(map(str, turns.get("headers", ()))),
        versions=tuple(map(str, turns.get("versions", ()))),
        branch=str(turns.get("branch_pattern", "")),
        commit=str(turns.get("commit_pattern", "")),
        seconds=float(turns.get("check_seconds", DEFAULT_LIMIT)),
        blocking=bool(turns.get("blocking", False)),
    )
    return Wanted(checks, top / Path(key).expanduser() if key else None)
