"""The retrieval pipeline. It combines hybrid search with the questions for which notes were cited.

Other scouts add candidates and reasons, but do not affect scores. Notes that the search did not find rank
below its results, unless evidence raises them. With an empty memory, the ranking therefore equals hybrid
search. The search takes the roles of the scouts `vector` and `lexical`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking, slices
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed, LithosError
from lithos.memory.model.questions import CANDIDATE, SUSPECT_SHARE, RememberedQuestion, final_score
from lithos.memory.retrieve.candidates import Chosen, Selection
from lithos.memory.retrieve.questions import QuestionMemory, tell_question
from lithos.memory.retrieve.scout_team import MATCHING, NEAR, Team
from lithos.memory.retrieve.scouts import DEADLINE, Dispatcher, ScoutReport, ScoutRequest
from lithos.memory.rows.question_matrix import Evidence
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.search.ranking.ranking import ScoutHit, explain, merge
from lithos.search.service.hybrid import LEG_NOTES, LEG_SHARE, NOTHING_RANKED, HybridRanking
from lithos.search.service.search import Search

log = get_logger("lithos.retrieve")


#: Scout names for the two searches that hybrid search combines.
_LEGS: Final = {"semantic": "vector", "fulltext": "lexical"}
#: Reason that is shown for the rank of a suspect note.
_SUSPECT: Final = f"suspect, so its score counts {SUSPECT_SHARE}: see warnings"
#: Maximum number of candidates that are merged on the event loop. Merging them takes a millisecond or two.
INLINE: Final = 3_000
#: Seconds of lineage checks after which other tasks get a turn.
_TURN: Final = 0.002
#: Factor by which the search is widened if too few notes pass the access filter.
_WIDER: Final = 4


@define
class _Looked:
    """The results of the first phase: the search results that pass the filter, in order, and all evidence."""

    hybrid: HybridRanking = NOTHING_RANKED
    scores: dict[str, float] = field(factory=dict)
    #: First results of the search. They contain up to `limit` results that are not suspect. `suspects` are
    #: the suspect results among them.
    best: Sequence[str] = ()
    suspects: frozenset[str] = frozenset()
    evidence: Sequence[Evidence] = ()
    complete: bool = True


@frozen
class _Order:
    """The best search results and the notes with evidence, best first.

    `values` is the evidence that counts.
    """

    ids: Sequence[str]
    values: Mapping[str, Evidence]
    scores: Mapping[str, float]
    suspects: frozenset[str]


@frozen
class EvidencePipeline:
    """The ranking by hybrid score and evidence."""

    _catalogue: Catalogue
    _search: Search
    _memory: QuestionMemory
    _dispatcher: Dispatcher
    _team: Team
    _working: Blocking
    _lineage: Lineage

    async def select(self, ask: ScoutRequest, context: int, report: ScoutReport) -> Selection:
        """Return the notes of the answer. `context` is the number of seeds for the second phase."""
        looked = await self._look(ask, report)
        order = await self._order(looked, ask)
        others = await self._others(looked, order, report)
        seeds = tuple(self._entries([*order.ids, *others][:context]))
        if seeds and await self._look_around(attrs.evolve(ask, seeds=seeds), order, report):
            others = await self._others(looked, order, report)
        notes = [*order.ids, *others]
        chosen = await self._explain(ask, notes[: ask.limit], looked.hybrid, order, report)
        lifted = sum(note_id not in looked.scores for note_id in order.ids)
        return Selection(
            notes=chosen,
            considered=len(looked.scores) + lifted + len(others),
            seeds=seeds,
            chunks=self._chunks(chosen, looked.hybrid),
            complete=looked.complete,
            terms=looked.hybrid.terms,
            matches=self._search.judged(looked.hybrid),
        )

    # -- looking -------------------------------------------------------------------------------

    async def _look(self, ask: ScoutRequest, report: ScoutReport) -> _Looked:
        """Run the search, the question memory and the scouts of the first phase concurrently."""
        looked = _Looked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look_up, ask, report, looked)
            nursery.start_soon(self._remember, ask, looked)
            await self._dispatcher.send(self._team.first, ask, report)
        return looked

    async def _look_up(self, ask: ScoutRequest, report: ScoutReport, looked: _Looked) -> None:
        async def look() -> HybridRanking:
            return await self._widen(ask, looked)

        hybrid = await self._dispatcher.attempt("vector", look, report, "lexical")
        if hybrid is None:
            looked.scores, looked.best, looked.suspects = {}, (), frozenset()
            looked.hybrid = attrs.evolve(NOTHING_RANKED, failed=tuple(_LEGS))
            return
        looked.hybrid = hybrid
        for leg in hybrid.failed:
            self._dispatcher.fail(_LEGS[leg], report)

    async def _widen(self, ask: ScoutRequest, looked: _Looked) -> HybridRanking:
        """Widen the search until enough trusted notes pass the filter, or there are no more notes.

        The results are stored in `looked`.
        """
        wanted = max(LEG_NOTES, LEG_SHARE * ask.limit)
        while True:
            hybrid = ask.hybrid or await self._search.rank_hybrid(ask.query, ask.gate.filters, wanted)
            looked.scores = await self._admit(list(hybrid.scores), ask)
            looked.best, looked.suspects = await self._best(list(looked.scores), ask.limit)
            are_enough = len(looked.best) - len(looked.suspects) >= ask.limit
            has_all = ask.admitted is not None and len(looked.scores) >= len(ask.admitted)
            if are_enough or has_all or hybrid.is_all or ask.hybrid is not None:
                return hybrid
            wanted *= _WIDER

    async def _best(self, note_ids: Sequence[str], limit: int) -> tuple[Sequence[str], frozenset[str]]:
        """Return the first notes of the ranking, and the suspect notes among them.

        Up to `limit` notes are not suspect.

        Later notes cannot appear in an answer, because their scores are lower even after all adjustments.
        """
        await self._lineage.settle()
        suspects: set[str] = set()
        began = time.perf_counter()
        for place, note_id in enumerate(note_ids):
            if place - len(suspects) == limit:
                return note_ids[:place], frozenset(suspects)
            if self._lineage.is_suspect(note_id):
                suspects.add(note_id)
            if time.perf_counter() - began > _TURN:
                await trio.lowlevel.checkpoint()
                began = time.perf_counter()
        return note_ids, frozenset(suspects)

    async def _admit(self, scores: Sequence[tuple[int, float]], ask: ScoutRequest) -> dict[str, float]:
        at, passes, allowed = self._catalogue.at_serial, ask.gate.passes, ask.admitted_serials
        admitted: dict[str, float] = {}
        async for some in slices(scores, LEG_NOTES * _WIDER):
            for serial, score in some:
                if allowed is None or serial in allowed:
                    entry = at(serial)
                    if entry is not None and passes(entry):
                        admitted[entry.note.id] = score
        return admitted

    async def _remember(self, ask: ScoutRequest, looked: _Looked) -> None:
        if not ask.query.strip():
            return
        try:
            with trio.fail_after(DEADLINE):
                looked.evidence = await self._memory.weigh(ask.query)
        except (LithosError, DatabaseFailed, IndexFailed, OSError, trio.TooSlowError) as failure:
            log.warning("remembered questions not searched", reason=repr(failure))
            looked.complete = False

    async def _look_around(self, ask: ScoutRequest, order: _Order, report: ScoutReport) -> bool:
        """Run the scouts of the second phase if their results could appear in the answer.

        Return whether they were run.

        The scouts of the second phase never return seeds. If seeds fill the whole answer, the scouts' results
        would change nothing.
        """
        second = self._team.second
        shown = order.ids[: ask.limit]
        if len(shown) == ask.limit and ask.seed_ids.issuperset(shown):
            report.fired.update(scout.name for scout in second)
            return False
        await self._dispatcher.send(second, ask, report)
        return True

    # -- ranking -------------------------------------------------------------------------------

    async def _order(self, looked: _Looked, ask: ScoutRequest) -> _Order:
        scores = looked.scores
        values = {
            each.note_id: each
            for each in looked.evidence
            if (each.note_id in scores or each.value > CANDIDATE) and self._passes(each.note_id, ask)
        }
        places = {note_id: place for place, note_id in enumerate(scores)}
        known = {note_id: each.value for note_id, each in values.items()}
        best = frozenset(looked.best)
        cited = [note_id for note_id in values if note_id not in best]
        _, suspects = await self._best(cited, len(cited) + 1)
        suspects |= looked.suspects
        final = {
            note_id: final_score(scores.get(note_id, 0.0), known.get(note_id, 0.0))
            * (SUSPECT_SHARE if note_id in suspects else 1.0)
            for note_id in [*looked.best, *cited]
        }
        ids = sorted(final, key=lambda note_id: (-final[note_id], places.get(note_id, math.inf), note_id))
        return _Order(ids, values, final, suspects)

    def _passes(self, note_id: str, ask: ScoutRequest) -> bool:
        entry = self._catalogue.get(note_id)
        return entry is not None and ask.gate.passes(entry)

    def _entries(self, note_ids: Iterable[str]) -> list[Entry]:
        return [entry for note_id in note_ids if (entry := self._catalogue.get(note_id)) is not None]

    async def _others(self, looked: _Looked, order: _Order, report: ScoutReport) -> list[str]:
        """Return the notes that only scouts found, sorted by scaled score (best first) and then by id."""
        found = report.found
        is_little = sum(map(len, found.values())) <= INLINE
        pool = merge(found) if is_little else await self._working.run(lambda: merge(found))
        others = (one for one in pool if one not in looked.scores and one not in order.scores)
        return sorted(others, key=lambda note_id: (-pool[note_id], note_id))

    # -- explaining ----------------------------------------------------------------------------

    async def _explain(
        self,
        ask: ScoutRequest,
        note_ids: Sequence[str],
        hybrid: HybridRanking,
        order: _Order,
        report: ScoutReport,
    ) -> list[Chosen]:
        """Return the notes with the reasons for them and the scouts that found them."""
        entries = self._entries(note_ids)
        found = {**report.found, **_legs(entries, hybrid)}
        reasons = explain(found, note_ids)
        wanted = frozenset(note_ids)
        scouts: dict[str, set[str]] = {note_id: set() for note_id in note_ids}
        for name, candidates in found.items():
            for candidate in candidates:
                if candidate.id in wanted:
                    scouts[candidate.id].add(name)
        weighty = [each for note_id in note_ids if (each := order.values.get(note_id)) is not None]
        cited = await self._tell_citations(ask, weighty)
        # Notes that only scouts found have no search score to reduce, but the reason is still shown.
        rest = [entry.note.id for entry in entries if entry.note.id not in order.scores]
        _, suspects = await self._best(rest, len(rest) + 1)
        suspects |= order.suspects
        return [
            Chosen(
                entry.note.id,
                order.scores.get(entry.note.id, 0.0),
                (
                    *((_SUSPECT,) if entry.note.id in suspects else ()),
                    *cited.get(entry.note.id, ()),
                    *reasons[entry.note.id],
                ),
                frozenset(scouts[entry.note.id]),
            )
            for entry in entries
        ]

    async def _tell_citations(self, ask: ScoutRequest, values: Sequence[Evidence]) -> dict[str, tuple[str]]:
        """Return a reason for each note with evidence. It names the question that contributes most."""
        told = [each for each in values if each.value > CANDIDATE]
        questions: Mapping[int, RememberedQuestion] = {}
        try:
            with trio.fail_after(DEADLINE):
                questions = await self._memory.questions(each.entry for each in told)
        except (DatabaseFailed, OSError, trio.TooSlowError) as failure:
            log.warning("questions not read", reason=repr(failure))
        spaces = ask.gate.namespaces
        return {
            each.note_id: (
                tell_question(
                    question := questions.get(each.entry),
                    may_read=question is not None and (spaces is None or question.namespace in spaces),
                ),
            )
            for each in told
        }

    def _chunks(self, chosen: Sequence[Chosen], hybrid: HybridRanking) -> dict[int, int]:
        """Return the nearest chunk of each note by serial.

        The nearest chunk is shown if no passage has enough words of the query.
        """
        wanted = {entry.serial for entry in self._entries(note.id for note in chosen)}
        return {hit.serial: hit.chunk for hit in hybrid.chunks if hit.serial in wanted}


def _legs(entries: Sequence[Entry], hybrid: HybridRanking) -> dict[str, list[ScoutHit]]:
    """Return the search results for these notes as hits of the scouts that hybrid search replaces."""
    ids = {entry.serial: entry.note.id for entry in entries}
    return {
        "vector": [
            ScoutHit(ids[hit.serial], hit.similarity, NEAR) for hit in hybrid.chunks if hit.serial in ids
        ],
        "lexical": [
            ScoutHit(note_id, 1.0, MATCHING) for serial, note_id in ids.items() if serial in hybrid.lexical
        ],
    }
