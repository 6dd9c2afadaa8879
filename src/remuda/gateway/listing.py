"""What stands in a client's list of tools. Pure.

A list that changes is paid for: tools come first in a prompt, and whatever follows a change is no longer cached. So a
server's tools are added at the end when it is first started, and nothing is taken away when its process leaves. Only
the mode that wants it so, or a budget, takes tools away.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from remuda.gateway.profiles import Mode


class Listed(NamedTuple):
    servers: tuple[str, ...] = ()  # in the order in which they came

    def add(self, server: str) -> "Listed":
        return self if server in self.servers else Listed((*self.servers, server))

    def drop(self, server: str) -> "Listed":
        return Listed(tuple(each for each in self.servers if each != server))


def shown(listed: Listed, mode: Mode, running: Sequence[str]) -> tuple[str, ...]:
    """The servers whose tools a client sees."""
    match mode:
        case Mode.SEARCH:
            return ()
        case Mode.STABLE:
            return listed.servers
        case Mode.DYNAMIC:
            return tuple(server for server in listed.servers if server in running)


def within(tokens: Mapping[str, int], used: Mapping[str, int], budget: int) -> frozenset[str]:
    """As many servers as the budget takes, the last used first. Without a budget all of them."""
    if not budget:
        return frozenset(tokens)
    left, fitting = budget, set[str]()
    for name in sorted(tokens, key=lambda name: (-used.get(name, -1), name)):
        if tokens[name] <= left:
            fitting.add(name)
            left -= tokens[name]
    return frozenset(fitting)


class Spent(NamedTuple):
    """A server that runs, as the budget sees it."""

    tokens: int
    used: int  # the turn
    kept: bool  # pinned, or with a call in flight


def evict(spent: Mapping[str, Spent], coming: str, tokens: int, budget: int) -> tuple[str, ...]:
    """Who has to leave so that the lists of those who run stay within the budget: the least recently used first."""
    over = sum(each.tokens for name, each in spent.items() if name != coming) + tokens - budget
    leaving: list[str] = []
    for name, each in sorted(spent.items(), key=lambda item: (item[1].used, item[0])):
        if over <= 0:
            break
        if name != coming and not each.kept and each.tokens:
            leaving.append(name)
            over -= each.tokens
    return tuple(leaving)
