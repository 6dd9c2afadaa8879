"""Which tool server an intent means, over real servers and many that are not meant.

The servers are recorded from npm and PyPI (bench/data/record.py); beside them stand distractors of our own making. The
intents are in two parts: on one the thesaurus and the thresholds were made, the other was written afterwards, seen by
nobody before it was first measured, and alone counts here. Half of each are paraphrases; all are said as an agent says
what it wants to do, and with the same author as the thesaurus. SQLite's FTS5 ranks the same texts in the same run.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from bench.figure import Figure, interleaved, median, spread
from remuda.gateway.choice import Candidate, Choice, Tier
from remuda.gateway.intent import Chooser
from remuda.gateway.words import every_word, words
from remuda.runtime.tool_servers import ServerSettings

DATA = Path(__file__).parent / "data"
ROUNDS = 9


class Intent(NamedTuple):
    part: str  # tune, report
    kind: str  # plain, paraphrase, none
    right: frozenset[str]
    text: str


def candidates() -> list[Candidate]:
    real = [
        Candidate(each["name"], ServerSettings(command=("x",), description=each["description"]), each["tools"])
        for each in json.loads((DATA / "tool_servers.json").read_text())
    ]
    rows = [line.split("|") for line in (DATA / "distractors.txt").read_text().splitlines()]
    others = [
        Candidate(
            name,
            ServerSettings(command=("x",), description=about),
            [{"name": tool, "description": tool.replace("_", " ")} for tool in tools.split()],
        )
        for name, about, tools in rows
    ]
    return [*real, *others]


def intents(part: str) -> list[Intent]:
    rows = [line.split("\t") for line in (DATA / "intents.tsv").read_text().splitlines()]
    found = [Intent(of, kind, frozenset(filter(None, right.split(","))), text) for of, kind, right, text in rows]
    return [each for each in found if each.part == part]


class Tally(NamedTuple):
    first: float  # shares, of the intents that mean a server
    five: float
    wrong: float  # ... of all: started, and not meant


def tally(asked: Sequence[Intent], choose: Callable[[str], Choice]) -> Tally:
    given = [(each, choose(each.text)) for each in asked]
    names = [(each, [offer.server for offer in choice.offered]) for each, choice in given if each.right]
    first = sum(bool(offered) and offered[0] in each.right for each, offered in names)
    five = sum(bool(each.right & set(offered[:5])) for each, offered in names)
    wrong = sum(choice.tier is Tier.CLEAR and choice.offered[0].server not in each.right for each, choice in given)
    return Tally(first / len(names), five / len(names), wrong / len(given))


def shares_nothing(each: Intent, servers: Sequence[Candidate]) -> bool:
    """No word of it stands in the name, the description or a tool's name of a server that is meant."""
    said = set(words(each.text))
    meant = [server for server in servers if server.name in each.right]
    texts = [" ".join((one.name, one.settings.description, *(tool["name"] for tool in one.tools))) for one in meant]
    return not any(said & set(words(text)) for text in texts)


class Fts:
    """The peer: SQLite's full-text search with its own BM25, the same fields and like weights."""

    def __init__(self, servers: Sequence[Candidate]) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            "create virtual table server using fts5(name, about, tools, prose, tokenize = 'porter unicode61')"
        )
        with self._db:
            for each in servers:
                tools = " ".join(tool["name"].replace("_", " ") for tool in each.tools)
                prose = " ".join(tool["description"] for tool in each.tools)
                row = (each.name, each.settings.description, tools, prose)
                self._db.execute("insert into server values (?, ?, ?, ?)", row)

    def five(self, text: str) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in every_word(text))
        found = self._db.execute(
            "select name from server where server match ? order by bm25(server, 8, 4, 2, 1) limit 5", (query,)
        )
        return [str(name) for (name,) in found]


def figures() -> list[Figure]:
    servers, asked = candidates(), intents("report")
    chooser, peer = Chooser(), Fts(servers)
    ours = tally(asked, lambda text: chooser(text, servers))
    with_server = [each for each in asked if each.right]
    fives = [(each, peer.five(each.text)) for each in with_server]
    peers_first = sum(bool(five) and five[0] in each.right for each, five in fives) / len(fives)
    peers_five = sum(bool(each.right & set(five)) for each, five in fives) / len(fives)
    strange = [each for each in asked if each.kind == "paraphrase" and shares_nothing(each, servers)]
    hard = tally(strange, lambda text: chooser(text, servers))
    size = f"{len(with_server)} intents, {len(servers)} servers; FTS5"
    hardly = f"{len(strange)} of them share no word with name, description or tools"
    return [
        _share("first", ours.first, f"{hardly}: {hard.first:.0%}", f"{size}: {peers_first:.0%}", "≥ 75 %", 0.75),
        _share("five", ours.five, f"{hardly}: {hard.five:.0%}", f"{size}: {peers_five:.0%}", "≥ 95 %", 0.95),
        Figure("gateway.intent_wrong_start", 100 * ours.wrong, "%", "", size, "≤ 2 %", ours.wrong <= 0.02),
        _speed(servers, asked, peer),
    ]


def _share(name: str, value: float, spread_: str, compared: str, goal: str, least: float) -> Figure:
    return Figure(f"gateway.intent_{name}", 100 * value, "%", spread_, compared, goal, value >= least)


def _speed(servers: Sequence[Candidate], asked: Sequence[Intent], peer: Fts) -> Figure:
    chooser = Chooser()
    chooser("warm", servers)

    def timed(ask: Callable[[str], object]) -> Callable[[], float]:
        def once() -> float:
            began = time.perf_counter()
            for each in asked:
                ask(each.text)
            return 1000 * (time.perf_counter() - began) / len(asked)

        return once

    ours, fts = interleaved(ROUNDS, timed(lambda text: chooser(text, servers)), timed(peer.five))
    compared = f"FTS5, which gives no reasons: {median(fts):.2f} ms"
    return Figure("gateway.intent_time", median(ours), "ms", spread(ours), compared, "≤ 5 ms", median(ours) <= 5)
