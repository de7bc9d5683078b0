"""The retrieval service.

A pipeline selects notes, the answer explains the selection, and a receipt is stored.

Specified in docs/spec/memory.md §1.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import attrs
import trio
from attrs import define, field, frozen

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import InvalidInput, LcmaDisabled, LithosError
from lithos.memory.model.memory import (
    CONFLICTS_KEPT,
    QUERY_KEPT,
    FinalNode,
    NodeStats,
    Receipt,
    RecordRetrieval,
    SurfacedConflict,
)
from lithos.memory.retrieve.candidates import Chosen, Selection
from lithos.memory.retrieve.evidence import EvidencePipeline
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.scout_team import Team
from lithos.memory.retrieve.scouts import CONTRADICTIONS, Dispatcher, ScoutReport, ScoutRequest, name_scouts
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.texts import Snippets
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.indexer import Visibility
from lithos.search.ranking.match_strength import WEAK
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.search.service.search import Hit
from lithos.search.settings import SearchConfig
from lithos.text.snippet import Terms

log = get_logger("lithos.retrieve")

#: Maximum seconds to wait until the receipt is on disk. After that, the answer is sent without a receipt.
RECEIPT_DEADLINE: Final = 5.0
#: Maximum seconds to wait for the statistics of notes.
STATS_DEADLINE: Final = 5.0


@frozen(kw_only=True)
class RetrieveRequest:
    """A retrieval request. `namespaces` None means all namespaces. `max_context_nodes` None means `limit`.

    `among` restricts the results to these notes. `with_quarantined` includes quarantined notes, for callers
    that only name them. `most` is the maximum number of results, for callers that do not return them as rows.
    None means the configured maximum. `room` is the limit of all rows in characters of JSON. 0 means no
    limit.
    """

    query: str
    limit: int = 10
    namespaces: tuple[str, ...] | None = None
    agent_id: str | None = None
    task_id: str | None = None
    surface_conflicts: bool = False
    max_context_nodes: int | None = None
    filters: Filters = field(factory=Filters)
    among: frozenset[str] | None = None
    with_quarantined: bool = False
    most: int | None = None
    room: int = 0

    def gate(self, catalogue: Catalogue) -> RetrievalFilter:
        """Return the filter for the notes that the caller may see and has asked for."""
        return RetrievalFilter(
            namespaces=None if self.namespaces is None else frozenset(self.namespaces),
            task_id=self.task_id,
            agent_id=self.agent_id,
            filters=self.filters,
            among=self.among,
            projects=catalogue.projects,
            shows_quarantined=self.with_quarantined,
        )


@define
class PendingRetrieval:
    """An accepted request in progress, with the receipt so far and the scouts that have reported."""

    request: RetrieveRequest
    receipt: Receipt
    report: ScoutReport
    is_kept: bool = False


@frozen
class SelectedNotes:
    """The selection of a pipeline: existing notes that pass the filter, best first, with their entries."""

    ask: ScoutRequest
    selection: Selection
    notes: Sequence[tuple[Chosen, Entry]]


@frozen
class RetrievedNote:
    """Result of a retrieval: the note, its reasons, the scouts that found it, and its statistics."""

    hit: Hit
    reasons: tuple[str, ...]
    scouts: tuple[str, ...]
    stats: NodeStats


@frozen(kw_only=True)
class RetrieveAnswer:
    """The results of a retrieval, best first. `conflicts` is set only if requested.

    `degraded` means that a scout failed, or that the statistics or the receipt could not be read or stored.
    """

    results: tuple[RetrievedNote, ...]
    receipt: Receipt
    degraded: bool
    failed_scouts: tuple[str, ...]
    conflicts: tuple[SurfacedConflict, ...] | None


def make_receipt_id() -> str:
    """Return a new receipt id: `rcpt_` and 16 hexadecimal digits."""
    return f"rcpt_{uuid.uuid4().hex[:16]}"


@define(eq=False)
class Retrieve:
    """The retrieval service, which stores receipts."""

    _settings: SearchConfig
    _lcma: LcmaConfig
    _catalogue: Catalogue
    _clock: Clock
    _visibility: Visibility
    _metrics: Metrics
    _team: Team
    _pipeline: EvidencePipeline
    _snippets: Snippets
    _recorder: Learning
    _dispatcher: Dispatcher

    @property
    def is_enabled(self) -> bool:
        """Return whether retrieval is switched on (`lcma.enabled`)."""
        return self._lcma.enabled

    async def retrieve(self, request: RetrieveRequest) -> RetrieveAnswer:
        """Return the notes that rank highest for a query. Raises `LcmaDisabled` and `InvalidInput`.

        Every accepted call stores a receipt, even if it finds nothing, fails or is cancelled.
        """
        async with self.accept(request) as drawing:
            with self._metrics.timed("lcma_retrieve_duration_seconds"):
                answer = await self.show(drawing, await self.select(drawing))
        return await self.complete(drawing, answer)

    async def complete(self, drawing: PendingRetrieval, answer: RetrieveAnswer) -> RetrieveAnswer:
        """Store the receipt for the shown notes.

        Return the answer with the former statistics of the notes.
        """
        known = await self._record(answer.receipt, [result.hit.entry for result in answer.results])
        self._count(answer.receipt, len(answer.results))
        if known is None:
            answer = attrs.evolve(answer, degraded=True)
            known = await self._read_stats([row.hit.entry.note.id for row in answer.results])
        results = tuple(
            attrs.evolve(result, stats=known.get(result.stats.node_id, result.stats))
            for result in answer.results
        )
        return attrs.evolve(answer, results=results)

    @asynccontextmanager
    async def accept(self, request: RetrieveRequest) -> AsyncIterator[PendingRetrieval]:
        """Accept a request. If the block fails or is cancelled, a receipt records this.

        In the block, call `select`, then either `keep` for the shown notes, or `show` and `complete`. Raises
        `LcmaDisabled` and `InvalidInput`.
        """
        request = self._check(request)
        drawing = PendingRetrieval(request, self._draft_receipt(request, self._clock()), ScoutReport())
        try:
            yield drawing
        except BaseException:
            if not drawing.is_kept:
                fired = name_scouts(drawing.report.fired)
                failed = attrs.evolve(drawing.receipt, scouts_fired=fired, terrace_reached=0)
                await self._record(failed, ())
            raise

    async def select(self, drawing: PendingRetrieval, hybrid: HybridRanking | None = None) -> SelectedNotes:
        """Return the notes of an accepted request, best first.

        All returned notes pass the filter at the time of the return.

        `hybrid` is the search ranking of these notes, if its scale is comparable with the rankings of other
        vaults.
        """
        request, report = drawing.request, drawing.report
        await self._visibility.reach()
        ask = await self._ask(request, drawing.receipt.ts, hybrid)
        selection = await self._pipeline.select(ask, request.max_context_nodes or request.limit, report)
        ask = attrs.evolve(ask, seeds=selection.seeds)
        get = self._catalogue.get
        pairs = [(note, get(note.id)) for note in selection.notes]
        present = [(note, entry) for note, entry in pairs if entry is not None and ask.gate.passes(entry)]
        return SelectedNotes(ask, selection, present)

    async def keep(
        self,
        drawing: PendingRetrieval,
        drawn: SelectedNotes,
        shown: Collection[str],
        tokens: int,
        *,
        is_followup: bool,
    ) -> bool:
        """Store the receipt for the notes in a briefing, with the token count of the briefing.

        Return whether the receipt was stored. Call this once per request.
        """
        final = [(note, entry) for note, entry in drawn.notes if note.id in shown]
        receipt = attrs.evolve(
            drawing.receipt,
            scouts_fired=name_scouts(drawing.report.fired),
            candidates_considered=drawn.selection.considered,
            final_nodes=tuple(FinalNode(n.id, n.reasons, name_scouts(n.scouts)) for n, _ in final),
            tokens=tokens,
            is_followup=is_followup,
        )
        drawing.is_kept = True
        known = await self._record(receipt, [entry for _, entry in final])
        self._count(receipt, len(final))
        return known is not None

    def _check(self, request: RetrieveRequest) -> RetrieveRequest:
        """Return the request with a limit in the allowed range."""
        if not self._lcma.enabled:
            raise LcmaDisabled("Learning retrieval is off (lcma.enabled). Use lithos_search instead.")
        context = request.max_context_nodes
        if context is not None and context < 1:
            raise InvalidInput(f"max_context_nodes must be at least 1, not {context}.")
        most = self._settings.max_results if request.most is None else request.most
        return attrs.evolve(request, limit=max(1, min(request.limit, most)))

    def _draft_receipt(self, request: RetrieveRequest, now: datetime) -> Receipt:
        return Receipt(
            id=make_receipt_id(),
            ts=now,
            query=request.query[:QUERY_KEPT],
            limit=request.limit,
            namespace_filter=request.namespaces,
            surface_conflicts=request.surface_conflicts,
            agent_id=request.agent_id,
            task_id=request.task_id,
        )

    async def show(self, drawing: PendingRetrieval, drawn: SelectedNotes) -> RetrieveAnswer:
        """Return the answer for the selected notes. The receipt is not stored yet."""
        request, report = drawing.request, drawing.report
        ask, selection = drawn.ask, drawn.selection
        conflicts = await self._find_conflicts(ask, report) if request.surface_conflicts else None
        results = await self._present(drawn, request.room)
        failed = name_scouts(report.failed)
        return RetrieveAnswer(
            results=results,
            receipt=attrs.evolve(
                drawing.receipt,
                scouts_fired=name_scouts(report.fired),
                candidates_considered=selection.considered,
                final_nodes=tuple(FinalNode(r.hit.entry.note.id, r.reasons, r.scouts) for r in results),
                conflicts_surfaced=(conflicts or ())[:CONFLICTS_KEPT],
            ),
            degraded=bool(failed) or not selection.complete,
            failed_scouts=failed,
            conflicts=conflicts,
        )

    async def _ask(
        self, request: RetrieveRequest, now: datetime, hybrid: HybridRanking | None
    ) -> ScoutRequest:
        gate, limit = request.gate(self._catalogue), request.limit
        admitted = await gate.admit(self._catalogue) if gate.is_narrow else None
        return ScoutRequest(
            query=request.query, limit=limit, gate=gate, now=now, admitted=admitted, hybrid=hybrid
        )

    async def _find_conflicts(self, ask: ScoutRequest, report: ScoutReport) -> tuple[SurfacedConflict, ...]:
        if not ask.seeds:
            return ()
        find = self._team.find_contradictions
        found = await self._dispatcher.attempt(CONTRADICTIONS, lambda: find(ask), report)
        return tuple(found or ())

    async def _present(self, drawn: SelectedNotes, room: int) -> tuple[RetrievedNote, ...]:
        """Read the texts of the selected notes. Notes that were deleted meanwhile are left out."""
        ask, selection, present = drawn.ask, drawn.selection, drawn.notes
        entries, matches = [entry for _, entry in present], selection.matches
        terms = selection.terms if selection.terms.terms else Terms.of(ask.words, {})
        snippets = await self._snippets.cut(entries, terms, selection.chunks, room=room)
        return tuple(
            RetrievedNote(
                hit=Hit(
                    entry,
                    note.score,
                    snippet,
                    judged=None if matches is None else matches.get(entry.serial, WEAK),
                ),
                reasons=note.reasons,
                scouts=name_scouts(note.scouts),
                stats=NodeStats(node_id=entry.note.id),
            )
            for (note, entry), snippet in zip(present, snippets, strict=True)
            if snippet is not None
        )

    async def _record(self, receipt: Receipt, entries: Sequence[Entry]) -> Mapping[str, NodeStats] | None:
        """Store the receipt and the counts of the results durably.

        Return the former statistics. Return None if the write was refused.

        The write runs even if the caller has disconnected, because the receipt documents the retrieval.
        """
        command = RecordRetrieval(receipt, tuple(entry.note.id for entry in entries))
        try:
            with trio.fail_after(RECEIPT_DEADLINE, shield=True):
                return await self._recorder.submit(command)
        except (LithosError, trio.TooSlowError) as failure:
            log.warning("retrieval not recorded", receipt=receipt.id, reason=repr(failure))
            return None

    async def _read_stats(self, note_ids: Sequence[str]) -> Mapping[str, NodeStats]:
        """Return the statistics of these notes. If they cannot be read, return an empty mapping."""
        try:
            with trio.fail_after(STATS_DEADLINE):
                return await self._recorder.stats(note_ids)
        except (DatabaseFailed, OSError, trio.TooSlowError) as failure:
            log.warning("statistics not read", reason=repr(failure))
            return {}

    def _count(self, receipt: Receipt, shown: int) -> None:
        metrics = self._metrics
        metrics.observe("lcma_retrieve_candidates", receipt.candidates_considered)
        metrics.observe("lcma_retrieve_final_nodes", shown)
        metrics.count("lcma_cold_start")
