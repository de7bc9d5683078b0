"""The pipeline of `lcma.ranking: weights`: all scouts in two phases, merged, reranked and diversified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import trio
from attrs import frozen

from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.learning.ranking import DIVERSIFIED, Ranked, best_of, diversify, explain, name_words
from lithos.services.retrieve.candidates import Chosen, Ranking, Selection
from lithos.services.retrieve.scout_team import Team
from lithos.services.retrieve.scouts import Ask, Dispatcher, Report


@frozen
class WeighingPipeline:
    """Ranks by the weighted scores of the scouts, the note type, salience and usage."""

    _catalogue: Catalogue
    _dispatcher: Dispatcher
    _team: Team
    _ranking: Ranking

    async def select(self, ask: Ask, context: int, report: Report) -> Selection:
        """The notes of the answer; `context`: how many seeds the second phase starts from."""
        await self._dispatcher.send(self._team.first, ask, report)
        first = await self._ranking.merge(report.found)
        seeds = self._entries(best_of(first, context))
        if seeds:
            await self._dispatcher.send(self._team.second, attrs.evolve(ask, seeds=seeds), report)
        pool = await self._ranking.merge(report.found)
        standing = await self._ranking.rank(pool, max(ask.limit, DIVERSIFIED), ask.now)
        chosen = diversify(standing.ranked, self._words)[: ask.limit]
        chosen = sorted(chosen, key=lambda note: -note.score)  # diversity decides which, the score where
        await trio.lowlevel.checkpoint()  # what comes next takes as long again
        reasons = explain(report.found, [note.id for note in chosen])
        return Selection(
            notes=[_choose(note, reasons[note.id]) for note in chosen],
            considered=len(pool),
            seeds=seeds,
            chunks=_chunks(self._entries(note.id for note in chosen), report),
            complete=standing.complete,
        )

    def _entries(self, note_ids: Iterable[str]) -> tuple[Entry, ...]:
        return tuple(entry for note_id in note_ids if (entry := self._catalogue.get(note_id)) is not None)

    def _words(self, note_id: str) -> frozenset[str]:
        entry = self._catalogue.get(note_id)
        return frozenset() if entry is None else name_words(entry.note.title, entry.path)


def _choose(note: Ranked, reasons: tuple[str, ...]) -> Chosen:
    return Chosen(note.id, note.score, reasons, frozenset(note.scaled), note.traits)


def _chunks(entries: Sequence[Entry], report: Report) -> dict[int, int]:
    """By serial the nearest chunk, to be shown where no passage has enough of the query's words."""
    serials = {entry.note.id: entry.serial for entry in entries}
    return {
        serials[candidate.id]: candidate.chunk
        for candidate in report.found.get("vector", ())
        if candidate.id in serials and candidate.chunk is not None
    }
