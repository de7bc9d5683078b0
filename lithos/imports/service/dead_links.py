"""Links of imported notes without a target, reported once all notes are imported (docs/spec/integration.md
§1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from attrs import define, field, frozen

from lithos.imports.model.importing import Record
from lithos.notes.links.links import LinkTable, scan_targets

#: Links of one import that are looked at; those of further notes are not.
MOST_LINKS: Final = 1_000_000
#: Links that are reported in one line.
PAGE: Final = 500
#: Characters of a link.
_SHOWN: Final = 200

#: The id of the note that a link means, None without one.
Resolve = Callable[[str], str | None]


@frozen
class DeadLink:
    """A link: its place in the source, and its text, in brackets or as written in the source."""

    position: str
    target: str
    written: str


@define(eq=False)
class LinksOfImport:
    """The links of the notes of one import, and by what names these are linked in a plan."""

    _links: dict[str, tuple[str, ...]] = field(factory=dict)  # bounded: at most MOST_LINKS
    _lost: dict[str, tuple[str, ...]] = field(factory=dict)
    _count: int = 0
    _planned: LinkTable = field(factory=LinkTable)
    #: Those that lead nowhere, once all have been looked at.
    dead: list[DeadLink] | None = None

    def add(self, record: Record, note_id: str, path: str, *, is_plan: bool) -> None:
        """Note the links of a record; in a plan also the names of the note that it would be."""
        targets = tuple(dict.fromkeys(scan_targets(record.content, path)))
        if is_plan:
            self._planned.add(note_id, path, record.title, record.aliases)
        if self._count + len(targets) > MOST_LINKS:
            return
        self._count += len(targets)
        if targets:
            self._links[record.position] = targets
        if record.dead:
            self._lost[record.position] = record.dead

    def find(self, resolve: Resolve) -> Iterator[DeadLink | None]:
        """Look at each link, in the order of the source: None for one that leads to a note."""
        known: dict[str, bool] = {}
        for position in dict.fromkeys(chain(self._links, self._lost)):
            for target in self._links.get(position, ()):
                if target not in known:
                    known[target] = bool(resolve(target) or self._planned.resolve(target))
                yield None if known[target] else DeadLink(position, target, f"[[{target[:_SHOWN]}]]")
            for written in self._lost.get(position, ()):
                yield DeadLink(position, "", written[:_SHOWN])
