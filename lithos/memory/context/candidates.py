"""Candidates for a briefing. They come from `lithos_retrieve` with a receipt, or from hybrid search alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from heapq import nlargest
from typing import Final

from attrs import define, field, frozen

from lithos.kernel.actors.threads import slices
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveRequest
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.search.indexing.indexer import Visibility
from lithos.search.service.hybrid import LEG_NOTES, LEG_SHARE, HybridRanking
from lithos.search.service.search import Search
from lithos.text.snippet import Terms

#: Factor by which a search is widened if too few notes pass the access filter.
_WIDER: Final = 4
#: Minimum score, relative to the best score, of a note that the findings of the task name.
_OF_TASK: Final = 0.5
_TASK_SCOUT: Final = "task_context"
#: Maximum number of newest notes in a briefing without a query, and the difference of their scores by place.
_NEWEST: Final = 12
_PER_PLACE: Final = 0.05


@frozen
class ContextCandidate:
    """A note that may be shown. `reasons` say how it was found."""

    entry: Entry
    score: float
    reasons: tuple[str, ...]


@define
class RankedCandidates:
    """The candidates, best first, and the weighted words of the query.

    `keep` stores the receipt for the shown notes with their token count. It returns whether that succeeded.
    If LCMA is off, it stores nothing.
    """

    notes: Sequence[ContextCandidate]
    terms: Terms
    receipt_id: str | None = None
    is_degraded: bool = False
    keep: Callable[[frozenset[str], int], Awaitable[bool]] = field(default=None, kw_only=True)


@define(eq=False)
class Candidates:
    """The search for the candidates of a briefing."""

    _retrieve: Retrieve
    _search: Search
    _catalogue: Catalogue
    _visibility: Visibility

    @asynccontextmanager
    async def find(
        self, request: RetrieveRequest, *, is_followup: bool = False, ranking: HybridRanking | None = None
    ) -> AsyncIterator[RankedCandidates]:
        """Yield the candidates for a request. Without a query, these are the newest notes.

        If the block raises an exception, a receipt records the failure.

        Raises `InvalidInput`. If LCMA is off and no index answers, raises `SearchBackendFailed`.
        """
        if not request.query.strip():
            yield await self._find_newest(request)
            return
        if not self._retrieve.is_enabled:
            yield await self._search_for(request)
            return
        async with self._retrieve.accept(request) as drawing:
            drawn = await self._retrieve.select(drawing, ranking)
            best = max((note.score for note, _ in drawn.notes), default=0.0)
            notes = [
                ContextCandidate(
                    entry,
                    max(note.score, _OF_TASK * best) if _TASK_SCOUT in note.scouts else note.score,
                    note.reasons,
                )
                for note, entry in drawn.notes
            ]

            async def keep(shown: frozenset[str], tokens: int) -> bool:
                return await self._retrieve.keep(drawing, drawn, shown, tokens, is_followup=is_followup)

            terms = drawn.selection.terms
            yield RankedCandidates(
                sorted(notes, key=lambda each: (-each.score, each.entry.note.id)),
                terms if terms.terms else Terms.of(drawn.ask.words, {}),
                drawing.receipt.id,
                bool(drawing.report.failed) or not drawn.selection.complete,
                keep=keep,
            )

    async def _find_newest(self, request: RetrieveRequest) -> RankedCandidates:
        """Return the notes that changed last."""
        admitted = await request.gate.admit(self._catalogue)
        newest = nlargest(_NEWEST, admitted, key=lambda entry: (entry.note.updated_at, entry.note.id))
        return RankedCandidates(
            [
                ContextCandidate(entry, 1 - place * _PER_PLACE, ("is among the newest notes",))
                for place, entry in enumerate(newest)
            ],
            Terms(),
            keep=_keep_nothing,
        )

    async def _search_for(self, request: RetrieveRequest) -> RankedCandidates:
        """Return the best results of a hybrid search that pass the access filter."""
        await self._visibility.reach()
        gate = request.gate(self._catalogue)
        wanted = max(LEG_NOTES, LEG_SHARE * request.limit)
        while True:
            ranking = await self._search.rank_hybrid(request.query, request.filters, wanted)
            found: list[ContextCandidate] = []
            async for some in slices(list(ranking.scores)):
                for serial, score in some:
                    entry = self._catalogue.at_serial(serial)
                    if entry is not None and gate.passes(entry):
                        found.append(ContextCandidate(entry, score, ("matches the query",)))
            if len(found) >= request.limit or ranking.is_all:
                break
            wanted *= _WIDER
        notes = found[: request.limit]
        return RankedCandidates(notes, ranking.terms, None, bool(ranking.failed), keep=_keep_nothing)


async def _keep_nothing(shown: frozenset[str], tokens: int) -> bool:
    """Store no receipt, because nothing is learned without a query or without LCMA."""
    return True
