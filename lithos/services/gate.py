"""Which notes a retrieval may show (memory spec, section 1: the gate)."""

from __future__ import annotations

from attrs import field, frozen

from lithos.actors.catalogue import Catalogue, Entry
from lithos.core.matching import has_all
from lithos.services.slices import slices
from lithos.stores.fulltext import Filters


@frozen(kw_only=True)
class Gate:
    """The rules of one call; `namespaces` None means any."""

    namespaces: frozenset[str] | None = None
    task_id: str | None = None
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    #: Nothing is asked of tags and paths, which spares most looks at most notes.
    _is_open: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_is_open", self.filters == Filters())

    @property
    def is_narrow(self) -> bool:
        """True when most notes probably do not pass."""
        return self.namespaces is not None or not self._is_open

    def shows(self, entry: Entry) -> bool:
        """True when the caller may see the note, whatever its tags and path."""
        note = entry.note
        if note.status == "quarantined":
            return False
        if self.namespaces is not None and entry.namespace not in self.namespaces:
            return False
        if note.access_scope == "task":
            return self.task_id is not None and self.task_id == note.source
        if note.access_scope == "agent_private":
            return self.agent_id is not None and self.agent_id == note.author
        return True

    def passes(self, entry: Entry) -> bool:
        """True when the note may also be a result."""
        return self.shows(entry) and (self._is_open or self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        wanted = self.filters
        return has_all(entry.note.tags, wanted.tags) and (
            wanted.path_prefix is None or entry.path.startswith(wanted.path_prefix)
        )

    async def admit(self, catalogue: Catalogue) -> list[Entry]:
        """All notes that pass, in the order of first indexing."""
        admitted: list[Entry] = []
        async for some in slices(list(catalogue)):
            admitted += filter(self.passes, some)
        return admitted
