"""Words of a text, as ranking compares them: names taken apart, endings taken off, filler left out. Pure."""

import re
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
FILLER = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing don done down during each every few for from further get give given go had has have
    having he her here hers him his how i if in into is it its itself just let like made make many me more most much my
    need no nor not now of off on once only or other our ours out over own please put s same say see she should so some
    such t take tell than that the their them then there these they this those through to too two under until up use
    used using ve very want was we were what when where which while who whom why will with would yes you your yours
    mcp server servers tool tools via e g etc one ones something thing things e.g i.e new
    that's what's it's i'm don't""".split()  # noqa: SIM905  (a text is easier to read and to change)
)


def words(text: str) -> list[str]:
    """The stems of a text's words, in order; `createPullRequest` is three."""
    return [stem(word) for word in every_word(text) if word not in FILLER]


def every_word(text: str) -> list[str]:
    return [part.casefold() for word in _WORD.findall(text) for part in _parts(word)]


def apart(text: str) -> str:
    """Names with their words set apart, also those that begin with a capital."""
    return _CAMEL.sub(" ", text)


def _parts(word: str) -> list[str]:
    """`createPullRequest` is three words; `GitHub` is the name of one thing."""
    return _CAMEL.split(word) if word[0].islower() and not word.islower() else [word]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Without its ending. Lighter than Porter's: what it joins are forms of one word, hardly ever two words."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return _verb(word[: -len(ending)] + instead)
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return _verb(word)


def _verb(word: str) -> str:
    for ending in ("ing", "ed"):
        cut = word[: -len(ending)]
        if word.endswith(ending) and len(cut) >= 3 and any(each in "aeiouy" for each in cut):
            if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "lsz":
                cut = cut[:-1]
            return cut[:-1] + "y" if cut.endswith("i") else cut.removesuffix("e")
    return word.removesuffix("e")
