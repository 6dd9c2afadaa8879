"""What people say and servers do not: the words of a wish, and the words of servers that they stand for. Pure, but for
reading its own file once.

Ranking by words alone finds hardly one in four of the servers whose words a wish does not use. Word vectors were tried
in its place (GloVe, and a static model distilled from a large one): alone they were worse than the words, and added to
this list they changed nothing.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from math import sqrt

from remuda.gateway.words import every_word, stem, words

WEIGHT = 0.4  # of one word that stands for another; a word that a server uses itself has 1
MOST = 1.2  # however many words point the same way
LATER = 0.8  # of the words of servers after the first, which is the one that says it best

Cues = Mapping[tuple[str, ...], Sequence[Sequence[str]]]


@lru_cache(maxsize=1)
def cues() -> Cues:
    """For each word or pair of words of people: the lists of words that it stands for."""
    found: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for line in files("remuda.gateway").joinpath("thesaurus.txt").read_text().splitlines():
        theirs, colon, ours = line.partition(" : ")
        if not colon or line.startswith("#"):
            continue
        heads = words(theirs)
        for cue in ours.split():
            found.setdefault(tuple(stem(part) for part in cue.split("-")), []).append(heads)
    return found


def meant(text: str) -> dict[str, tuple[float, str]]:
    """Words of servers that a wish may stand for: how much each counts, and for the sake of which word."""
    known = cues()
    surface = {stem(word): word for word in reversed(every_word(text))}
    spoken = [stem(word) for word in every_word(text)]
    grams = {tuple(spoken[at : at + size]) for size in (1, 2, 3) for at in range(len(spoken) - size + 1)}
    weights: dict[str, float] = {}
    sakes: dict[str, str] = {}
    for gram in sorted(grams & known.keys()):
        lists = known[gram]
        share = WEIGHT / sqrt(len(lists))  # a word that may mean much says little
        for heads in lists:
            for place, head in enumerate(heads):
                weights[head] = weights.get(head, 0.0) + share * (LATER if place else 1.0)
                sakes.setdefault(head, " ".join(surface[part] for part in gram))
    return {head: (min(weight, MOST), sakes[head]) for head, weight in weights.items()}
