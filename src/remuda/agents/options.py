"""An agent's own settings, as its program takes them: by a flag, or by a variable of its environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from remuda.domain.errors import Invalid


@dataclass(frozen=True, slots=True)
class Option:
    flag: str = ""
    env: str = ""


def options_of(
    program: str, known: Mapping[str, Option], given: Iterable[tuple[str, str]]
) -> tuple[list[str], dict[str, str]]:
    """Flags and variables for what was given; raises Invalid for an option that the program does not have."""
    flags: list[str] = []
    env: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            raise Invalid(f"{program} has no option {name!r}", possible=nearest_first(name, known))
        option = known[name]
        if option.flag:
            flags += [option.flag, value]
        if option.env:
            env[option.env] = value
    return flags, env


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    return sorted(known, key=lambda each: SequenceMatcher(None, name, each).ratio(), reverse=True)
