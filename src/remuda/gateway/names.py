"""Names of tools as clients see them: `server__tool`, in letters that every client takes. Pure and deterministic."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

SEPARATOR = "__"  # no name of a server holds it, so the first one in a name ends the server's
LONGEST = 56  # clients put their own prefix before it, and models take 64
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 8


class Named(NamedTuple):
    shown: dict[str, str]  # as clients see it -> as the server calls it
    collisions: dict[str, str]  # names that more than one tool would have -> why none of them has it


def shown_name(server: str, tool: str) -> str:
    """What does not fit is shortened, and ends in a digest of the whole so that two long names stay apart."""
    name = f"{server}{SEPARATOR}{_ODD.sub('_', tool)}"
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(tool.encode(errors="replace")).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 1]}_{digest}"


def name_all(server: str, tools: Iterable[str]) -> Named:
    """Tools that would have one name have none, in whatever order they were listed: nobody can say which was meant."""
    known = list(tools)
    shown = [(shown_name(server, tool), tool) for tool in known]
    often = Counter(name for name, _ in shown)
    collisions: dict[str, str] = {}
    for name in sorted(name for name, count in often.items() if count > 1):
        same = sorted(tool for each, tool in shown if each == name)
        collisions[name] = f"the server {server!r} lists {', '.join(map(repr, same))} under one name; rename them there"
    return Named({name: tool for name, tool in shown if name not in collisions}, collisions)


def server_of(name: str) -> str:
    """The server that a name begins with, or nothing."""
    server, separator, _ = name.partition(SEPARATOR)
    return server if separator else ""
