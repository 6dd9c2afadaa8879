"""What an agent of a role may do without asking. Pure: a policy and a wish give a ruling.

Rules are written `tool` or `tool:path`, both with the wildcards of a shell (`*`, `?`, `[…]`; `**` like `*` crosses
folders). Deny is stronger than ask, ask is stronger than allow, and the role's default holds for the rest. Whatever the
rules say, a path outside the folders that the agent may write in is denied, unless an allow rule names that path.
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


@dataclass(frozen=True, slots=True)
class Policy:
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default: Ruling = Ruling.ALLOW
    outside: Ruling = Ruling.DENY  # for files outside the agent's own folders


@dataclass(frozen=True, slots=True)
class Judgement:
    ruling: Ruling
    why: str


def judge(policy: Policy, tool: str, paths: Sequence[str], folders: Sequence[str]) -> Judgement:
    """`paths` and `folders` are absolute and have no links in them: to find that out is not for a pure function."""
    for ruling, rules in ((Ruling.DENY, policy.deny), (Ruling.ASK, policy.ask)):
        rule = _first(rules, tool, paths)
        if rule:
            return Judgement(ruling, f"the rule {rule!r}")
    rule = _first(policy.allow, tool, paths)
    outside = [path for path in paths if not _within(path, folders)]
    if outside and not (rule and ":" in rule):
        return Judgement(policy.outside, f"{outside[0]} is outside the agent's own folders")
    if rule:
        return Judgement(Ruling.ALLOW, f"the rule {rule!r}")
    return Judgement(policy.default, "the role's default")


def _first(rules: Sequence[str], tool: str, paths: Sequence[str]) -> str:
    return next((rule for rule in rules if _matches(rule, tool, paths)), "")


def _matches(rule: str, tool: str, paths: Sequence[str]) -> bool:
    wanted, _, where = rule.partition(":")
    if not fnmatchcase(tool.lower(), wanted.lower()):
        return False
    return not where or (bool(paths) and all(fnmatchcase(path, where) for path in paths))


def _within(path: str, folders: Sequence[str]) -> bool:
    clean = normpath(path)
    return any(clean == folder or clean.startswith(folder.rstrip("/") + "/") for folder in map(normpath, folders))
