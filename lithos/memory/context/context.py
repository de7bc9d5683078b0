"""The context service. One briefing replaces many searches and reads (docs/spec/context.md §1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import attrs
import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.projects import WORKING_IN
from lithos.memory.briefing.briefing import Briefing, compose
from lithos.memory.briefing.compact import compose_whole
from lithos.memory.briefing.material import Material
from lithos.memory.briefing.parts import TaskPart
from lithos.memory.context.candidates import Candidates, ContextCandidate, RankedCandidates
from lithos.memory.context.changes import (
    ActivityFilter,
    Changed,
    JournalChanges,
    task_ids,
    tell_activity,
    tell_decisions,
)
from lithos.memory.context.opening import OPENING, OpeningReader
from lithos.memory.context.passage_cache import Splits
from lithos.memory.context.request import ContextAnswer, ContextRequest, LoadedNotes, check_request
from lithos.memory.context.sources import SourceReader
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveRequest
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.model.earlier_turns import EarlierTurn
from lithos.notes.service.ports import PastSessions
from lithos.notes.service.row_kinds import ATTACHMENT, SESSION
from lithos.notes.service.texts import NoteTexts
from lithos.search.embedding.tokenizer import load_pieces
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.indexer import Visibility
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.ranking.replies import wants_all
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.other_files import BESIDE, OtherHit, OtherHits, OtherQuery
from lithos.search.service.search import Search
from lithos.tasks.model.task import Task
from lithos.tasks.service.coordination import Coordination, TaskSheet
from lithos.tasks.service.open_work import OpenWork
from lithos.text.chunk import ChunkSizes
from lithos.text.words.tokens import Count, count_safely, count_with

log = get_logger("lithos.context")

#: Maximum characters of a query that is made from a task.
QUERY_OF_TASK: Final = 4_000
#: Tokens of budget per candidate, and minimum and maximum number of candidates.
TOKENS_A_NOTE: Final = 30
FEWEST_NOTES: Final = 16
MOST_NOTES: Final = 100


@frozen(kw_only=True)
class BriefingMaterial:
    """The material of a briefing before its text is composed. `is_silent` means that nothing is new."""

    material: Material
    #: Function that counts the tokens of a text.
    count: Count
    found: RankedCandidates
    is_silent: bool
    cursor: str | None
    is_degraded: bool
    troubles: Sequence[tuple[str, str]]
    places: Mapping[str, OtherHit]

    async def answer(self, briefing: Briefing, budget: int) -> ContextAnswer:
        """Return the answer for a briefing. The receipt covers only the part of this vault."""
        kept = await self.found.keep(frozenset(item.id for item in briefing.items), briefing.tokens)
        return ContextAnswer(
            briefing=briefing,
            budget=budget,
            cursor=self.cursor,
            receipt_id=self.found.receipt_id,
            degraded=self.is_degraded or not kept,
            troubles=self.troubles,
            places=self.places,
        )


NOTHING_TOLD: Final = Briefing(text="", tokens=0, items=(), dropped=(), warnings=())
NOTHING: Final = Material()


class Context:
    """The context service. It gathers the material and composes briefings."""

    def __init__(
        self,
        journal: CoordinationStore,
        catalogue: Catalogue,
        lineage: Lineage,
        semantic: SemanticBackend,
        reading: JournalThread,
        coordinator: Coordinator,
        clock: Clock,
        sizes: ChunkSizes,
        visibility: Visibility,
        retrieve: Retrieve,
        search: Search,
        others: OtherHits | None,
        past: PastSessions | None,
        texts: NoteTexts,
        coordination: Coordination,
        work: OpenWork,
        loaded: LoadedNotes | None = None,
    ) -> None:
        self._others = others
        self._loaded = loaded
        self._past = past
        self._threshold = search.threshold
        self._candidates = Candidates(retrieve, search, catalogue, visibility)
        self._catalogue = catalogue
        self._coordination = coordination
        self._coordinator = coordinator
        self._changes = JournalChanges(journal, reading)
        self._working = Threads(2)
        self._clock = clock
        self._count: Count | None = None
        self._loading = trio.Lock()
        splits = Splits(sizes.size, sizes.maximum)
        catalogue.when_removed.append(splits.forget)
        self._work = work
        self._opening = OpeningReader(catalogue, lineage, texts, splits, self._working, work)
        self._sources = SourceReader(catalogue, lineage, texts, semantic, splits, self._working, clock)

    async def brief(self, request: ContextRequest) -> ContextAnswer:
        """Return a briefing that fits into the budget. Raises `InvalidInput` and `TaskNotFound`."""
        async with self.gather(request) as gathered:
            briefing = NOTHING_TOLD
            if not gathered.is_silent:
                briefing = await self.compose(gathered.material, request.budget, gathered.count)
            return await gathered.answer(briefing, request.budget)

    async def brief_whole(
        self,
        request: ContextRequest,
        rest: Mapping[str, Any],
        *,
        explains: bool = False,
        has_cursor: bool = False,
    ) -> dict[str, Any]:
        """Return a compact answer that fits into the budget together with the keys of `rest`.

        The raised errors are the same as for `brief`.
        """
        async with self.gather(request) as gathered:
            rest = {
                "receipt_id": gathered.found.receipt_id,
                "cursor": gathered.cursor if has_cursor else None,
                "degraded": gathered.is_degraded or None,
                "troubles": [reason for _, reason in gathered.troubles] or None,
                **rest,
            }
            frame = {key: value for key, value in rest.items() if value is not None}
            material = NOTHING if gathered.is_silent else gathered.material
            briefing, answer = await self._working.run(
                lambda: compose_whole(
                    material, request.budget, gathered.count, frame,
                    wants_all=wants_all(request.query), explains=explains,
                )
            )  # fmt: skip
            kept = (await gathered.answer(briefing, request.budget)).degraded
            return answer | ({"degraded": True} if kept else {})

    async def compose(self, material: Material, budget: int, count: Count) -> Briefing:
        """Compose a briefing from its material. This runs in a worker thread."""
        return await self._working.run(lambda: compose(material, budget, count))

    async def query_of(self, task_id: str) -> str:
        """Return the query for a request that has only this task. Raises `TaskNotFound`."""
        return _query_of(await self._coordination.sheet(task_id))

    @asynccontextmanager
    async def gather(
        self, request: ContextRequest, ranking: HybridRanking | None = None
    ) -> AsyncIterator[BriefingMaterial]:
        """Yield the material of a briefing.

        `ranking` has a scale that is comparable with other vaults. Raises the same errors as `brief`.
        """
        check_request(request)
        troubles = list[tuple[str, str]]()
        cursor = str(self._coordinator.head)  # The cursor must be older than the first read.
        sheet = None if request.task_id is None else await self._coordination.sheet(request.task_id)
        if not request.query.strip() and sheet is not None:
            request = attrs.evolve(request, query=_query_of(sheet))
        count, trouble = await self._counter()
        troubles += [("tokenizer", trouble)] if trouble is not None else []
        changed = None if request.since is None else await self._changes.after(request.since)
        if changed is not None and changed.trouble is not None:
            troubles.append(("cursor", f"{changed.trouble}; everything is shown as new"))
            changed = None
        asked, is_followup = self._asked(request, changed), request.since is not None
        hits, earlier = await self._beside(request), await self._earlier(request)
        find = self._candidates.find(
            asked, is_followup=is_followup, ranking=ranking, may_widen=request.scope.may_widen
        )
        async with find as found:
            found.notes = self._without_loaded(found.notes, request)
            material, is_degraded = await self._gather(request, found, sheet, changed, hits)
            material = attrs.evolve(material, sessions=earlier)
            yield BriefingMaterial(
                material=material,
                count=count,
                found=found,
                is_silent=changed is not None and not material.has_news,
                cursor=cursor,
                is_degraded=bool(troubles) or found.is_degraded or is_degraded,
                troubles=troubles,
                places={hit.id: hit for hit in hits},
            )

    def _without_loaded(
        self, notes: Sequence[ContextCandidate], request: ContextRequest
    ) -> Sequence[ContextCandidate]:
        """Return the candidates without those that the client has loaded on its own."""
        loaded = self._loaded
        if loaded is None:
            return notes
        agent, project = request.agent_id, WORKING_IN.get()
        return [each for each in notes if not loaded.has(each.entry.path, agent, project)]

    async def _beside(self, request: ContextRequest) -> list[OtherHit]:
        """Return the best hit of each matching attachment. Strong hits come first.

        If only news is requested, return an empty list.
        """
        if (
            self._others is None
            or not self._others.has_any(request.filters)
            or request.since is not None
            or not request.query.strip()
            or request.namespaces is not None
            or "notes" not in request.sections
            or ATTACHMENT not in request.kinds
        ):
            return []
        query = OtherQuery(
            query=request.query, filters=request.filters, threshold=self._threshold, limit=BESIDE
        )
        best: dict[str, OtherHit] = {}
        for hit in await self._others.beside(query):
            if hit.judged and hit.judged.match != "weak":
                best.setdefault(hit.id, hit)
        return list(best.values())

    async def _earlier(self, request: ContextRequest) -> Sequence[EarlierTurn]:
        """Return the turns of past sessions that answer the question. If only news is requested, none."""
        filters = request.filters
        if (
            self._past is None
            or not self._past.is_enabled
            or request.since is not None
            or not request.query.strip()
            or request.namespaces is not None
            or "notes" not in request.sections
            # The query at the start of a session is the name of the folder, not a question.
            or not set(OPENING).isdisjoint(request.sections)
            or SESSION not in request.kinds
            or attrs.evolve(filters, project=None) != Filters()
        ):
            return ()
        return await self._past.earlier(request.query, filters.project, request.agent_id)

    async def _counter(self) -> tuple[Count, str | None]:
        """Return the token counter. If it only estimates, also return the reason."""
        async with self._loading:
            if self._count is None:
                try:
                    pieces = await self._working.run(load_pieces)
                except Exception as problem:  # noqa: BLE001 - less is shown rather than nothing
                    log.error("tokens are counted as bytes", reason=repr(problem))
                    return count_safely, (
                        f"the built-in tokenizer cannot be loaded ({problem}); tokens are counted as "
                        "bytes, so that less is shown"
                    )
                self._count = count_with(pieces)
            return self._count, None

    def _asked(self, request: ContextRequest, changed: Changed | None) -> RetrieveRequest:
        among = None if changed is None else self._changed_notes(changed)
        if "notes" not in request.sections and "warnings" not in request.sections:
            among = frozenset()
        return RetrieveRequest(
            query=request.query,
            limit=max(FEWEST_NOTES, min(MOST_NOTES, request.budget // TOKENS_A_NOTE)),
            namespaces=request.namespaces,
            agent_id=request.agent_id,
            task_id=request.task_id,
            filters=request.filters,
            among=among,
            with_quarantined=True,
            most=MOST_NOTES,
        )

    def _changed_notes(self, changed: Changed) -> frozenset[str]:
        get = self._catalogue.get
        quarantined = (
            note_id
            for note_id in changed.notes_by_enrichment()
            if (entry := get(note_id)) is not None and entry.note.status == "quarantined"
        )
        return changed.notes.union(quarantined)

    async def _gather(
        self,
        request: ContextRequest,
        found: RankedCandidates,
        sheet: TaskSheet | None,
        changed: Changed | None,
        hits: Sequence[OtherHit] = (),
    ) -> tuple[Material, bool]:
        """Return the material of the briefing, and whether a part of it was unavailable."""
        wanted = frozenset(request.sections)
        read = await self._sources.read(request, found)
        gate = request.gate(self._catalogue)
        opening = await self._opening.read(wanted, gate, request.scope, self._clock())
        activity, decisions = list[str](), list[str]()
        if "activity" in wanted:
            activity, decisions = await self._tell(request, found, changed)
        sources = self._sources.with_attachments(read.sources, hits, request.scope)
        material = Material(
            task=_task_part(sheet, changed) if sheet is not None and "task" in wanted else None,
            sources=sources if "notes" in wanted else (),
            terms=found.terms,
            warnings=opening.with_warnings(read.warnings) if "warnings" in wanted else (),
            activity=activity,
            decisions=decisions,
            withheld=read.withheld if "notes" in wanted else (),
            pinned=opening.pinned,
            work=opening.work,
            is_opening=opening.is_wanted,
            has_query=bool(request.query.strip()),
        )
        return material, read.is_degraded

    async def _tell(
        self, request: ContextRequest, found: RankedCandidates, changed: Changed | None
    ) -> tuple[list[str], list[str]]:
        """Return the lines about recent activity, and about decisions on the agent's proposals."""
        events = changed.events if changed is not None else await self._changes.recent()
        has_query = bool(request.query.strip())
        tasks: Mapping[str, Task] | None = None
        if not has_query or request.scope.filter is not None:
            read = await self._work.tasks(task_ids(events))
            tasks = {task_id: task for task_id, task in read.items() if request.scope.passes(task)}
        wanted = ActivityFilter(
            terms=found.terms if has_query else None,
            note=self._note_of_event(request, found),
            task_id=request.task_id,
            tasks=tasks,
            has_work="work" in request.sections,
        )
        is_shown = None if request.scope.filter is None else partial(self._may_mention, request)
        return tell_activity(events, wanted), tell_decisions(events, request.agent_id, is_shown)

    def _may_mention(self, request: ContextRequest, path: str) -> bool:
        """Return whether the note at a path is of the requested projects. A missing note is."""
        entry = self._catalogue.at_path(path)
        return entry is None or self._catalogue.projects.passes(entry, request.scope.filter)

    def _note_of_event(
        self, request: ContextRequest, found: RankedCandidates
    ) -> Callable[[str], Entry | None]:
        """Return a function that returns the note of an event if the activity mentions the note.

        With a query, these are the notes that were found. Without a query and a cursor, the excerpts show
        the newest notes, and the activity would repeat them.
        """
        if request.query.strip():
            return {each.entry.note.id: each.entry for each in found.notes}.get
        if request.since is None:
            return lambda note_id: None
        get, gate = self._catalogue.get, request.gate(self._catalogue)

        def visible(note_id: str) -> Entry | None:
            entry = get(note_id)
            return entry if entry is not None and gate.passes(entry) else None

        return visible


def _query_of(sheet: TaskSheet) -> str:
    return f"{sheet.task.title}\n{sheet.task.description or ''}"[:QUERY_OF_TASK]


def _task_part(sheet: TaskSheet, changed: Changed | None) -> TaskPart | None:
    """Return the task part. After a cursor, it has only new findings. Without new findings, return None."""
    findings = sheet.findings
    if changed is not None:
        new = {str(event.draft.payload.get("finding_id")) for event in changed.events}
        findings = [finding for finding in findings if finding.id in new]
        about = {str(event.draft.payload.get("task_id")) for event in changed.events}
        if sheet.task.id not in about:
            return None
    return TaskPart(
        task=sheet.task,
        claims=sheet.claims,
        findings=findings,
        blockers=sheet.blockers,
        is_news=changed is not None,
    )
