"""Notes and their tags as MCP resources (docs/spec/mcp.md §4)."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import define

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.agents import READ, AuditRow
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import AmbiguousIdPrefix, InvalidInput
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.texts import NoteTexts
from lithos.server.mcp.resource_pages import (
    JSON,
    MARKDOWN,
    Content,
    ListedResource,
    ListPosition,
    UnknownResource,
    find_newest,
)
from lithos.server.tools.resource_uris import NOTE_PREFIX, ResourceAddress

_TAGS: Final = {
    "name": "tags",
    "title": "Tags",
    "description": "All tags with the number of notes for each.",
    "mimeType": JSON,
}


@define(eq=False)
class TagResources:
    """A single resource with all tags and the number of notes for each, sorted by name."""

    kind: ClassVar[str] = "tags"
    template: ClassVar[None] = None
    _opening: Opening
    _knowledge: Knowledge

    async def find(self, id: str) -> None:
        """Accept any id, because the resource always exists."""

    async def read(self, id: str, agent: str) -> Content:
        """Wait until all notes are loaded, then return the tags."""
        await self._opening.wait_known()
        return Content(JSON, {"tags": self._knowledge.tags(None)})

    async def newest(self, after: ListPosition | None, count: int) -> list[ListedResource]:
        """Return the single resource."""
        return [ListedResource(ResourceAddress("tags"), _TAGS)]


@define(eq=False)
class NoteResources:
    """The note files as resources, byte for byte."""

    kind: ClassVar[str] = "note"
    template: ClassVar[dict[str, str]] = {
        "uriTemplate": f"{NOTE_PREFIX}{{id}}",
        "name": "note",
        "title": "Note",
        "description": "The file of a note as stored: YAML frontmatter and Markdown.",
        "mimeType": MARKDOWN,
    }
    _catalogue: Catalogue
    _coordinator: Coordinator
    _clock: Clock
    _opening: Opening
    _texts: NoteTexts

    async def find(self, id: str) -> None:
        """Do nothing if the note exists. Raise `UnknownResource` if it does not."""
        await self._opening.wait_known()
        self._entry(id)

    async def read(self, id: str, agent: str) -> Content:
        """Return the file of a note, and record the access.

        Raise `UnknownResource` if the file cannot be read.
        """
        await self._opening.wait_known()
        entry = self._entry(id)
        data = await self._texts.load_bytes(entry)
        if data is None:
            raise UnknownResource(
                f"The file {entry.path} of this note is missing or cannot be read. Put it back or repair it, "
                "then retry."
            )
        self._coordinator.record_access([AuditRow(agent, entry.note.id, READ, self._clock())])
        return Content(MARKDOWN, data)

    async def newest(self, after: ListPosition | None, count: int) -> list[ListedResource]:
        """Return the notes older than `after`, newest first.

        Return an empty list until all notes are loaded.
        """
        known = list(self._catalogue) if self._opening.known.is_set() else []
        return [_listed(entry) for entry in await find_newest(known, _place_of, after, count)]

    def _entry(self, note_id: str) -> Entry:
        try:
            entry = self._catalogue.get(self._catalogue.identify(note_id))
        except (AmbiguousIdPrefix, InvalidInput) as several:
            raise UnknownResource(several.message) from several
        if entry is None:
            raise UnknownResource(
                f"Unknown note id {note_id[:100]!r}. Find the note with lithos_search or lithos_list."
            )
        return entry


def _place_of(entry: Entry) -> ListPosition:
    return entry.note.created_at, entry.note.id


def _listed(entry: Entry) -> ListedResource:
    title = entry.note.title
    told = {"name": title, "title": title, "mimeType": MARKDOWN, "size": entry.state.size}
    return ListedResource(ResourceAddress("note", entry.note.id), told, _place_of(entry))
