"""The entities of notes as the machine sees them, kept in the notes' frontmatter (memory spec, section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue, Entry
from lithos.actors.requests import PatchNote, WriteOutcome
from lithos.core.entities import MARKER, decide_extraction, is_stale, may_extract
from lithos.core.errors import LithosError, NoteNotFound, VersionConflict
from lithos.core.events import ENRICH_AGENT, ENRICHMENT
from lithos.services.texts import NoteTexts
from lithos.telemetry import get_logger

log = get_logger("lithos.entities")

#: Changes a note's frontmatter; raises what the writer refuses.
Patch: TypeAlias = Callable[[PatchNote], Awaitable[WriteOutcome]]


@frozen
class Extraction:
    """New entities for one version of a note; `before` are the stored ones."""

    id: str
    path: str
    version: int
    before: tuple[str, ...]
    entities: tuple[str, ...]


class EntityExtraction:
    """Finds out which notes need new entities, and writes them. Bodies are never touched."""

    def __init__(
        self, catalogue: Catalogue, texts: NoteTexts, patch: Patch, blocking: Blocking, limit: int
    ) -> None:
        """`limit`: most entities of a note, 0 is all. A long note takes `blocking` a second or two."""
        self._catalogue = catalogue
        self._texts = texts
        self._patch = patch
        self._blocking = blocking
        self._limit = limit

    async def refresh(self, note_id: str, *, force: bool = False) -> bool:
        """Store new entities where the table of the specification asks for it; True when that was done.

        Of a note that changes meanwhile nothing is written: its own event brings it back. `force` is for
        curated entities too. Raises `StorageFailed`.
        """
        found = await self.look(note_id, force=force)
        return found is not None and await self.store(found)

    async def refresh_stale(self) -> int:
        """Extract again what an older version of the rules found; how many notes were written.

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

    async def look(self, note_id: str, *, force: bool = False) -> Extraction | None:
        """What should be stored for a note, None for nothing; writes nothing."""
        entry = self._catalogue.get(note_id)
        if entry is None or not may_extract(entry.note, force=force):
            return None
        return await self._look(entry, force=force)

    async def _look(self, entry: Entry, *, force: bool) -> Extraction | None:
        loaded = await self._texts.load(entry)
        if loaded is None or loaded.document.note.id != entry.note.id:
            return None
        note, content = loaded.document.note, loaded.document.content
        decide = partial(decide_extraction, note, content, self._limit, force=force)
        entities = await self._blocking.run(decide)
        if entities is None:
            return None
        return Extraction(note.id, entry.path, note.version, note.entities, entities)

    async def store(self, found: Extraction) -> bool:
        """Write what `look` found, unless the note has changed since; True when that was done."""
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
        return True
