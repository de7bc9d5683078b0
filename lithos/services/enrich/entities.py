"""Entity extraction from notes, stored in the notes' frontmatter (memory spec, section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Protocol, TypeAlias

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.writing.messages import PatchNote, WriteOutcome
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.errors import LithosError, NoteNotFound, VersionConflict
from lithos.core.events import ENRICH_AGENT, ENRICHMENT
from lithos.core.learning.memory import RecordEntities
from lithos.core.notes.model import Note
from lithos.core.text.entities import (
    MARKER,
    decide_extraction,
    digest_entities,
    is_stale,
    may_extract,
)
from lithos.services.notes.texts import NoteTexts
from lithos.telemetry import get_logger

log = get_logger("lithos.entities")

#: Changes a note's frontmatter; raises what the writer refuses.
Patch: TypeAlias = Callable[[PatchNote], Awaitable[WriteOutcome]]


class Ledger(Protocol):
    """The part of `Learning` that stores the digests of extracted entities."""

    async def submit(self, command: RecordEntities) -> None: ...

    async def entities_digest(self, node_id: str) -> str | None: ...


@frozen
class Extraction:
    """New entities for one version of a note; `before` are the stored ones."""

    id: str
    path: str
    version: int
    before: tuple[str, ...]
    entities: tuple[str, ...]


class EntityExtraction:
    """Determines which notes need extraction, extracts, and patches the frontmatter, never the body."""

    def __init__(
        self,
        catalogue: Catalogue,
        texts: NoteTexts,
        patch: Patch,
        blocking: Blocking,
        limit: int,
        ledger: Ledger | None = None,
    ) -> None:
        """`limit`: most entities of a note, 0 is all. A long note takes `blocking` a second or two.

        Only a dry run has no `ledger`.
        """
        self._catalogue = catalogue
        self._texts = texts
        self._patch = patch
        self._blocking = blocking
        self._limit = limit
        self._ledger = ledger

    async def refresh(self, note_id: str, *, force: bool = False) -> bool:
        """Store new entities where the table of the specification asks for it; True when that was done.

        Those of the current marker are extracted again too while nobody else has changed them: the text may
        be another. Of a note that changes meanwhile nothing is written: its own event brings it back.
        `force` is for curated entities too. Raises `StorageFailed`.
        """
        made = None if self._ledger is None else await self._ledger.entities_digest(note_id)
        found = await self.look(note_id, force=force, made=made)
        return found is not None and await self.store(found)

    async def refresh_stale(self) -> int:
        """Re-extract entities made by an older version of the rules; returns how many notes were written.

        A note that cannot be written is logged and left to the next sweep.
        """
        written = 0
        for note_id in list(self.stale()):
            try:
                written += await self.refresh(note_id)
            except LithosError as refusal:
                log.warning("entities not written", note=note_id, reason=refusal.message)
        return written

    def stale(self) -> Iterator[str]:
        """Ids of the notes whose entities an older version of the rules found."""
        return (entry.note.id for entry in self._catalogue if is_stale(entry.note))

    async def look(self, note_id: str, *, force: bool = False, made: str | None = None) -> Extraction | None:
        """Extract the entities to store for a note, None when none are due; writes nothing.

        Entities with the digest `made` are not curated, whatever their marker.
        """
        entry = self._catalogue.get(note_id)
        if entry is None or not may_extract(entry.note, force=force or _is(entry.note, made)):
            return None
        return await self._look(entry, force, made)

    async def _look(self, entry: Entry, force: bool, made: str | None) -> Extraction | None:
        loaded = await self._texts.load(entry)
        if loaded is None or loaded.document.note.id != entry.note.id:
            return None
        note, content = loaded.document.note, loaded.document.content
        if note.frontmatter_error is not None:
            return None  # nothing can be stored in it
        force = force or _is(note, made)  # a person may have edited the file since
        decide = partial(decide_extraction, note, content, self._limit, force=force)
        entities = await self._blocking.run(decide)
        if entities is None:
            return None
        return Extraction(note.id, entry.path, note.version, note.entities, entities)

    async def store(self, found: Extraction) -> bool:
        """Write the result of `look` unless the note has changed since; True when written."""
        request = PatchNote(
            id=found.id,
            agent=ENRICH_AGENT,
            entities=found.entities,
            entities_extractor=MARKER,
            expected_version=found.version,
            source=ENRICHMENT,
        )
        try:
            await self._patch(request)
        except (NoteNotFound, VersionConflict):
            return False
        if self._ledger is not None:
            await self._ledger.submit(RecordEntities(found.id, digest_entities(found.entities)))
        return True


def _is(note: Note, made: str | None) -> bool:
    return note.entities_extractor is not None and made == digest_entities(note.entities)
