"""What a file of settings may hold, and what to say when it holds something else. Pure."""

import difflib
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec


def keys_of(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every key, as one would write it. NAME stands for a name of the user's own, as in [roles.reviewer]."""
    for field in msgspec.structs.fields(struct):
        inner, named = _inside(field.type)
        name = f"{prefix}{field.name}"
        if inner is None:
            yield name
        else:
            yield from keys_of(inner, f"{name}.NAME." if named else f"{name}.")


def _inside(kind: Any) -> tuple[type[msgspec.Struct] | None, bool]:
    """The struct that a field holds, and whether it holds one for each name of the user's."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each, each is not kind and getattr(kind, "__origin__", None) is dict
    return None, False


def in_words(error: str, struct: type[msgspec.Struct]) -> str:
    """For a key that does not exist, name the nearest that does."""
    unknown = re.search(r"unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", error)
    if not unknown:
        return error
    section = (unknown[2] or "").replace("[...]", ".NAME")
    known = list(keys_of(struct))
    candidates = known if section else list(dict.fromkeys(each.partition(".")[0] for each in known))
    key = f"{section}.{unknown[1]}" if section else unknown[1]
    near = difflib.get_close_matches(key, candidates, n=1, cutoff=0.4)
    return f"there is no setting {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
