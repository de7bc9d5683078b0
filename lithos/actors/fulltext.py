"""The full-text index as its indexer sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lithos.actors.catalogue import Entry
from lithos.actors.indexer import Upsert
from lithos.core.chunk import headings_of
from lithos.stores.fulltext import FulltextEntry, FulltextIndex


class FulltextPort:
    """Turns notes into index entries; the methods block."""

    def __init__(self, index: FulltextIndex) -> None:
        self.index = index

    def is_ready(self) -> bool:
        return True

    def expected(self, entry: Entry) -> int:
        return entry.stamp

    def stamps(self) -> Mapping[int, int]:
        return self.index.stamps()

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        self.index.apply([_index_entry(upsert) for upsert in upserts], removals)


def _index_entry(upsert: Upsert) -> FulltextEntry:
    entry, note = upsert.entry, upsert.document.note
    return FulltextEntry(
        serial=entry.serial,
        stamp=entry.stamp,
        id=note.id,
        title=note.title,
        headings=headings_of(upsert.document.content),
        body=upsert.document.content,
        entities=note.entities,
        tags=note.tags,
        author=note.author,
        path=entry.path,
        namespace=entry.namespace,
        updated_at=note.updated_at,
    )
