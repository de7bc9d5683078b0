"""Import service: receives records in batches and decides how to handle each record.

A note contains a mark (`rendering.MARK`) that identifies its record. There is no other state, so a killed
import continues when it is run again. Notes are written in the usual way, with durability, versions and
events. A batch is first planned in order and then written as a whole, so that its notes share disk syncs.
Other writers can write between two batches.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import attrs
import trio
from attrs import define, field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.imported_rows import Carried
from lithos.imports.files.attachments import ImportLedger, key_of
from lithos.imports.model.importing import Record, RowBatch
from lithos.imports.service.dead_links import PAGE, DeadLink, LinksOfImport
from lithos.imports.service.records import (
    CHANGED_HERE,
    CREATED,
    DELETED_HERE,
    DUPLICATE,
    EDGE_MADE,
    EDGE_MISSING,
    EDGE_THERE,
    FAILED,
    MALFORMED,
    UNCHANGED,
    UPDATED,
    ImportResult,
    ImportSession,
    Options,
    Remembered,
    RowImporter,
    SourceEdge,
    excess_of,
    own_rows,
)
from lithos.imports.service.rendering import NoteTarget, Rendered, hash_of, read_mark, render
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads, slices
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import InvalidInput, LithosError, PathCollision, VersionConflict
from lithos.kernel.values.limits import NAME, check_text
from lithos.kernel.values.principals import IMPORT_AGENT, check_agent
from lithos.kernel.values.times import EPOCH
from lithos.memory.learning.actor import Memory
from lithos.memory.service.edges import Edges
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.model.edges import UpsertEdge
from lithos.notes.model.paths import file_name_of, portable_path, resolve_new_path, slug_of
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import ImportNote
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.text.words.analysis import name_key
from lithos.text.yaml.nodes import UnreadableNote

#: UUIDv5 namespace for the ids of imported notes. An id is made from the record's kind and id.
_NAMESPACE: Final = uuid.UUID("5f0f4c52-8c14-5c6e-9d0c-6a4f3b6f1c7e")
#: Maximum number of file names to try. If all of them are used, the id becomes part of the name.
_NAMES_TRIED: Final = 20
#: Maximum number of attempts to handle a record whose note keeps changing.
_RETRIES: Final = 5
#: Maximum number of titles to remember for finding the targets of edges. Notes with other titles are only
#: found by id.
MOST_TITLES: Final = 200_000
#: Maximum number of records per run that are checked for duplicates. A later duplicate counts as a change of
#: its record.
MOST_SEEN: Final = 2_000_000
#: Number of links to resolve per turn of the event loop, which takes about a millisecond.
_LINKS_A_TURN: Final = 200
#: Provenance of the edges that an import writes.
PROVENANCE: Final = "imported"
EDGE_NAMESPACE: Final = "default"


class NoImport(LithosError):
    """Error: an import has ended or was replaced by another import. The message says what to do."""


@define(eq=False)
class _Session:
    """State of one import: the notes of its kind of source, and the ids and paths already assigned."""

    id: str
    options: Options
    #: Note id by the `key_of` of the record. In a dry run, it is "" for a note that would be created.
    notes: dict[int, str] = field(factory=dict)
    #: Keys of the records seen in this run.
    seen: set[int] = field(factory=set)
    #: Hashes of the note paths used in this run.
    paths: set[int] = field(factory=set)
    titles: dict[int, str] = field(factory=dict)
    #: Hashes of the ids that the files of this run contain.
    own_ids: set[int] = field(factory=set)  # bounded: one number for each note that an import makes
    #: Facts to remember about imported table rows.
    remembered: Remembered = field(factory=Remembered)
    #: Links in the notes, which are checked after all notes have been imported.
    links: LinksOfImport = field(factory=LinksOfImport)
    #: Only one batch is planned at a time, because each plan depends on the previous batches.
    planning: trio.Lock = field(factory=trio.Lock)


@frozen
class _Step:
    """A record to write, and the file that it replaces."""

    record: Record
    target: NoteTarget
    key: int
    #: Digest of the file that is replaced, or None for a new note.
    replaced: str | None
    notices: tuple[str, ...] = ()


class Importing:
    """Import service of one knowledge base. Only one import can run at a time."""

    def __init__(
        self,
        files: NoteFiles,
        storage: StorageConfig,
        catalogue: Catalogue,
        coordinator: Coordinator,
        clock: Clock,
        memory: Memory,
        opening: Opening,
        fulltext_indexer: FulltextIndexer,
        knowledge: Knowledge,
        edges: Edges,
        texts: NoteTexts,
    ) -> None:
        self._catalogue = catalogue
        self._knowledge = knowledge
        self._edges = edges
        self._texts = texts
        self._ledger = ImportLedger(storage.data_dir / ".lithos")
        self._working = Threads()
        self._clock = clock
        self._wait_known = opening.wait_known
        self._notes_folder = files.root.absolute()
        self._ignored = files.ignored
        self._content_limit = storage.max_content_size_bytes
        self._tables = RowImporter(coordinator.mailbox, memory.mailbox)
        #: Called before each batch to announce that more writes will follow.
        self._gather = fulltext_indexer.gather
        self._session: _Session | None = None

    async def begin(self, options: Options) -> ImportSession:
        """Begin an import. An unfinished import, for example of a killed command, is ended.

        Raises `InvalidInput` if the target folder cannot contain notes.
        """
        for name, value in (("agent", options.agent), ("kind", options.kind)):
            check_text(name, value, NAME)
            if not value.strip():
                raise InvalidInput(f"{name} is empty. Set it to a name.")
        if options.agent != IMPORT_AGENT:
            check_agent(options.agent)
        into = options.into.strip().rstrip("/")
        if into:
            resolve_new_path(into, "note")
            if into.endswith(".md"):
                raise InvalidInput(f"The folder {into!r} must not end in .md. Name a folder.")
        session = _Session(uuid.uuid4().hex, attrs.evolve(options, into=into))
        await self._wait_known()
        async for some in slices(list(self._catalogue)):
            for entry in some:
                mark = read_mark(entry.note.extra)
                if mark is not None and mark.kind == options.kind:
                    session.notes[key_of(mark.kind, mark.id)] = entry.note.id
        await self._working.run(self._ledger.load)
        if not options.dry_run:
            lost = [key for key in session.notes if key not in self._ledger]
            await self._working.run(partial(self._ledger.add, lost))
        self._session = session
        return ImportSession(session.id, self._notes_folder, self._content_limit)

    async def take(self, session_id: str, records: Sequence[Record]) -> list[ImportResult]:
        """Write a batch of records. In a dry run, only report the changes. Raises `NoImport`."""
        session = self._find(session_id)
        outcomes: list[ImportResult | None] = [None] * len(records)
        steps: dict[int, _Step] = {}
        async with session.planning:
            for number, record in enumerate(records):
                planned = await self._plan(session, record)
                if isinstance(planned, ImportResult):
                    outcomes[number] = planned
                else:
                    steps[number] = planned
        if session.options.dry_run:
            return [outcomes[number] or _would_be(steps[number]) for number in range(len(records))]
        self._gather()
        now = self._clock()
        made = await self._working.run(
            lambda: {number: self._render(step, session, now) for number, step in steps.items()}
        )
        async with trio.open_nursery() as nursery:
            for number, step in steps.items():
                nursery.start_soon(self._carry_out, session, step, made[number], outcomes, number)
        done = [outcome for outcome in outcomes if outcome is not None]
        written = [
            steps[number].key
            for number, outcome in enumerate(done)
            if outcome.result == CREATED and steps[number].key not in self._ledger
        ]
        await self._working.run(partial(self._ledger.add, written))
        return done

    async def connect(self, session_id: str, edges: Sequence[SourceEdge]) -> list[str]:
        """Create or update typed edges between imported notes.

        Return one of `EDGE_RESULTS` for each edge. Raises `NoImport`.
        """
        session = self._find(session_id)
        results: list[str] = []
        for edge in edges:
            source = self._note_of(session, edge.source)
            target = self._note_of(session, edge.target)
            if target is None:
                target = session.titles.get(_title_key(edge.target))
            if source is None or target is None:
                results.append(EDGE_MISSING)
            elif session.options.dry_run:
                results.append(EDGE_MADE)
            else:
                results.append(await self._upsert(session.options.agent, source, edge.relation, target))
        return results

    async def dead_links(self, session_id: str, start: int) -> list[DeadLink]:
        """Return dead links, starting with number `start`. The list is empty after the last link.

        The links include links to files. Raises `NoImport`.
        """
        session, graph = self._find(session_id), self._catalogue.graph
        while not graph.settle(1):
            await trio.lowlevel.checkpoint()
        links = session.links
        if links.dead is None:
            dead: list[DeadLink] = []
            for number, found in enumerate(links.find(graph.resolve)):
                if found is not None:
                    dead.append(found)
                if number % _LINKS_A_TURN == 0:
                    await trio.lowlevel.checkpoint()
            links.dead = dead
        return links.dead[start : start + PAGE]

    async def carry(self, session_id: str, batch: RowBatch) -> Carried:
        """Import rows of a table.

        In a dry run, only report the changes. Raises `NoImport`, `StorageFailed`.
        """
        session = self._find(session_id)
        options = session.options
        batch, foreign = own_rows(batch, options)
        dry_run = options.dry_run
        carried = await self._tables.carry(session.remembered, batch, options.agent, dry_run=dry_run)
        return attrs.evolve(carried, kept=(*foreign, *carried.kept))

    async def end(self, session_id: str) -> None:
        """End an import and announce the imported tasks that are ready. Raises `NoImport`."""
        session = self._find(session_id)
        if not session.options.dry_run:
            await self._tables.settle(session.remembered, session.options.agent)
        self._session = None

    def _find(self, session_id: str) -> _Session:
        session = self._session
        if session is None or session.id != session_id:
            raise NoImport(
                "This import has ended, because another import began or the server restarted. "
                "Run the import again: notes already written stay and are not written twice."
            )
        return session

    def _note_of(self, session: _Session, record_id: str) -> str | None:
        return session.notes.get(self._key(session.options, record_id))

    def _key(self, options: Options, record_id: str) -> int:
        return key_of(options.kind, _mark_id(options, record_id))

    async def _upsert(self, agent: str, source: str, relation: str, target: str) -> str:
        for edge in await self._edges.touching([source]):
            if (edge.from_id, edge.type, edge.to_id) == (source, relation, target):
                return EDGE_THERE
        await self._edges.upsert(
            UpsertEdge(
                agent=agent,
                from_id=source,
                to_id=target,
                type=relation,
                weight=1.0,
                namespace=EDGE_NAMESPACE,
                provenance_actor=agent,
                provenance_type=PROVENANCE,
            )
        )
        return EDGE_MADE

    # -- planning ------------------------------------------------------------------------------

    async def _plan(self, session: _Session, record: Record) -> ImportResult | _Step:
        """Decide how to handle a record, based on the decisions about earlier records."""
        options, where = session.options, record.position
        if foreign := options.names_another(record.author, record.properties.get("author")):
            return ImportResult(where, FAILED, reason=foreign)
        key = self._key(options, record.id)
        if key in session.seen:
            return ImportResult(where, DUPLICATE, reason=f"an earlier record has the id {record.id[:200]!r}")
        if len(session.seen) < MOST_SEEN:
            session.seen.add(key)
        too_large = excess_of(record, self._content_limit)
        if too_large:
            return ImportResult(where, MALFORMED, reason=too_large)
        note_id = session.notes.get(key)
        entry = self._catalogue.get(note_id) if note_id else None
        planned: ImportResult | _Step
        if entry is not None:
            planned = await self._plan_again(session, record, key, entry)
        elif (note_id is not None or key in self._ledger) and not options.recreate:
            return ImportResult(where, DELETED_HERE, reason="the note was imported before and deleted here")
        else:
            planned = self._plan_new(session, record, key)
        if isinstance(planned, _Step):
            note_id = planned.target.note_id
        if note_id and (said := _said_id(record)) is not None:
            session.remembered.rename(said, note_id)
        self._note_links(session, record, planned, entry)
        if planned.__class__ is _Step or entry is not None:
            self._remember(session, record, key, "" if options.dry_run and entry is None else note_id or "")
        return planned

    def _note_links(
        self, session: _Session, record: Record, planned: ImportResult | _Step, entry: Entry | None
    ) -> None:
        """Remember the links of a record that is a note or becomes one."""
        if isinstance(planned, _Step):
            note_id, path = planned.target.note_id, planned.target.path
        elif entry is not None and planned.result == UNCHANGED:
            note_id, path = entry.note.id, entry.path
        else:
            return
        if record.text is not None:  # records without text have no content if they were sent over HTTP
            try:
                document = parse_document(record.text, path, EPOCH, "-", self._catalogue.style)
            except UnreadableNote:
                return
            names = dict.fromkeys((*record.aliases, *document.note.aliases, document.note.title))
            record = attrs.evolve(record, content=document.content, aliases=tuple(names))
        session.links.add(record, note_id, path, is_plan=session.options.dry_run)

    def _remember(self, session: _Session, record: Record, key: int, note_id: str) -> None:
        session.notes[key] = note_id
        if len(session.titles) < MOST_TITLES:
            session.titles.setdefault(_title_key(record.title), note_id)

    async def _plan_again(
        self, session: _Session, record: Record, key: int, entry: Entry
    ) -> ImportResult | _Step:
        """Decide how to handle a record that already has a note."""
        mark = read_mark(entry.note.extra)
        assert mark is not None
        if mark.hash == record.hash:
            return ImportResult(record.position, UNCHANGED, entry.path)
        loaded = await self._texts.load(entry)
        if loaded is None:
            return ImportResult(record.position, FAILED, entry.path, "the file of its note cannot be read")
        if hash_of(loaded.document) != mark.said:
            reason = "the record changed at the source and its note changed here: the note stays unchanged"
            return ImportResult(record.position, CHANGED_HERE, entry.path, reason)
        target = NoteTarget(
            note_id=entry.note.id,
            path=entry.path,
            mark_id=mark.id,
            version=loaded.document.note.version + 1,
            created_at=None if record.created_at is not None else entry.note.created_at,
            refuses_id=frozenset(filter(None, (_said_id(record),))) - {entry.note.id},
        )
        return _Step(record, target, key, digest_of(loaded.source.data))

    def _plan_new(self, session: _Session, record: Record, key: int) -> ImportResult | _Step:
        """Choose the id and the path for a record without a note."""
        options = session.options
        mark_id = _mark_id(options, record.id)
        note_id = str(uuid.uuid5(_NAMESPACE, f"{options.kind}\0{mark_id}"))
        if key in self._ledger or note_id in self._catalogue:
            note_id = str(uuid.uuid4())  # the old id belongs to the versions of the deleted note
        try:
            path, notices = self._choose_path(session, record, note_id)
        except InvalidInput as refusal:
            return ImportResult(record.position, FAILED, reason=refusal.message)
        own, refused = _said_id(record), frozenset[str]()
        if own is not None and (own in self._catalogue or hash(own) in session.own_ids):
            refused = frozenset((own,))
        elif own is not None:
            session.own_ids.add(hash(own))
            note_id = own
        target = NoteTarget(note_id, path, mark_id, refuses_id=refused)
        return _Step(record, target, key, None, notices)

    def _choose_path(
        self, session: _Session, record: Record, note_id: str, taken: frozenset[str] = frozenset()
    ) -> tuple[str, tuple[str, ...]]:
        """Return an unused path similar to the requested path, with notices. Raises `InvalidInput`."""
        into = session.options.into
        name = (
            file_name_of(record.title, note_id)
            if self._catalogue.style.is_foreign
            else slug_of(record.title, note_id)
        )
        wished: str | None = None
        if record.path is not None:
            wished = f"{into}/{record.path}" if into else record.path
        try:
            path = self._to_make(wished if wished is not None else into or None, name)
        except InvalidInput:
            path = self._to_make(into or None, name)
        stem, tried = path.removesuffix(".md"), 1
        while not self._is_free(session, path) or name_key(path) in taken:
            tried += 1
            path = f"{stem}-{tried if tried <= _NAMES_TRIED else note_id[:8] + '-' + str(tried)}.md"
        if self._ignored.covers(path):
            raise InvalidInput(
                f"The path {path} is ignored (storage.ignore, or the ignored files of Obsidian), "
                "so a note at this path would never be found. Name another folder with --into."
            )
        session.paths.add(hash(name_key(path)))
        if wished is not None and path != wished:
            return path, (f"{wished} is taken or unusable, so the path is {path}",)
        if wished is None and tried > 1:
            return path, (f"{stem}.md is taken, so the path is {path}",)
        return path, ()

    def _is_free(self, session: _Session, path: str) -> bool:
        return self._catalogue.holder(path) is None and hash(name_key(path)) not in session.paths

    def _to_make(self, path: str | None, name: str) -> str:
        """Return a path for a new note that every disk can store. Raises `InvalidInput`."""
        return self._catalogue.path_to_make(portable_path(resolve_new_path(path, name)))

    # -- writing ---------------------------------------------------------------------------------

    def _render(self, step: _Step, session: _Session, now: datetime) -> Rendered | LithosError:
        options = session.options
        try:
            made = render(step.record, step.target, options.kind, options.agent, now, self._catalogue.style)
            note = made.document.note
            foreign = options.names_another(note.author, *note.contributors)
            return InvalidInput(foreign) if foreign else made
        except UnreadableNote as problem:
            return InvalidInput(f"The record cannot be stored as a file: {problem.reason}.")
        except InvalidInput as refusal:
            return refusal

    async def _carry_out(
        self,
        session: _Session,
        step: _Step,
        made: Rendered | LithosError,
        outcomes: list[ImportResult | None],
        number: int,
    ) -> None:
        """Write one note. If its path was taken or its file changed in the meantime, decide again."""
        record, taken = step.record, frozenset[str]()
        for _ in range(_RETRIES + _NAMES_TRIED):
            if isinstance(made, LithosError):
                outcomes[number] = ImportResult(record.position, FAILED, reason=made.message)
                return
            try:
                outcomes[number] = await self._write(session, step, made)
                return
            except PathCollision:
                taken |= {name_key(step.target.path)}
                path, notices = self._choose_path(session, record, step.target.note_id, taken)
                step = attrs.evolve(step, target=attrs.evolve(step.target, path=path), notices=notices)
            except VersionConflict:
                planned = await self._decide_again(session, step)
                if isinstance(planned, ImportResult):
                    outcomes[number] = planned
                    return
                step = planned
            except LithosError as refusal:
                made = refusal
                continue
            made = await self._working.run(partial(self._render, step, session, self._clock()))
        outcomes[number] = ImportResult(
            record.position, FAILED, reason="its note keeps changing; import again"
        )

    async def _decide_again(self, session: _Session, step: _Step) -> ImportResult | _Step:
        entry = self._catalogue.get(step.target.note_id)
        if entry is None or read_mark(entry.note.extra) is None:
            reason = "its note was changed here during the import and stays unchanged"
            return ImportResult(step.record.position, CHANGED_HERE, step.target.path, reason)
        return await self._plan_again(session, step.record, step.key, entry)

    async def _write(self, session: _Session, step: _Step, made: Rendered) -> ImportResult:
        note_id = made.document.note.id
        outcome = await self._knowledge.write(
            ImportNote(
                id=note_id,
                agent=session.options.agent,
                path=step.target.path,
                data=made.data,
                document=made.document,
                identified=made.identified,
                expected=step.replaced,
            )
        )
        if note_id != step.target.note_id:  # the file contains an id
            self._remember(session, step.record, step.key, note_id)
            session.titles[_title_key(step.record.title)] = note_id
        notices = (*step.notices, *made.notices)
        return ImportResult(step.record.position, outcome.status, outcome.path, notices=notices)


def _mark_id(options: Options, record_id: str) -> str:
    """Return the record id to store in the note's mark.

    The id includes the folder, so that records of two sources with equal ids are distinguished.
    """
    return f"{options.into}/{record_id}" if options.into else record_id


def _title_key(title: str) -> int:
    return hash(title.strip().casefold())


def _said_id(record: Record) -> str | None:
    """Return the `id` that the reader found in the record's frontmatter."""
    own = record.properties.get("id") if record.text is not None else None
    return own if isinstance(own, str) else None


def _would_be(step: _Step) -> ImportResult:
    result = CREATED if step.replaced is None else UPDATED
    return ImportResult(step.record.position, result, step.target.path, notices=step.notices)
