"""Where an agent's program is on this machine, and what it is given: variables and files."""

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path


def find(program: str, bundled: Sequence[tuple[str, str]], env: Mapping[str, str]) -> str | None:
    """On PATH, or else in a Python package that brings it along. The package itself is not imported: some are slow."""
    return shutil.which(program, path=env.get("PATH")) or _brought(bundled)


def _brought(bundled: Sequence[tuple[str, str]]) -> str | None:
    for package, inside in bundled:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            if (path := Path(folder) / inside).is_file():
                return str(path)
    return None


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
