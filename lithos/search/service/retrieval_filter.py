"""Access control and filters of searches on behalf of a caller (docs/spec/memory.md §1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs
from attrs import field, frozen

from lithos.kernel.actors.threads import slices
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter
from lithos.notes.model.note import NoteWarning
from lithos.search.index.fulltext_schema import Filters
from lithos.text.words.list_filters import has_tags

#: The reason of a warning whose cause is not named.
_VEILED: Final = "because of a note that you may not see"


@frozen(kw_only=True)
class RetrievalFilter:
    """Access control and filters of one retrieval; `namespaces` None means any."""

    namespaces: frozenset[str] | None = None
    task_id: str | None = None
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    #: Only these notes; None: any.
    among: frozenset[str] | None = None
    #: For callers that name quarantined notes without showing them.
    shows_quarantined: bool = False
    #: There are no filters of tags and paths, which spares most checks of most notes.
    _is_open: bool = field(init=False)
    #: Every note passes that is active and shared.
    _is_wide: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_is_open", self.filters == Filters())
        object.__setattr__(self, "_is_wide", not self.is_narrow)

    @property
    def is_narrow(self) -> bool:
        """True when the gate is selective: most notes probably do not pass."""
        return self.namespaces is not None or self.among is not None or not self._is_open

    def shows(self, entry: Entry) -> bool:
        """Access control: true when the caller may see the note, whatever its tags and path."""
        if entry.note.status == "quarantined" and not self.shows_quarantined:
            return False
        if self.among is not None and entry.note.id not in self.among:
            return False
        return self._may_know(entry)

    def _may_know(self, entry: Entry) -> bool:
        """The same, but for the trust in the note."""
        note = entry.note
        if self.namespaces is not None and entry.namespace not in self.namespaces:
            return False
        if note.access_scope == "task":
            return self.task_id is not None and self.task_id == note.source
        if note.access_scope == "agent_private":
            return self.agent_id is not None and self.agent_id == note.author
        return True

    def veil(self, warning: NoteWarning, cause: Entry | None) -> NoteWarning | None:
        """Return the warning as this caller may see it; a `cause` that it may not see is not named.

        A contradiction with such a note is left out entirely, as in `contradictions`.
        """
        if cause is None or self._may_know(cause):
            return warning
        if warning.kind == "contradicted":
            return None
        return attrs.evolve(warning, id="", title="", reason=_VEILED)

    def passes(self, entry: Entry) -> bool:
        """True when the caller may see the note and it matches the filters."""
        note = entry.note
        if self._is_wide and note.status == "active" and note.access_scope == "shared":
            return True
        return self.shows(entry) and (self._is_open or self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        wanted = self.filters
        return has_tags(entry.note.all_tags, wanted.tags) and (
            wanted.path_prefix is None or entry.path.startswith(wanted.path_prefix)
        )

    async def admit(self, catalogue: Catalogue) -> list[Entry]:
        """All notes that pass, in the order of first indexing."""
        admitted: list[Entry] = []
        if self.among is not None:
            async for each in slices(_entries(catalogue, self.among)):
                admitted += filter(self.passes, each)
            return admitted
        wanted = FacetFilter(
            tags=self.filters.tags, path_prefix=self.filters.path_prefix, namespaces=self.namespaces
        )
        async for some in slices(catalogue.page(wanted).serials):
            admitted += filter(self.passes, catalogue.at_serials(some))
        return admitted


def _entries(catalogue: Catalogue, ids: Collection[str]) -> list[Entry]:
    found = (catalogue.get(note_id) for note_id in ids)
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.serial)
