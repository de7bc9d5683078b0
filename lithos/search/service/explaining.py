"""Explanations of a search: the rank of a note in each ranking, and the parts of its score.

Explanations are for people who examine a search. To explain a search, the same functions run it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs
from attrs import field, frozen

from lithos.kernel.values.errors import IndexFailed
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_query import HEADINGS_BOOST, TITLE_BOOST
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.graph_search import Walk
from lithos.search.service.hybrid import LONGEST_QUERY, Hybrid, HybridRanking
from lithos.text.query import Boolean, Boosted, Node, Word, plain_words
from lithos.text.snippet import Terms

#: Maximum number of notes for which the shares of title and headings are computed.
MOST_TITLED: Final = 1_000


@frozen(kw_only=True)
class WordsPart:
    """Full-text result of a note: rank (from 1), BM25 score and contribution to the total score.

    `title` and `headings` are the shares of these fields in the BM25 score.
    """

    rank: int
    bm25: float
    title: float = 0.0
    headings: float = 0.0
    part: float = 0.0


@frozen(kw_only=True)
class MeaningPart:
    """Semantic result of a note.

    `rank` counts from 1, `similarity` is that of the best passage, and `part` is the contribution to the
    total score.
    """

    rank: int
    similarity: float
    part: float = 0.0


@frozen(kw_only=True)
class LeadPart:
    """How early a note contains the query words: in total, in its title and opening, and in its best passage.

    All values are 0..1. `share` is the share of the query words, by idf, that the note contains. `part` is
    the contribution of `coverage` to the score.
    """

    coverage: float
    opening: float
    passage: float
    share: float
    part: float = 0.0


@frozen(kw_only=True)
class Explanation:
    """The parts of a note's score. Their sum is the score.

    The part of a ranking is 0 if the search mode does not use that ranking.
    """

    words: WordsPart | None = None
    meaning: MeaningPart | None = None
    lead: LeadPart | None = None
    #: Results of the note in a graph search, else None. The parts of the walk add up to the score.
    walk: Walk | None = None
    #: Probability that the note answers the question. Only known for the first three rows.
    probability: float | None = None

    @property
    def score(self) -> float:
        """The sum of the parts."""
        if self.walk is not None:
            return sum(self.walk.parts)
        return sum(each.part for each in (self.words, self.meaning, self.lead) if each is not None)


@frozen(kw_only=True)
class Explained:
    """The explanations of one search by note id, and the terms marked in the snippets."""

    by_id: Mapping[str, Explanation] = field(factory=dict)
    terms: Terms = Terms()


class Explainer:
    """Explains the full-text and semantic parts of a ranking."""

    def __init__(self, fulltext: FulltextIndex, hybrid: Hybrid) -> None:
        self._fulltext = fulltext
        self._hybrid = hybrid

    def tell_hybrid(
        self, query: str, filters: Filters, ranking: HybridRanking, serials: Collection[int]
    ) -> dict[int, Explanation]:
        """Return by serial the explanation of a note in a hybrid search.

        An explanation has the note's results in each ranking, with their parts of the score.
        """
        words, meaning, lead = self._hybrid.parts(ranking)
        chances = self._hybrid.chances(ranking)
        found = self.tell_words(
            plain_words(query[:LONGEST_QUERY]), filters, list(ranking.lexical.items()), serials
        )
        near: dict[int, MeaningPart] = {}
        for rank, hit in enumerate(ranking.chunks, start=1):
            if hit.serial in serials:
                near.setdefault(hit.serial, MeaningPart(rank=rank, similarity=hit.similarity))
        told: dict[int, Explanation] = {}
        for serial in dict.fromkeys([*found, *near]):
            of_words, of_meaning, covered = found.get(serial), near.get(serial), ranking.covered.get(serial)
            told[serial] = Explanation(
                words=of_words and attrs.evolve(of_words, part=words.get(serial, 0.0)),
                meaning=of_meaning and attrs.evolve(of_meaning, part=meaning.get(serial, 0.0)),
                lead=None
                if covered is None
                else LeadPart(
                    coverage=covered.coverage,
                    opening=covered.lead,
                    passage=covered.passage,
                    share=covered.share,
                    part=lead.get(serial, 0.0),
                ),
                probability=chances.get(serial),
            )
        return told

    def tell_words(
        self,
        node: Node | None,
        filters: Filters,
        found: Sequence[tuple[int, float]],
        serials: Collection[int],
    ) -> dict[int, WordsPart]:
        """Return the full-text rank and BM25 score of notes by serial, with the shares of title and headings.

        The shares count only ranked words. Phrases and required terms are not included.
        """
        title = self._field_scores(node, "title", TITLE_BOOST, filters)
        headings = self._field_scores(node, "headings", HEADINGS_BOOST, filters)
        return {
            serial: WordsPart(
                rank=rank,
                bm25=bm25,
                title=min(1.0, title.get(serial, 0.0) / bm25) if bm25 else 0.0,
                headings=min(1.0, headings.get(serial, 0.0) / bm25) if bm25 else 0.0,
            )
            for rank, (serial, bm25) in enumerate(found, start=1)
            if serial in serials
        }

    def _field_scores(
        self, node: Node | None, name: str, boost: float, filters: Filters
    ) -> Mapping[int, float]:
        """Return the contribution of one field of the notes to their BM25 scores."""
        narrowed = _narrow(node, name)
        if narrowed is None:
            return {}
        try:
            found = self._fulltext.search(narrowed, MOST_TITLED, filters)
        except IndexFailed:
            return {}  # the search has already reported this error
        return {serial: boost * score for serial, score in found}


def _narrow(node: Node | None, name: str) -> Node | None:
    """Return only the ranked words of a query, searched in one field instead of all fields."""
    if isinstance(node, Word):
        return Word(name, node.text) if node.field is None else None
    if isinstance(node, Boosted):
        inner = _narrow(node.node, name)
        return None if inner is None else Boosted(inner, node.factor)
    if not isinstance(node, Boolean):
        return None
    clauses = [(occur, each) for occur, clause in node.clauses if (each := _narrow(clause, name)) is not None]
    ranked = [(occur, each) for occur, each in clauses if occur.value == "should"]
    return Boolean(tuple(ranked)) if ranked else None


def words_alone(
    told: Mapping[int, Explanation], words: Mapping[int, WordsPart], chances: Mapping[int, float]
) -> dict[int, Explanation]:
    """Return the explanations of a full-text search, whose only score is BM25.

    Semantic results are included, but their parts are 0.
    """
    nothing = Explanation()
    return {
        serial: attrs.evolve(
            _without_parts(told.get(serial, nothing)),
            words=attrs.evolve(part, part=part.bm25),
            probability=chances.get(serial),
        )
        for serial, part in words.items()
    }


def meaning_alone(told: Mapping[int, Explanation], chances: Mapping[int, float]) -> dict[int, Explanation]:
    """Return the explanations of a semantic search, whose only score is the similarity."""
    return {
        serial: attrs.evolve(
            _without_parts(each),
            meaning=attrs.evolve(each.meaning, part=each.meaning.similarity),
            probability=chances.get(serial),
        )
        for serial, each in told.items()
        if each.meaning is not None
    }


def _without_parts(told: Explanation) -> Explanation:
    """Return the explanation with all parts of the score set to 0."""
    return attrs.evolve(
        told,
        words=told.words and attrs.evolve(told.words, part=0.0),
        meaning=told.meaning and attrs.evolve(told.meaning, part=0.0),
        lead=told.lead and attrs.evolve(told.lead, part=0.0),
    )
