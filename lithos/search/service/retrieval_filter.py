"""Access control and filters for the searches of a caller (docs/spec/memory.md §1)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs
from attrs import field, frozen

from lithos.kernel.actors.threads import slices
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter
from lithos.notes.model.note import NoteWarning
from lithos.notes.model.note_projects import NoteProjects
from lithos.search.index.fulltext_schema import Filters
from lithos.text.words.list_filters import has_tags

#: Reason shown in a warning if the caller may not see the note that caused the warning.
_VEILED: Final = "because of a note that you may not see"


@frozen(kw_only=True)
class RetrievalFilter:
    """Access control and filters of one retrieval. If `namespaces` is None, all namespaces are allowed.

    A filter by project needs the `projects` of the catalogue.
    """

    namespaces: frozenset[str] | None = None
    task_id: str | None = None
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    #: Ids of the allowed notes. If None, all notes are allowed.
    among: frozenset[str] | None = None
    projects: NoteProjects | None = field(default=None, eq=False)
    #: True for callers that list quarantined notes without showing their text.
    shows_quarantined: bool = False
    #: True if there are no tag, path or project filters. Most of the checks are then skipped.
    _is_open: bool = field(init=False)
    #: True if every note passes that is active and shared.
    _is_wide: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.filters.project is not None and self.projects is None:
            raise ValueError("A filter by project needs the projects of the notes.")
        object.__setattr__(self, "_is_open", self.filters == Filters())
        object.__setattr__(self, "_is_wide", not self.is_narrow)

    @property
    def is_narrow(self) -> bool:
        """Return whether the filter is selective, so that it probably excludes most notes."""
        return self.namespaces is not None or self.among is not None or not self._is_open

    def shows(self, entry: Entry) -> bool:
        """Return whether the caller may see the note, regardless of tags, path and project."""
        if entry.note.status == "quarantined" and not self.shows_quarantined:
            return False
        if self.among is not None and entry.note.id not in self.among:
            return False
        return self._may_know(entry)

    def _may_know(self, entry: Entry) -> bool:
        """Return whether the caller may know of the note, even if it is quarantined."""
        note = entry.note
        if self.namespaces is not None and entry.namespace not in self.namespaces:
            return False
        if note.access_scope == "task":
            return self.task_id is not None and self.task_id == note.source
        if note.access_scope == "agent_private":
            return self.agent_id is not None and self.agent_id == note.author
        return True

    def veil(self, warning: NoteWarning, cause: Entry | None) -> NoteWarning | None:
        """Return the warning in the form that the caller may see. A hidden `cause` is not named.

        If the warning reports a contradiction with a hidden note, return None, because `contradictions`
        leaves out such notes.
        """
        if cause is None or self._may_know(cause):
            return warning
        if warning.kind == "contradicted":
            return None
        return attrs.evolve(warning, id="", title="", reason=_VEILED)

    def passes(self, entry: Entry) -> bool:
        """Return whether the caller may see the note and the note matches the filters."""
        note = entry.note
        if self._is_wide and note.status == "active" and note.access_scope == "shared":
            return True
        return self.shows(entry) and (self._is_open or self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        wanted = self.filters
        return (
            has_tags(entry.note.all_tags, wanted.tags)
            and (wanted.path_prefix is None or entry.path.startswith(wanted.path_prefix))
            and (self.projects is None or self.projects.passes(entry, wanted.project))
        )

    async def admit(self, catalogue: Catalogue) -> list[Entry]:
        """Return all notes that pass, in the order of first indexing."""
        admitted: list[Entry] = []
        if self.among is not None:
            async for each in slices(_entries(catalogue, self.among)):
                admitted += filter(self.passes, each)
            return admitted
        wanted = FacetFilter(
            tags=self.filters.tags,
            path_prefix=self.filters.path_prefix,
            namespaces=self.namespaces,
            project=self.filters.project,
        )
        async for some in slices(catalogue.page(wanted).serials):
            admitted += filter(self.passes, catalogue.at_serials(some))
        return admitted


def _entries(catalogue: Catalogue, ids: Collection[str]) -> list[Entry]:
    found = (catalogue.get(note_id) for note_id in ids)
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.serial)
