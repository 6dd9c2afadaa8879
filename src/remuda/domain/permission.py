"""What an agent of a role may do without asking. Pure: a policy and a wish give a ruling.

Rules are written `tool` or `tool:path`, both with the wildcards of a shell (`*`, `?`, `[…]`; `**` like `*` crosses
folders). Deny is stronger than ask, ask is stronger than allow, and the role's default holds for the rest. A path
outside the folders that the agent may write in is denied besides (`outside`), unless an allow or ask rule names that
path. A wish with several paths gets the strictest of their rulings.

Remuda's own folder is nobody's, whatever the rules say: who could write there could write its own rules. But worktrees
are in there, and an agent whose folder is one of them works in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from posixpath import normpath


class Ruling(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


STRICTEST_FIRST = (Ruling.DENY, Ruling.ASK, Ruling.ALLOW)


@dataclass(frozen=True, slots=True)
class Policy:
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Ruling = Ruling.ALLOW
    outside: Ruling = Ruling.DENY  # for files outside the agent's own folders
    off_limits: tuple[str, ...] = ()  # folders and files, absolute; but for an agent's own folder inside them


@dataclass(frozen=True, slots=True)
class Judgement:
    ruling: Ruling
    why: str


def judge(policy: Policy, tool: str, paths: Sequence[str], folders: Sequence[str]) -> Judgement:
    """`paths` and `folders` are absolute and have no links in them: to find that out is not for a pure function."""
    if not paths:
        return _by_rules(policy, tool, "")
    homes = [_clean(folder) for folder in folders]
    return _strictest([_of_path(policy, tool, _clean(path), homes) for path in paths])


def _of_path(policy: Policy, tool: str, path: str, folders: Sequence[str]) -> Judgement:
    if any(_within(path, place) and not _at_home(path, place, folders) for place in policy.off_limits):
        return Judgement(Ruling.DENY, f"{path} is Remuda's own")
    ruled = _by_rules(policy, tool, path)
    named = any(_names_path(rule) and _matches(rule, tool, path) for rule in (*policy.ask, *policy.allow))
    if named or any(_within(path, folder) for folder in folders):
        return ruled
    return _strictest([Judgement(policy.outside, f"{path} is outside the agent's own folders"), ruled])


def _by_rules(policy: Policy, tool: str, path: str) -> Judgement:
    rules = {Ruling.DENY: policy.deny, Ruling.ASK: policy.ask, Ruling.ALLOW: policy.allow}
    for ruling in STRICTEST_FIRST:
        for rule in rules[ruling]:
            if _matches(rule, tool, path):
                return Judgement(ruling, f"the rule {rule!r}")
    return Judgement(policy.default, "the role's default")


def _strictest(judgements: Sequence[Judgement]) -> Judgement:
    return min(judgements, key=lambda each: STRICTEST_FIRST.index(each.ruling))


def _names_path(rule: str) -> bool:
    return bool(rule.partition(":")[2])


def _matches(rule: str, tool: str, path: str) -> bool:
    """A rule with a path says nothing of a wish without one."""
    wanted, _, where = rule.partition(":")
    return fnmatchcase(tool.lower(), wanted.lower()) and (not where or (bool(path) and fnmatchcase(path, where)))


def _at_home(path: str, place: str, folders: Sequence[str]) -> bool:
    return any(_within(folder, place) and _within(path, folder) for folder in folders)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _clean(path: str) -> str:
    """Without `..` and doubled slashes, so that no other way to write a path is another path."""
    clean = normpath(path)
    return clean[1:] if clean.startswith("//") else clean
