"""The context service. One briefing replaces many searches and reads (docs/spec/context.md §1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Protocol

import attrs
import trio
from attrs import field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import IndexFailed, InvalidInput
from lithos.memory.briefing.briefing import LEAST_BUDGET, MOST_BUDGET, Briefing, compose
from lithos.memory.briefing.compact import compose_whole
from lithos.memory.briefing.material import Material
from lithos.memory.briefing.parts import AboutNote, LeftOut, TaskPart
from lithos.memory.briefing.passages import LEAST_TEXT, SourceNote, affordable
from lithos.memory.context.candidates import Candidates, ContextCandidate, RankedCandidates
from lithos.memory.context.changes import (
    ActivityFilter,
    Changed,
    JournalChanges,
    task_ids,
    tell_activity,
    tell_decisions,
)
from lithos.memory.context.opening import OPENING, WITHHOLDING, OpeningReader
from lithos.memory.context.passage_cache import Splits
from lithos.memory.context.project_scope import EVERYTHING, ProjectScope
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveRequest
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.model.note import NoteWarning
from lithos.notes.service.row_kinds import ATTACHMENT, KINDS
from lithos.notes.service.texts import NoteTexts
from lithos.search.index.fulltext_schema import Filters
from lithos.search.index.tokenizer import load_pieces
from lithos.search.indexing.indexer import Visibility
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.ranking.match_strength import WEAK
from lithos.search.ranking.replies import wants_all
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.other_files import BESIDE, OtherHit, OtherHits, OtherQuery
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.search.service.search import Search
from lithos.tasks.model.task import Task
from lithos.tasks.service.coordination import Coordination, TaskSheet
from lithos.tasks.service.open_work import OpenWork
from lithos.text.chunk import ChunkSizes
from lithos.text.dates import AskedTime, asked_time, own_date
from lithos.text.words.tokens import Count, count_safely, count_with

log = get_logger("lithos.context")

SECTIONS: Final = ("task", "warnings", "notes", "activity")
#: Maximum characters of a query that is made from a task.
QUERY_OF_TASK: Final = 4_000
#: Tokens of budget per candidate, and minimum and maximum number of candidates.
TOKENS_A_NOTE: Final = 30
FEWEST_NOTES: Final = 16
MOST_NOTES: Final = 100
#: Maximum characters to read of all candidates together. Text that takes longer to split than prose counts
#: more. Candidates beyond this limit get `LEAST_TEXT` characters each.
MOST_TEXT: Final = 2_000_000
#: Maximum number of warnings in an answer.
MOST_WARNINGS: Final = 30
#: Minimum score, relative to the best score, at which a withheld note is named.
WORTH_NAMING: Final = 0.3
#: Score of an attachment hit, relative to the best score, by match strength.
ANSWERING: Final[Mapping[str, float]] = {"strong": 1.0, "fair": 0.6, "weak": 0.0}


class WaitingKeys(Protocol):
    """Further keys of a briefing for items that wait for a person.

    The keys exist only if a capability reports items that wait for a person.
    """

    def told(self) -> dict[str, int]:
        """Return the number of waiting items by key. If no item waits, the mapping is empty."""


@frozen(kw_only=True)
class ContextRequest:
    """The subject of a briefing: a query, a task, or both.

    A briefing with one of the sections `OPENING` needs no subject. If `namespaces` is None, all namespaces
    are searched. `filters` contain the project filter of `scope`.
    """

    query: str = ""
    task_id: str | None = None
    budget: int = 2_000
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    namespaces: tuple[str, ...] | None = None
    since: str | None = None
    sections: tuple[str, ...] = SECTIONS
    kinds: frozenset[str] = frozenset(KINDS)
    #: If True, the briefing has short headings and the notes' own dates, and includes replies after
    #: questions.
    is_compact: bool = False
    scope: ProjectScope = EVERYTHING

    def gate(self, catalogue: Catalogue) -> RetrievalFilter:
        """Return the filter for the notes that the caller may see and has asked for."""
        return RetrievalFilter(
            namespaces=None if self.namespaces is None else frozenset(self.namespaces),
            task_id=self.task_id,
            agent_id=self.agent_id,
            filters=self.filters,
            projects=catalogue.projects,
        )


@frozen(kw_only=True)
class ContextAnswer:
    """The answer to a briefing request.

    `cursor` is set only if requested, and `receipt_id` only if LCMA is on.

    `troubles` lists pairs (kind, reason) that explain why the answer is `degraded`, as far as known.
    """

    briefing: Briefing
    budget: int
    cursor: str | None
    receipt_id: str | None
    degraded: bool
    troubles: Sequence[tuple[str, str]] = ()
    #: Attachment hits among the excerpts, by id.
    places: Mapping[str, OtherHit] = field(factory=dict)


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


@frozen
class _Read:
    """The sources of a briefing, and the candidates that were withheld, deleted or not read."""

    sources: Sequence[SourceNote]
    withheld: Sequence[LeftOut]
    warnings: Sequence[AboutNote]
    is_degraded: bool


NOTHING_TOLD: Final = Briefing(text="", tokens=0, items=(), dropped=(), warnings=())
NOTHING: Final = Material()
#: Factor on the score of a note with an own date in the period that the question names.
OF_THAT_TIME: Final = 1.15


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
        texts: NoteTexts,
        coordination: Coordination,
        work: OpenWork,
    ) -> None:
        self._others = others
        self._threshold = search.threshold
        self._candidates = Candidates(retrieve, search, catalogue, visibility)
        self._catalogue = catalogue
        self._lineage = lineage
        self._texts = texts
        self._semantic = semantic
        self._coordination = coordination
        self._coordinator = coordinator
        self._changes = JournalChanges(journal, reading)
        self._working = Threads(2)
        self._clock = clock
        self._count: Count | None = None
        self._loading = trio.Lock()
        self._splits = Splits(sizes.size, sizes.maximum)
        catalogue.when_removed.append(self._splits.forget)
        self._work = work
        self._opening = OpeningReader(catalogue, lineage, texts, self._splits, self._working, work)

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
        _check(request)
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
        hits = await self._beside(request)
        find = self._candidates.find(
            asked, is_followup=is_followup, ranking=ranking, may_widen=request.scope.may_widen
        )
        async with find as found:
            material, is_degraded = await self._gather(request, found, sheet, changed, hits)
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
        read = await self._read(request, found)
        gate = request.gate(self._catalogue)
        opening = await self._opening.read(wanted, gate, request.scope, self._clock())
        activity, decisions = list[str](), list[str]()
        if "activity" in wanted:
            activity, decisions = await self._tell(request, found, changed)
        material = Material(
            task=_task_part(sheet, changed) if sheet is not None and "task" in wanted else None,
            sources=self._with_attachments(read.sources, hits, request.scope) if "notes" in wanted else (),
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

    async def _read(self, request: ContextRequest, found: RankedCandidates) -> _Read:
        """Return the texts of the candidates that may be shown.

        The texts are divided into passages in a worker thread.
        """
        now = self._clock()
        trusted: list[ContextCandidate] = []
        withheld: list[LeftOut] = []
        warnings: list[AboutNote] = []
        best = max((each.score for each in found.notes), default=0.0)
        gate = request.gate(self._catalogue)
        await self._lineage.settle()
        for each in found.notes:
            note = each.entry.note
            told = (
                gate.veil(one, self._catalogue.get(one.id)) for one in self._lineage.warnings(note.id, now)
            )
            about = [one for one in told if one is not None]
            reason = next((warning for warning in about if warning.kind in WITHHOLDING), None)
            if reason is None:
                trusted.append(each)
            elif each.score >= WORTH_NAMING * best:
                withheld.append(_withheld(each.entry, reason))
            else:
                continue
            warnings += [AboutNote(note.id, note.title, warning, reason is not None) for warning in about]
        entries = [each.entry for each in trusted]
        contents = await self._texts.versioned(entries)
        await self._texts.frames.learn(entries)
        nearness, is_degraded = await self._nearness(request.query, entries)
        read = list(zip(trusted, contents, strict=True))
        asked = asked_time(request.query) if request.is_compact else None
        sources = await self._working.run(lambda: self._split(read, nearness, asked, request.is_compact))
        if request.scope.own is not None:
            sources = [self._marked(each, request.scope) for each in sources]
        serials = [entry.serial for entry in entries]
        if len(still := self._catalogue.at_serials(serials)) < len(serials):
            # Only this code drops removed notes from the cache. Otherwise they would stay in it until newer
            # notes replace them.
            for serial in set(serials).difference(entry.serial for entry in still):
                self._splits.forget(serial)
        ids = {source.id for source in sources} | {each.id for each in withheld}
        warnings = [each for each in warnings if each.note_id in ids]
        return _Read(sources, withheld, warnings[:MOST_WARNINGS], is_degraded)

    def _marked(self, source: SourceNote, scope: ProjectScope) -> SourceNote:
        """Return the source with its project if the agent works on another one."""
        entry = self._catalogue.get(source.id)
        project = "" if entry is None else scope.foreign(self._catalogue.projects.of(entry))
        return attrs.evolve(source, project=project) if project else source

    def _with_attachments(
        self, sources: Sequence[SourceNote], hits: Sequence[OtherHit], scope: ProjectScope
    ) -> Sequence[SourceNote]:
        """Return the sources with the attachment hits. A strong hit counts as much as the best note."""
        if not hits:
            return sources
        best = max((source.score for source in sources), default=1.0)
        beside = [
            SourceNote(
                id=hit.id,
                title=hit.name if hit.page is None else f"{hit.name}, page {hit.page}",
                path=hit.path,
                version=0,
                score=best * ANSWERING[(hit.judged or WEAK).match],
                split=self._splits.split(-1 - hit.number, hit.name, hit.text),
                reasons=("matches the query",),
                project=scope.foreign(self._catalogue.projects.rules.of_path(hit.path)),
            )
            for hit in hits
        ]
        return sorted([*sources, *beside], key=lambda each: (-each.score, each.id))

    async def _nearness(self, query: str, entries: Sequence[Entry]) -> tuple[dict[int, list[float]], bool]:
        """Return the similarity of each chunk to the query. Without a query, notes are read from the top."""
        if not query.strip():
            return {entry.serial: [1.0] for entry in entries}, False
        try:
            serials = [entry.serial for entry in entries]
            return (await self._semantic.similarities(query, serials) if serials else {}), False
        except (SemanticUnavailable, IndexFailed) as failure:
            log.warning("passages chosen by full-text search only", reason=str(failure))
            return {}, True

    def _split(
        self,
        read: Sequence[tuple[ContextCandidate, tuple[str, int] | None]],
        nearness: dict[int, list[float]],
        asked: AskedTime | None,
        is_compact: bool,
    ) -> list[SourceNote]:
        """Return the sources.

        Of very long texts, only the first are read completely. Runs in a worker thread.
        """
        left, sources = MOST_TEXT, list[SourceNote]()
        for candidate, shown in read:
            if shown is None:  # The note was deleted during this read.
                continue
            entry, (content, version) = candidate.entry, shown
            own = own_date(entry.note.extra, entry.note.title, entry.path, content) if is_compact else None
            is_asked = asked is not None and own is not None and asked.covers(own)
            content, cost = affordable(content, max(LEAST_TEXT, left))
            left -= cost
            note = entry.note
            sources.append(
                SourceNote(
                    id=note.id,
                    title=note.title,
                    path=entry.path,
                    version=version,
                    score=candidate.score * (OF_THAT_TIME if is_asked else 1),
                    date="" if own is None else str(own),
                    dated="" if own is None else own.words,
                    split=self._splits.split(entry.serial, note.title, content, self._texts.frames.of(entry)),
                    nearness=nearness.get(entry.serial, ()),
                    reasons=candidate.reasons,
                )
            )
        # Notes from the requested period may now rank before notes that had a better score.
        return sorted(sources, key=lambda each: (-each.score, each.id)) if asked is not None else sources


def _check(request: ContextRequest) -> None:
    if not request.query.strip() and request.task_id is None and not set(OPENING) & {*request.sections}:
        raise InvalidInput(
            "Give query, task_id or both. Only a briefing with the section pinned or work needs no subject."
        )
    if not LEAST_BUDGET <= request.budget <= MOST_BUDGET:
        raise InvalidInput(f"budget must be {LEAST_BUDGET} to {MOST_BUDGET} tokens, not {request.budget}.")
    for section in request.sections:
        if section not in SECTIONS and section not in OPENING:
            known = ", ".join((*SECTIONS, *OPENING))
            raise InvalidInput(f"sections may contain {known}, not {section[:100]!r}.")


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


def _withheld(entry: Entry, warning: NoteWarning) -> LeftOut:
    note = entry.note
    return LeftOut(
        id=note.id,
        title=note.title,
        tokens=-(-entry.state.size // 4),
        reason=f"{warning.kind}: {warning.reason}",
    )
