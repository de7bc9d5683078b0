"""Entity extraction.

The names are stored in the database or written into the notes (docs/spec/memory.md §4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from attrs import define, field, frozen

from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import Forbidden, LithosError, NoteNotFound, VersionConflict
from lithos.kernel.values.events import ENRICHMENT
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.memory.model.memory import RecordEntities
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.values import digest_of
from lithos.notes.indexing_messages import Upsert
from lithos.notes.model.entities import (
    MARKER,
    ExtractedEntities,
    decide_extraction,
    digest_entities,
    extract_entities,
    is_machine_made,
    is_stale,
    may_extract,
)
from lithos.notes.model.note import Document, Note
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import PatchNote, WriteOutcome
from lithos.search.indexing.indexer import Indexer

log = get_logger("lithos.entities")

#: Function that changes the frontmatter of a note. It raises the refusals of the writer.
Patch: TypeAlias = Callable[[PatchNote], Awaitable[WriteOutcome]]


@frozen
class NoteEntities:
    """The entities in one version of a note.

    `before` are the previous entities. `source` is the hash of the file content.
    """

    id: str
    path: str
    version: int
    before: tuple[str, ...]
    entities: tuple[str, ...]
    source: str
    document: Document


@define(eq=False)
class EntityExtraction:
    """The entity extraction for notes that need it.

    With `patch`, extraction changes the frontmatter of notes, but never the body. Without `patch`, no file is
    changed: entities are stored by note id, and count only if the file has no entities or only
    machine-written entities.
    """

    _catalogue: Catalogue
    _texts: NoteTexts
    #: `_ledger` is None only in a dry run, like the index.
    _ledger: Learning | None = None
    _patch: Patch | None = field(default=None, kw_only=True)
    #: The index that is notified if the entities of notes have changed.
    _index: Indexer | None = field(default=None, kw_only=True)
    _blocking: Threads = field(factory=Threads, init=False)

    async def refresh(self, note_id: str, *, force: bool = False) -> bool:
        """Store the entities of a note if the table in the specification requires it.

        Return whether they changed.

        Entities with the current marker are also extracted again, because the text may have changed, unless
        a person edited the entities. If a note changes during the extraction, nothing is
        stored, because the event of that change queues the note again. Entities of a deleted note are
        deleted. `force` includes curated entities too, if entities are written into files. Raises
        `StorageFailed`.
        """
        if note_id not in self._catalogue:
            if self._ledger is not None and self._catalogue.entities.get(note_id) is not None:
                await self._ledger.submit(RecordEntities(note_id))
            return False
        found = await self.look(note_id, force=force)
        return found is not None and await self.store(found) and found.entities != found.before

    async def refresh_stale(self) -> int:
        """Repeat the extraction for entities that come from older rules or from another text.

        Return the number of notes with changed entities.

        If a note cannot be written, this is logged, and the next sweep retries it.
        """
        written = 0
        for note_id in list(self.stale()):
            try:
                written += await self.refresh(note_id)
            except LithosError as refusal:
                log.warning("entities not stored", note=note_id, reason=refusal.message)
        return written

    def stale(self) -> Iterator[str]:
        """Yield the ids of notes with entities from older rules or from other file contents."""
        return (entry.note.id for entry in self._catalogue if self._is_stale(entry))

    def _is_stale(self, entry: Entry) -> bool:
        found = self._catalogue.entities.counting(entry.note)
        if self._patch is not None or found is None:
            return is_stale(entry.note)
        return found.extractor < MARKER or found.source != entry.digest

    async def look(self, note_id: str, *, force: bool = False) -> NoteEntities | None:
        """Return the entities to store for a note, or None if no extraction is due. Nothing is stored yet.

        Entities that equal the last machine-written entities are not curated, whatever their marker says.
        """
        entry, force = self._catalogue.get(note_id), force and self._patch is not None
        made = (
            None
            if self._ledger is None
            else await self._ledger.read(lambda tables: tables.ledgers.entities_digest(note_id))
        )
        if entry is None or not may_extract(entry.note, force=force or is_machine_made(entry.note, made)):
            return None
        loaded = await self._texts.load(entry)
        if loaded is None or loaded.document.note.id != entry.note.id:
            return None
        note, source = loaded.document.note, digest_of(loaded.source.data)
        force = force or is_machine_made(note, made)  # A person may have edited the file meanwhile.
        entities = await self._extract(note, loaded.document.content, source, force)
        if entities is None:
            return None
        before = note.entities if self._patch is not None else self._catalogue.entities.of(note)
        return NoteEntities(note.id, entry.path, note.version, before, entities, source, loaded.document)

    async def _extract(self, note: Note, content: str, source: str, force: bool) -> tuple[str, ...] | None:
        if self._patch is not None:
            if note.frontmatter_error is not None:
                return None  # A note with a frontmatter error cannot store entities.
            due = await self._blocking.run(partial(decide_extraction, note, content, force=force))
            if due is not None or self._catalogue.entities.counting(note) is None:
                return due
        found = self._catalogue.entities.counting(note)
        is_known = found is not None and (found.extractor, found.source) == (MARKER, source)
        if (is_known and self._patch is None) or not may_extract(note, force=force):
            return None
        return await self._blocking.run(partial(extract_entities, content))

    async def store(self, found: NoteEntities) -> bool:
        """Store the result of `look`, unless the note has changed. Return whether it was stored."""
        return await (self._keep(found) if self._patch is None else self._write(found, self._patch))

    async def _write(self, found: NoteEntities, patch: Patch) -> bool:
        kept = self._catalogue.entities.get(found.id)
        if self._ledger is not None and kept is not None:  # must happen before the note is indexed
            await self._ledger.submit(RecordEntities(found.id, written=kept.instead_of))
        request = PatchNote(
            id=found.id,
            agent=ENRICH_AGENT,
            entities=found.entities,
            entities_extractor=MARKER,
            expected_version=found.version,
            source=ENRICHMENT,
        )
        try:
            await patch(request)
        except (NoteNotFound, VersionConflict):
            return False
        except Forbidden:  # A protected note is never written. Its entities stay in the database.
            return await self._keep(found)
        if self._ledger is not None:
            await self._ledger.submit(RecordEntities(found.id, written=digest_entities(found.entities)))
        return True

    async def _keep(self, found: NoteEntities) -> bool:
        note = found.document.note
        replaced = digest_entities(note.entities) if note.entities else ""
        kept = ExtractedEntities(found.entities, MARKER, found.source, replaced)
        if self._ledger is not None and self._is_current(found):
            await self._ledger.submit(RecordEntities(found.id, kept))
        entry = self._catalogue.get(found.id)
        if entry is None or not self._is_current(found):
            return False  # The note's own change event queues it again, and a deletion removes its entities.
        if self._index is not None and found.entities != found.before:
            self._index.promise(await self._index.accept(Upsert(entry, found.document, repair=True)))
        return True

    def _is_current(self, found: NoteEntities) -> bool:
        entry = self._catalogue.get(found.id)
        return entry is not None and entry.digest == found.source
