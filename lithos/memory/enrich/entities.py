"""Entity extraction: names are kept in the database, or written into notes (docs/spec/memory.md §4)."""

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

#: Changes a note's frontmatter; raises the refusals of the writer.
Patch: TypeAlias = Callable[[PatchNote], Awaitable[WriteOutcome]]


@frozen
class NoteEntities:
    """The entities of one version of a note; `before`: the former ones, `source`: the hash of its bytes."""

    id: str
    path: str
    version: int
    before: tuple[str, ...]
    entities: tuple[str, ...]
    source: str
    document: Document


@define(eq=False)
class EntityExtraction:
    """Determines which notes need extraction, and extracts.

    With `patch` it changes frontmatter, never a body. Without it no file changes: entities are kept by
    id, and apply if the file has no entities, or only machine-written ones.
    """

    _catalogue: Catalogue
    _texts: NoteTexts
    #: Only a dry run has no `ledger` and no `index`.
    _ledger: Learning | None = None
    _patch: Patch | None = field(default=None, kw_only=True)
    #: Notified of notes with changed entities.
    _index: Indexer | None = field(default=None, kw_only=True)
    _blocking: Threads = field(factory=Threads, init=False)

    async def refresh(self, note_id: str, *, force: bool = False) -> bool:
        """Store the entities of a note if the specification's table requires it; True when they changed.

        Entities with the current marker are extracted again too unless they were edited: the text may have
        changed. Nothing is stored for a note that changes during extraction: its own event brings it back.
        Entities of a deleted note are forgotten. `force` includes curated entities too, if they are written.
        Raises `StorageFailed`.
        """
        if note_id not in self._catalogue:
            if self._ledger is not None and self._catalogue.entities.get(note_id) is not None:
                await self._ledger.submit(RecordEntities(note_id))
            return False
        found = await self.look(note_id, force=force)
        return found is not None and await self.store(found) and found.entities != found.before

    async def refresh_stale(self) -> int:
        """Extract again entities by older rules or of another text; return the number of changed notes.

        A note that cannot be written is logged and left to the next sweep.
        """
        written = 0
        for note_id in list(self.stale()):
            try:
                written += await self.refresh(note_id)
            except LithosError as refusal:
                log.warning("entities not stored", note=note_id, reason=refusal.message)
        return written

    def stale(self) -> Iterator[str]:
        """Return ids of notes with entities by older rules, or of other bytes."""
        return (entry.note.id for entry in self._catalogue if self._is_stale(entry))

    def _is_stale(self, entry: Entry) -> bool:
        found = self._catalogue.entities.counting(entry.note)
        if self._patch is not None or found is None:
            return is_stale(entry.note)
        return found.extractor < MARKER or found.source != entry.digest

    async def look(self, note_id: str, *, force: bool = False) -> NoteEntities | None:
        """Extract the entities to store for a note, None when none are due; stores nothing.

        Entities that are as a machine has written them last are not curated, whatever their marker.
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
        force = force or is_machine_made(note, made)  # a person may have edited the file in the meantime
        entities = await self._extract(note, loaded.document.content, source, force)
        if entities is None:
            return None
        before = note.entities if self._patch is not None else self._catalogue.entities.of(note)
        return NoteEntities(note.id, entry.path, note.version, before, entities, source, loaded.document)

    async def _extract(self, note: Note, content: str, source: str, force: bool) -> tuple[str, ...] | None:
        if self._patch is not None:
            if note.frontmatter_error is not None:
                return None  # nothing can be stored in it
            due = await self._blocking.run(partial(decide_extraction, note, content, force=force))
            if due is not None or self._catalogue.entities.counting(note) is None:
                return due
        found = self._catalogue.entities.counting(note)
        is_known = found is not None and (found.extractor, found.source) == (MARKER, source)
        if (is_known and self._patch is None) or not may_extract(note, force=force):
            return None
        return await self._blocking.run(partial(extract_entities, content))

    async def store(self, found: NoteEntities) -> bool:
        """Store the result of `look` unless the note has changed since; True when stored."""
        return await (self._keep(found) if self._patch is None else self._write(found, self._patch))

    async def _write(self, found: NoteEntities, patch: Patch) -> bool:
        kept = self._catalogue.entities.get(found.id)
        if self._ledger is not None and kept is not None:  # before the index takes the note in
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
        except Forbidden:  # a protected note is not written: entities stay in the database
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
            return False  # its own event queues it again, and a deletion drops its entities
        if self._index is not None and found.entities != found.before:
            self._index.promise(await self._index.accept(Upsert(entry, found.document, repair=True)))
        return True

    def _is_current(self, found: NoteEntities) -> bool:
        entry = self._catalogue.get(found.id)
        return entry is not None and entry.digest == found.source
