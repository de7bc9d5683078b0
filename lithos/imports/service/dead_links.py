"""Dead links in imported notes.

Dead links are reported after all notes have been imported (docs/spec/integration.md §1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from attrs import define, field, frozen

from lithos.imports.model.importing import Record
from lithos.kernel.values.graphemes import beginning
from lithos.notes.links.links import LinkTable, scan_targets

#: Maximum number of links to check in one import. Links in later notes are not checked.
MOST_LINKS: Final = 1_000_000
#: Maximum number of dead links per response.
PAGE: Final = 500
#: Maximum number of characters of a link in the report.
_SHOWN: Final = 200

#: Function that returns the id of the note to which a link refers, or None.
Resolve = Callable[[str], str | None]


@frozen
class DeadLink:
    """A dead link: its position in the source, and its text (as written, or in brackets)."""

    position: str
    target: str
    written: str


@define(eq=False)
class LinksOfImport:
    """The links of all notes in one import. In a dry run, also the names of the planned notes."""

    _links: dict[str, tuple[str, ...]] = field(factory=dict)  # bounded: at most MOST_LINKS
    _lost: dict[str, tuple[str, ...]] = field(factory=dict)
    _count: int = 0
    _planned: LinkTable = field(factory=LinkTable)
    #: The dead links. None until all links have been checked.
    dead: list[DeadLink] | None = None

    def add(self, record: Record, note_id: str, path: str, *, is_plan: bool) -> None:
        """Remember the links of a record.

        If `is_plan` is true, also remember the names of the planned note.
        """
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
        """Check all links in source order. Yield the dead link, or None if the link leads to a note."""
        known: dict[str, bool] = {}
        for position in dict.fromkeys(chain(self._links, self._lost)):
            for target in self._links.get(position, ()):
                if target not in known:
                    known[target] = bool(resolve(target) or self._planned.resolve(target))
                yield (
                    None if known[target] else DeadLink(position, target, f"[[{beginning(target, _SHOWN)}]]")
                )
            for written in self._lost.get(position, ()):
                yield DeadLink(position, "", beginning(written, _SHOWN))
