"""Servers ranked by how well they fit a wish: BM25 over what is known of each, offline and in a millisecond. Pure.

A server is one document of five fields. A word in its name says more than one in the description of its twentieth
tool, so fields have weights and each is measured against its own usual length (BM25F). SQLite's FTS5 was the first
choice; it ranks the same words as well, but cannot tell why, nor count a word that only stands for another.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from remuda.gateway.choice import Candidate
from remuda.gateway.names import SEPARATOR
from remuda.gateway.thesaurus import meant
from remuda.gateway.words import FILLER, apart, every_word, stem, words

SATURATION, LENGTH = 1.2, 0.5  # k1 and b of BM25
FIELDS: Mapping[str, float] = {"name": 6.0, "keywords": 6.0, "description": 3.0, "tools": 1.5, "prose": 0.4}
MOST_WORDS = 200  # of a wish; nobody wishes in more
UNSEEN = 100  # servers that know none of the words: with three of ours alone, a rare word and a common one look alike
LONGEST_PROSE = 4000  # characters of one server's tool descriptions; a long one is not a better one


class Card(NamedTuple):
    """What is known of a server, as words."""

    candidate: Candidate
    fields: Mapping[str, Mapping[str, int]]
    lengths: Mapping[str, int]
    called: tuple[frozenset[str], ...]  # its name and each of its keywords: to say all words of one is to name it


class Fit(NamedTuple):
    server: str
    score: float
    share: float  # of what a server could have that fits in every word
    named: bool  # the wish says its name, or a keyword of it
    words: Mapping[str, str]  # the server's that fit, and the wish's for whose sake


def card(candidate: Candidate) -> Card:
    settings = candidate.settings
    texts = {
        "name": candidate.name,
        "keywords": " ".join(settings.keywords),
        "description": settings.description,
        "tools": apart(" ".join(tool_names(candidate))),
        "prose": _prose(candidate.tools),
    }
    fields = {field: Counter(words(text)) for field, text in texts.items()}
    fields["name"] = Counter(map(stem, every_word(candidate.name)))  # a server may be called `one`
    called = (frozenset(fields["name"]), *(frozenset(words(each)) for each in settings.keywords))
    lengths = {field: counted.total() for field, counted in fields.items()}
    return Card(candidate, fields, lengths, tuple(filter(None, called)))


def tool_names(candidate: Candidate) -> list[str]:
    """As the server calls them: with its own name before each they would all fit whatever names the server."""
    return [str(tool.get("name") or "").removeprefix(candidate.name + SEPARATOR) for tool in candidate.tools]


def _prose(tools: Sequence[Mapping[str, Any]]) -> str:
    share = max(80, LONGEST_PROSE // max(1, len(tools)))  # of each alike: the first is not the most important
    return " ".join(str(tool.get("description") or "")[:share] for tool in tools)


class Index:
    """All servers, by word."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self.cards = cards
        usual = {field: sum(each.lengths[field] for each in cards) / max(1, len(cards)) or 1.0 for field in FIELDS}
        self._names = {word for each in cards for word in each.fields["name"]}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for number, each in enumerate(cards):
            for word, weight in _weights(each, usual).items():
                self._postings.setdefault(word, []).append((number, weight))

    def rank(self, wish: str) -> list[Fit]:
        """Every server that fits at all, the best first; equal ones in the order of their names."""
        spoken = [word for word in every_word(wish) if word not in FILLER or stem(word) in self._names]
        said = {stem(word): word for word in reversed(spoken[:MOST_WORDS])}
        stands = {word: (weight, sake) for word, (weight, sake) in meant(wish).items() if word not in said}
        scores: dict[int, float] = {}
        fitting: dict[int, dict[str, str]] = {}
        for word in (*said, *stands):
            postings = self._postings.get(word, ())
            weight, sake = stands.get(word) or (1.0, said[word])
            worth = weight * self._rarity(len(postings))
            for number, frequency in postings:
                scores[number] = scores.get(number, 0.0) + worth * frequency
                fitting.setdefault(number, {})[word] = sake
        whole = sum(self._rarity(len(self._postings.get(word, ()))) for word in said) * (SATURATION + 1) or 1.0
        fits = [self._fit(number, score, score / whole, fitting[number]) for number, score in scores.items()]
        return sorted(fits, key=lambda fit: (-fit.score, fit.server))

    def _rarity(self, servers: int) -> float:
        return math.log(1 + (len(self.cards) + UNSEEN - servers + 0.5) / (servers + 0.5))

    def _fit(self, number: int, score: float, share: float, fitting: Mapping[str, str]) -> Fit:
        each = self.cards[number]
        own = {word for word, sake in fitting.items() if word == stem(sake)}
        return Fit(each.candidate.name, score, share, any(names <= own for names in each.called), fitting)


def _weights(each: Card, usual: Mapping[str, float]) -> dict[str, float]:
    """How much each word says of a server: often says more than once, but never much more."""
    frequencies: dict[str, float] = {}
    for field, weight in FIELDS.items():
        norm = 1 - LENGTH + LENGTH * each.lengths[field] / usual[field]
        for word, times in each.fields[field].items():
            frequencies[word] = frequencies.get(word, 0.0) + weight * times / norm
    return {word: often * (SATURATION + 1) / (often + SATURATION) for word, often in frequencies.items()}
