"""Search for notes that probably answer a question, with candidates if no note does.

See docs/spec/search.md §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from attrs import define, field, frozen

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.match_strength import CANDIDATES
from lithos.search.service.hybrid import LONGEST_QUERY, NOTHING_RANKED, HybridRanking, backend_failure
from lithos.search.service.search import RankedRows, Search, SearchRequest
from lithos.text.markdown import one_line
from lithos.text.snippet import truncate

#: Maximum number of characters of the line shown for a candidate.
LINE: Final = 120
#: Number of ranked rows among which candidates are searched. Some of the rows may be quarantined or have no
#: text.
_LOOKED_AT: Final = 4 * CANDIDATES


@frozen
class CachedAnswer:
    """A note that may answer a question, with the probability that it does."""

    entry: Entry
    probability: float


@frozen
class CacheCandidate:
    """A note listed as a candidate after a cache miss, with one line of its best passage."""

    entry: Entry
    line: str


@frozen
class LikelyAnswers:
    """The notes that probably answer a question, best first, and the ranking from which they were taken."""

    likely: Sequence[CachedAnswer] = ()
    ranking: HybridRanking = field(default=NOTHING_RANKED, repr=False)


@define(eq=False)
class AnswerFinder:
    """Finds the answers of cache lookups with a hybrid search. Nothing is recorded."""

    _search: Search
    _catalogue: Catalogue

    async def find(self, query: str, limit: int, filters: Filters) -> LikelyAnswers:
        """Return at most `limit` notes that probably answer a question. Raises `SearchBackendFailed`.

        Only the first three rows of a hybrid search are considered. The best note is first.
        """
        if not query.strip():
            return LikelyAnswers()
        search = self._search
        await search.reach_all()
        await search.wait_for_meaning()
        ranking = await search.hybrid.rank(query, filters, CANDIDATES, search.threshold)
        if ranking.failed:
            raise backend_failure(ranking.message)
        confidence = search.hybrid.confidence(ranking)
        likely = [
            CachedAnswer(entry, chance)
            for serial, chance in list(search.hybrid.chances(ranking).items())[:limit]
            if chance >= confidence and (entry := self._catalogue.at_serial(serial)) is not None
        ]
        return LikelyAnswers(likely, ranking)

    async def name(self, query: str, answers: LikelyAnswers, first: Sequence[Entry]) -> list[CacheCandidate]:
        """Return up to three candidates for a cache miss.

        The entries of `first` come before the best of the ranked notes.

        Duplicates, quarantined notes and notes without text of their own are left out.
        """
        ranking = answers.ranking
        ranked = (
            entry
            for serial, _ in islice(ranking.scores, _LOOKED_AT)
            if (entry := self._catalogue.at_serial(serial)) is not None
            and not (serial in ranking.covered and ranking.covered[serial].bare)
        )
        known = {entry.serial: entry for entry in (*first, *ranked) if entry.note.status != "quarantined"}
        chosen = list(known.values())[:CANDIDATES]
        if not chosen:
            return []
        terms = ranking.terms if ranking.terms.terms else self._search.hybrid.terms(query[:LONGEST_QUERY])
        rows = RankedRows([(entry.serial, 0.0) for entry in chosen], ranking.chunks, terms)
        shown = await self._search.present(SearchRequest(query=query), rows, CANDIDATES)
        return [CacheCandidate(hit.entry, truncate(one_line(hit.snippet), LINE)[0]) for hit in shown]
