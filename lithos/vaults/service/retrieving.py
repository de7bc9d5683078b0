"""One retrieval from several vaults (docs/spec/vaults.md §2).

Each vault ranks its own notes, weighs their citations and adds notes that its scouts found. Rows are merged
by score. Each vault stores a receipt of its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from lithos.kernel.actors.threads import slices
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, LithosError, SearchBackendFailed
from lithos.memory.retrieve.retrieve import (
    Retrieve,
    RetrieveAnswer,
    RetrievedNote,
    RetrieveRequest,
    SelectedNotes,
)
from lithos.memory.retrieve.scouts import DEADLINE, PASSED
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.indexing.indexer import Visibility
from lithos.search.service.hybrid import LEG_NOTES, LEG_SHARE, NOTHING_RANKED, HybridRanking
from lithos.search.service.search import Search
from lithos.search.settings import SearchConfig
from lithos.vaults.model_joining import interleave
from lithos.vaults.service.joining import on_one_scale

#: Factor by which the search is widened if too few notes pass the relevance gate.
_WIDER: Final = 4
_UNRANKED: Final = evolve(NOTHING_RANKED, failed=("fulltext", "semantic"))


@frozen
class JointRetrieved:
    """Results of several vaults as pairs (vault name, result), best first.

    `answers` contains the results, receipt, conflicts and failed scouts of each vault. `failed` maps vaults
    that did not respond to the reason.
    """

    rows: tuple[tuple[str, RetrievedNote], ...]
    answers: Mapping[str, RetrieveAnswer]
    failed: Mapping[str, str]


@define(eq=False)
class _Meeting:
    """The selections of all vaults. When all are complete, rows are chosen for the answer."""

    #: All vaults, in the order that decides between rows with equal scores.
    expected: Sequence[str]
    limit: int
    drawn: dict[str, SelectedNotes] = field(factory=dict)  # bounded: ends with its call
    chosen: Sequence[tuple[str, int]] = ()
    are_here: trio.Event = field(factory=trio.Event)
    _arrived: set[str] = field(factory=set)

    def arrive(self, name: str) -> None:
        """Record that a vault has selected its notes or has failed.

        The last vault to arrive triggers the choice of rows. Repeated calls for a vault are ignored.
        """
        self._arrived.add(name)
        if len(self._arrived) == len(self.expected) and not self.are_here.is_set():
            scores = {
                each: [note.score for note, _ in self.drawn[each].notes]
                for each in self.expected
                if each in self.drawn
            }
            self.chosen = interleave(scores, self.limit)
            self.are_here.set()

    def own(self, name: str) -> SelectedNotes:
        """Return the rows of one vault's selection that were chosen for the answer."""
        drawn = self.drawn[name]
        return evolve(drawn, notes=[drawn.notes[row] for vault, row in self.chosen if vault == name])


@frozen(eq=False)
class JointRetrieve:
    """Joint retrieval from one or more vaults. The search settings of the first vault apply."""

    vaults: Mapping[str, Parts]

    async def retrieve(self, request: RetrieveRequest) -> JointRetrieved:
        """Return the top-ranked notes of all vaults.

        If every vault fails, the errors of `Retrieve.retrieve` are raised.
        """
        settings = next(iter(self.vaults.values())).get(SearchConfig)
        most = settings.max_results if request.most is None else request.most
        limit = max(1, min(request.limit, most))
        rankings = await self.rank(evolve(request, limit=limit))
        # The choice of rows needs the selections of all vaults, so slow and failed vaults must arrive too.
        meeting = _Meeting(tuple(self.vaults), limit)
        answers: dict[str, RetrieveAnswer] = {}
        refusals: dict[str, LithosError] = {}

        async def take_part(name: str, services: Parts) -> None:
            try:
                answers[name] = await self._answer(name, services, request, rankings[name], meeting)
            except LithosError as refusal:
                refusals[name] = refusal
            finally:
                meeting.arrive(name)

        async with trio.open_nursery() as nursery:
            for name, services in self.vaults.items():
                nursery.start_soon(take_part, name, services)
        ordered = {name: refusals[name] for name in self.vaults if name in refusals}
        if not answers:
            # Prefer errors in the request to errors of a single vault.
            raise min(ordered.values(), key=lambda refusal: not isinstance(refusal, InvalidInput))
        failed = {name: refusal.message for name, refusal in ordered.items()}
        in_order = {name: answers[name] for name in self.vaults if name in answers}
        return JointRetrieved(_rows(meeting, in_order), in_order, failed)

    async def _answer(
        self,
        name: str,
        services: Parts,
        request: RetrieveRequest,
        ranking: HybridRanking,
        meeting: _Meeting,
    ) -> RetrieveAnswer:
        """Return one vault's result after rows have been chosen across all vaults."""
        retrieve = services.get(Retrieve)
        async with retrieve.accept(request) as drawing:
            with services.get(Metrics).timed("lcma_retrieve_duration_seconds"):
                meeting.drawn[name] = await retrieve.select(drawing, ranking)
                meeting.arrive(name)
                await meeting.are_here.wait()
                answer = await retrieve.show(drawing, meeting.own(name))
        return await retrieve.complete(drawing, answer)

    async def rank(self, request: RetrieveRequest) -> dict[str, HybridRanking]:
        """Return each vault's ranking with comparable scores. Failures are recorded in the rankings."""
        if not request.query.strip():
            return dict.fromkeys(self.vaults, NOTHING_RANKED)
        rankings = dict.fromkeys(self.vaults, _UNRANKED)

        async def rank(name: str, services: Parts) -> None:
            with trio.move_on_after(DEADLINE):
                await services.get(Visibility).reach()
                try:
                    rankings[name] = await _widen(services, request)
                except SearchBackendFailed as failure:
                    rankings[name] = evolve(_UNRANKED, message=failure.message)

        async with trio.open_nursery() as nursery:
            for name, services in self.vaults.items():
                nursery.start_soon(rank, name, services)
        return on_one_scale(rankings, self.vaults)


async def _widen(services: Parts, request: RetrieveRequest) -> HybridRanking:
    """Widen the search until enough notes of a vault pass the relevance gate or all notes have been found."""
    catalogue = services.get(Catalogue)
    wanted, gate, passing = max(LEG_NOTES, LEG_SHARE * request.limit), request.gate(catalogue), request.limit
    if gate.is_narrow:
        passing = min(passing, len(await gate.admit(catalogue)))
    while True:
        ranking = await services.get(Search).rank_hybrid(request.query, gate.filters, wanted)
        scores = list(ranking.scores)
        found = 0
        async for some in slices(scores, PASSED):
            entries = catalogue.at_serials([serial for serial, _ in some])
            found += sum(map(gate.passes, entries))
        if found >= passing or ranking.is_all:
            return evolve(ranking, scores=scores)
        wanted *= _WIDER


def _rows(meeting: _Meeting, answers: Mapping[str, RetrieveAnswer]) -> tuple[tuple[str, RetrievedNote], ...]:
    """Return the results in the order of the chosen rows. Deleted notes are skipped."""
    shown = {
        (name, result.hit.entry.note.id): result
        for name, answer in answers.items()
        for result in answer.results
    }
    chosen = [(name, meeting.drawn[name].notes[row][0].id) for name, row in meeting.chosen]
    return tuple((name, shown[name, note_id]) for name, note_id in chosen if (name, note_id) in shown)
