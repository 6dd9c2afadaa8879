"""What a wish comes to: one server that is clearly meant, a few to choose from, or none. Pure.

To start the wrong server costs a process, tokens and the model's trust; to ask costs a line. So a server is started
only when the wish calls it by name, or fits it in most of its words and fits no other nearly as well. The thresholds
were set on one half of the intents of the benchmark and are measured on the other.
"""

from collections.abc import Sequence

from remuda.gateway.choice import Candidate, Choice, Offered, Tier
from remuda.gateway.ranking import Card, Fit, Index, card, tool_names
from remuda.gateway.words import apart, words

NAMED_AHEAD = 0.1  # how far the first must be ahead of the second, as a share of its score, when it is called by name
AHEAD = 0.3  # ... and when it is not
COVERED = 0.4  # of a perfect fit, to be started without having been named
FAIRLY = 0.25  # of a perfect fit, to be offered as one that could do it
WITNESSES = 2  # words of the wish that must speak for it: one alone often means something else
LEAST = 4.0  # of a score; below it nothing fits
MOST_OFFERED = 5
MOST_TOOLS = 3  # that are named as a reason


class Chooser:
    """Remembers what it worked out of each server, for as long as the server stays the same."""

    def __init__(self) -> None:
        self._cards: dict[str, Card] = {}
        self._index = Index(())

    def __call__(self, wish: str, candidates: Sequence[Candidate]) -> Choice:
        cards = [self._card(each) for each in candidates]
        if len(cards) != len(self._index.cards) or any(
            a is not b for a, b in zip(cards, self._index.cards, strict=True)
        ):
            self._index = Index(cards)
        return choice_of(self._index.rank(wish), {each.candidate.name: each for each in cards})

    def _card(self, candidate: Candidate) -> Card:
        known = self._cards.get(candidate.name)
        if known is None or known.candidate.settings != candidate.settings or known.candidate.tools != candidate.tools:
            known = self._cards[candidate.name] = card(candidate)
        return known


def choice_of(fits: Sequence[Fit], cards: dict[str, Card]) -> Choice:
    if not fits or fits[0].score < LEAST:
        return Choice(Tier.NONE)
    best = fits[0]
    ahead = 1 - fits[1].score / best.score if len(fits) > 1 else 1.0
    offered = tuple(
        Offered(fit.server, round(min(1.0, fit.share), 3), why(fit, cards[fit.server])) for fit in fits[:MOST_OFFERED]
    )
    covered = best.share >= COVERED and len(set(best.words.values())) >= WITNESSES
    if (best.named and ahead >= NAMED_AHEAD) or (covered and ahead >= AHEAD):
        return Choice(Tier.CLEAR, offered[:1])
    return Choice(Tier.CLOSE if best.share >= FAIRLY else Tier.WEAK, offered)


def why(fit: Fit, each: Card) -> str:
    """For the model: what the server is for, and what of the wish led to it."""
    about = each.candidate.settings.description.strip().splitlines()
    fitting = {word for word in fit.words if any(word in each.fields[field] for field in ("tools", "name", "keywords"))}
    telling = [name for name in tool_names(each.candidate) if fitting & set(words(apart(name)))][:MOST_TOOLS]
    led = ", ".join(sorted(set(fit.words.values()))[:6])
    said = [about[0][:200] if about else "", f"tools: {', '.join(telling)}" if telling else "", f"fits: {led}"]
    return "; ".join(filter(None, said))
