"""The settings, `remuda.toml` at the project's root. Every key stands here; any other is refused."""

import difflib
import re
from pathlib import Path

import msgspec

from remuda.domain.errors import Invalid
from remuda.store.output import DEFAULT_LINES


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    backend: str = "scripted"  # who runs an agent when `spawn` does not say


class OutputSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lines: int = DEFAULT_LINES  # recent lines of output kept in memory for each live agent


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: ProjectSettings = ProjectSettings()
    output: OutputSettings = OutputSettings()


TEMPLATE = """\
# Settings of Remuda for this project. Every key is optional; what is here are the defaults.

[project]
# backend = "scripted"    # who runs an agent when `remuda spawn` does not say

[output]
# lines = 100             # recent lines of output kept in memory for each live agent
"""


def load_settings(path: Path) -> Settings:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    try:
        settings = msgspec.toml.decode(data, type=Settings)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"{path}: {_in_words(str(error))}") from error
    if not 1 <= settings.output.lines <= 100_000:
        raise Invalid(f"{path}: output.lines must be from 1 to 100000, not {settings.output.lines}")
    return settings


def known_keys() -> list[str]:
    keys: list[str] = []
    for section in msgspec.structs.fields(Settings):
        keys += [f"{section.name}.{each.name}" for each in msgspec.structs.fields(type(section.default))]
    return keys


def _in_words(error: str) -> str:
    """For a key that does not exist, name the nearest that does."""
    unknown = re.search(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", error)
    if not unknown:
        return error
    key = f"{unknown[2]}.{unknown[1]}" if unknown[2] else unknown[1]
    sections = [field.name for field in msgspec.structs.fields(Settings)]
    near = difflib.get_close_matches(key, known_keys() if unknown[2] else sections, n=1, cutoff=0.4)
    return f"there is no setting {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
