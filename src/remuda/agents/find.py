"""Where an agent's program is on this machine, and what it is given: variables and files."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from remuda.agents.programs import bundled


def find(program: str, brought_by: Sequence[tuple[str, str]], env: Mapping[str, str]) -> str | None:
    """On PATH, or else in a Python package that brings it along."""
    found = (bundled(package, inside) for package, inside in brought_by)
    return shutil.which(program, path=env.get("PATH")) or next(filter(None, found), None)


def passed(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that may pass to the agent. Everything else the user has in the environment stays here."""
    exact = {name for name in names if not name.endswith("*")}
    beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
    return {name: value for name, value in environ.items() if name in exact or name.startswith(beginnings)}


def furnish(home: Path, files: Mapping[str, str]) -> None:
    """Write the files that an agent wants in its home; what is there already stays."""
    for inside, text in files.items():
        path = home / inside
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
