"""How likely a passage answers a query: that its note does, times that it is the passage of the note.

    P(p) = P(n) x P(p | n)
    P(n)     proportional to exp(STEEPNESS x (s_n / s_max - 1))           s_n: the score that ranked the note
    P(p | n) proportional to exp(WORDS x coverage + MEANING x cosine + LEAD x lead)  over the passages of n

`coverage` is the share of the query's idf-weighted terms that stand in the passage (less for those only in
its section's path), `cosine` the similarity of its chunk, `lead` the share again, each term by how early it
stands. A log-linear model, as in learning to rank; its four numbers were fitted on collections
(`bench/context.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from lithos.core.context.passages import Passage, SplitNote
from lithos.core.text.analysis import fold
from lithos.core.text.snippet import Terms, first_places, places_among

#: What a term counts that stands only in the path of the section, or only in the title.
IN_SECTION: Final = 0.7
IN_TITLE: Final = 0.3
#: Characters after which a term counts half in the lead of a passage.
HALVING: Final = 200
#: Shares of the query, or similarities, below which a passage has nothing to do with it.
LEAST_COVERAGE: Final = 0.12
LEAST_NEARNESS: Final = 0.3


@frozen(kw_only=True)
class Weights:
    """The numbers of the model (see above), and those of the choice (`core.context.choice`)."""

    steepness: float = 6.0
    words: float = 6.0
    meaning: float = 5.0
    lead: float = 1.0
    scale: float = 0.7
    query: float = 0.2
    least: float = 0.001
    kept: float = 0.1


@frozen(kw_only=True, eq=False)
class Source:
    """A note that may be shown, as it was read; sources come best first, ties by id.

    `score` is that of its ranking, `nearness` the similarity of each chunk to the query where it is known,
    `reasons` say how it was found.
    """

    id: str
    title: str
    path: str
    version: int
    score: float
    split: SplitNote
    nearness: Sequence[float] = ()
    reasons: Sequence[str] = ()


@frozen(eq=False)
class Weighed:
    """A passage of a source (by number, and its place there): its probability, and its share of each term."""

    source: int
    place: int
    passage: Passage
    worth: float
    shares: Mapping[int, float]
    nearness: float


def weigh_passages(sources: Sequence[Source], terms: Terms, weights: Weights) -> list[Weighed]:
    """The passages that have to do with the query, by source and place; those of others are left out."""
    highest = max((source.score for source in sources), default=0.0)
    priors = [
        math.exp(weights.steepness * (source.score / highest - 1)) if highest > 0 else 1.0
        for source in sources
    ]
    total = math.fsum(priors) or 1.0
    weighed: list[Weighed] = []
    for number, source in enumerate(sources):
        weighed += _weigh(number, source, terms, weights, priors[number] / total)
    return weighed


def _weigh(number: int, source: Source, terms: Terms, weights: Weights, prior: float) -> list[Weighed]:
    """The passages of one source; each has its part of the source's probability."""
    titled = dict.fromkeys(first_places(fold(source.title), terms), IN_TITLE)
    split = source.split
    # Folded as a whole where places stay; then a term that the note does not have is not looked for again.
    whole = fold(split.content) if split.content.isascii() else None
    sought = [(term, each) for term, each in enumerate(terms.terms) if whole is None or each.stem in whole]
    by_section: dict[int, tuple[dict[int, float], float]] = {}
    found: list[tuple[int, Passage, float, Mapping[int, float], float]] = []
    for place, passage in enumerate(split.passages):
        above = by_section.get(passage.section)
        if above is None:
            path = fold(split.sections[passage.section]) if passage.section else ""
            shares = titled | dict.fromkeys(first_places(path, terms), IN_SECTION)
            above = by_section[passage.section] = shares, _sum(shares, terms)
        shares, coverage = above
        places = (
            places_among(
                fold(split.text_of(passage)) if whole is None else whole[passage.start : passage.end], sought
            )
            if sought
            else {}
        )
        lead = 0.0
        if places:
            shares = shares | dict.fromkeys(places, 1.0)
            coverage = _sum(shares, terms)
            lead = _sum({term: 1 / (1 + at / HALVING) for term, at in places.items()}, terms)
        near = source.nearness[passage.chunk] if passage.chunk < len(source.nearness) else 0.0
        if coverage >= LEAST_COVERAGE or near >= LEAST_NEARNESS:
            energy = weights.words * coverage + weights.meaning * near + weights.lead * lead
            found.append((place, passage, energy, shares, near))
    peak = max((energy for _, _, energy, _, _ in found), default=0.0)
    total = math.fsum(math.exp(energy - peak) for _, _, energy, _, _ in found) or 1.0
    return [
        Weighed(number, place, passage, prior * math.exp(energy - peak) / total, shares, near)
        for place, passage, energy, shares, near in found
    ]


def _sum(shares: Mapping[int, float], terms: Terms) -> float:
    if not terms.total:
        return 0.0
    return math.fsum(terms.terms[term].weight * share for term, share in shares.items()) / terms.total
