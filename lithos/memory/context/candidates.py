"""Candidates for a briefing. They come from `lithos_retrieve` with a receipt, or from hybrid search alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from heapq import nlargest
from itertools import islice
from typing import Final

from attrs import define, evolve, field, frozen

from lithos.kernel.actors.threads import slices
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import SearchBackendFailed
from lithos.memory.retrieve.candidates import Chosen
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveRequest
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.search.indexing.indexer import Visibility
from lithos.search.ranking.match_strength import CANDIDATES, WEAK, MatchVerdict
from lithos.search.service.hybrid import LEG_NOTES, LEG_SHARE, HybridRanking
from lithos.search.service.search import Search
from lithos.text.snippet import Terms

log = get_logger("lithos.context")

#: Reason that is shown for a note of another project.
_FOREIGN: Final = "matches strongly, but belongs to another project"
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
        self,
        request: RetrieveRequest,
        *,
        is_followup: bool = False,
        ranking: HybridRanking | None = None,
        may_widen: bool = False,
    ) -> AsyncIterator[RankedCandidates]:
        """Yield the candidates for a request. Without a query, these are the newest notes.

        With `may_widen`, strong matches of other projects are added if no candidate matches strongly. If the
        block raises an exception, a receipt records the failure.

        Raises `InvalidInput`. If LCMA is off and no index answers, raises `SearchBackendFailed`.
        """
        if not request.query.strip():
            yield await self._find_newest(request)
            return
        if not self._retrieve.is_enabled:
            yield await self._search_for(request, may_widen=may_widen)
            return
        async with self._retrieve.accept(request) as drawing:
            drawn = await self._retrieve.select(drawing, ranking)
            may_widen = may_widen and self._has_foreign(request)
            if may_widen and not has_strong(drawn.selection.matches, [entry for _, entry in drawn.notes]):
                others = await self._find_foreign(request)
                drawn = evolve(drawn, notes=[*drawn.notes, *(_chosen(drawn.notes, each) for each in others)])
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
        """Return the notes that changed last, those of the project before common notes.

        Without a cursor, common notes count only if the project has no notes.
        """
        admitted = await request.gate(self._catalogue).admit(self._catalogue)
        own = self._of_project(admitted, request)
        if request.among is None and own:
            admitted = [entry for entry in admitted if entry.serial in own]
        newest = nlargest(
            _NEWEST,
            admitted,
            key=lambda entry: (entry.serial in own, entry.note.updated_at, entry.note.id),
        )
        return RankedCandidates(
            [
                ContextCandidate(entry, 1 - place * _PER_PLACE, ("is among the newest notes",))
                for place, entry in enumerate(newest)
            ],
            Terms(),
            keep=_keep_nothing,
        )

    def _of_project(self, entries: Sequence[Entry], request: RetrieveRequest) -> frozenset[int]:
        """Return the serials of the notes that are of the requested project and not common."""
        wanted = request.filters.project
        if wanted is None:
            return frozenset()
        own, passes = evolve(wanted, has_common=False), self._catalogue.projects.passes
        return frozenset(entry.serial for entry in entries if passes(entry, own))

    def _has_foreign(self, request: RetrieveRequest) -> bool:
        """Return whether one of the notes that the request allows may be of another project."""
        wanted, passes = request.filters.project, self._catalogue.projects.passes
        entries = map(self._catalogue.get, request.among or ())
        return request.among is None or any(
            entry is not None and not passes(entry, wanted) for entry in entries
        )

    async def _find_foreign(self, request: RetrieveRequest) -> list[ContextCandidate]:
        """Return the notes of other projects that match strongly. There are at most three."""
        wide = evolve(request, filters=evolve(request.filters, project=None))
        own, gate = request.gate(self._catalogue), wide.gate(self._catalogue)
        try:
            ranking = await self._search.rank_hybrid(wide.query, wide.filters, LEG_NOTES)
        except SearchBackendFailed as failure:
            log.warning("other projects not searched", reason=failure.message)
            return []
        verdicts = self._search.judged(ranking) or {}
        found = [
            (entry, score)
            for serial, score in islice(ranking.scores, CANDIDATES)
            if (entry := self._catalogue.at_serial(serial)) is not None and gate.passes(entry)
        ]
        return [
            ContextCandidate(entry, score, (_FOREIGN,))
            for entry, score in found
            if not own.passes(entry) and has_strong(verdicts, [entry])
        ]

    async def _search_for(self, request: RetrieveRequest, *, may_widen: bool) -> RankedCandidates:
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
        entries = [each.entry for each in notes]
        may_widen = may_widen and self._has_foreign(request)
        if may_widen and not has_strong(self._search.judged(ranking), entries):
            notes = [*await self._find_foreign(request), *notes]
        return RankedCandidates(notes, ranking.terms, None, bool(ranking.failed), keep=_keep_nothing)


def has_strong(verdicts: Mapping[int, MatchVerdict] | None, entries: Iterable[Entry]) -> bool:
    """Return whether one of the notes matches strongly. Unknown strengths count as strong."""
    if verdicts is None:
        return True
    return any(verdicts.get(entry.serial, WEAK).match == "strong" for entry in entries)


def _chosen(notes: Sequence[tuple[Chosen, Entry]], other: ContextCandidate) -> tuple[Chosen, Entry]:
    """Return a note of another project as a retrieved note that ranks before weak matches."""
    best = max((note.score for note, _ in notes), default=0.0)
    return Chosen(other.entry.note.id, max(best, other.score), other.reasons, frozenset()), other.entry


async def _keep_nothing(shown: frozenset[str], tokens: int) -> bool:
    """Store no receipt, because nothing is learned without a query or without LCMA."""
    return True
