"""Cache lookups: notes that probably answer a question, or the best candidates if no note does.

See docs/spec/search.md §6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from attrs import field, frozen

from lithos.kernel.parts import Clock
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.paths import normalise_url
from lithos.notes.service.texts import NoteTexts
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.answers import AnswerFinder, CacheCandidate, LikelyAnswers
from lithos.search.service.graph_search import passes
from lithos.search.service.search import Search

#: Returns the ids of notes that were cited for similar questions. The nearest question is first.
CitedBefore: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]


@frozen(kw_only=True)
class CacheRequest:
    """A cache lookup: the question, and the limits on the age and confidence of a hit."""

    query: str
    source_url: str | None = None
    max_age_hours: float | None = None
    min_confidence: float = 0.5
    limit: int = 3
    filters: Filters = field(factory=Filters)


@frozen
class CacheAnswer:
    """The cached note if there is a hit. A miss may have the id of a stale note to update.

    `because` is the reason for the hit: `match` (with its probability), `cited_before` or `source_url`. A
    miss has up to three `candidates`.
    """

    entry: Entry | None = None
    content: str = ""
    stale_id: str | None = None
    probability: float | None = None
    because: str | None = None
    candidates: Sequence[CacheCandidate] = ()


@frozen
class _Candidate:
    entry: Entry
    because: str
    probability: float | None = None


class CacheLookup:
    """Finds the note that answers a question, or lists the nearest notes."""

    def __init__(
        self, search: Search, catalogue: Catalogue, texts: NoteTexts, clock: Clock, cited_before: CitedBefore
    ) -> None:
        """Create the lookup.

        `cited_before` returns the ids of notes that were cited for a similar question.
        """
        self._answers = AnswerFinder(search, catalogue)
        self._catalogue = catalogue
        self._texts = texts
        self._clock = clock
        self._cited_before = cited_before

    async def look_up(self, request: CacheRequest) -> CacheAnswer:
        """Look up a question in the cache.

        Return the fresh candidate with the highest confidence, or else the id of a stale note.
        """
        stale: Entry | None = None
        best: _Candidate | None = None
        candidates, answers = await self._cache_candidates(request)
        for candidate in candidates:
            entry = candidate.entry
            if entry.note.confidence < request.min_confidence:
                continue
            if self._is_outdated(entry, request.max_age_hours):
                stale = stale or entry
            elif best is None or entry.note.confidence > best.entry.note.confidence:
                best = candidate
        if best is not None:
            loaded = await self._texts.load(best.entry)
            if loaded is not None:
                return CacheAnswer(
                    best.entry,
                    loaded.document.content,
                    probability=best.probability,
                    because=best.because,
                )
        named = await self._answers.name(request.query, answers, [each.entry for each in candidates])
        return CacheAnswer(stale_id=stale.note.id if stale else None, candidates=named)

    async def _cache_candidates(self, request: CacheRequest) -> tuple[list[_Candidate], LikelyAnswers]:
        """Return the possible hits and the search results."""
        if request.source_url:
            owner = self._catalogue.urls.owner(normalise_url(request.source_url))
            entry = self._catalogue.get(owner) if owner else None
            if entry is not None and passes(entry, request.filters, self._catalogue):
                return [_Candidate(entry, "source_url")], LikelyAnswers()
        answers = await self._answers.find(request.query, request.limit, request.filters)
        found = {
            answer.entry.note.id: _Candidate(answer.entry, "match", answer.probability)
            for answer in answers.likely
        }
        cited = [self._catalogue.get(note_id) for note_id in await self._cited_before(request.query)]
        for entry in [entry for entry in cited if entry is not None][: request.limit]:
            if passes(entry, request.filters, self._catalogue) and entry.note.status != "quarantined":
                found.setdefault(entry.note.id, _Candidate(entry, "cited_before"))
        return list(found.values()), answers

    def _is_outdated(self, entry: Entry, max_age_hours: float | None) -> bool:
        now = self._clock()
        if entry.note.is_stale(now):
            return True
        age = (now - entry.note.updated_at).total_seconds()
        return max_age_hours is not None and age > max_age_hours * 3600
