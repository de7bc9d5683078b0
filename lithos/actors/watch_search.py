"""Looking for notes whose files seem to be gone, before anybody is told so. Everything here blocks.

A file that moves while a tree is listed, from a folder not yet visited to one that was, is in neither.
So a note is gone only when it is nowhere in a tree that stands still.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import define, field, frozen

from lithos.actors.examination import LARGEST_FILE
from lithos.core.frontmatter import UnreadableNote, parse_document
from lithos.core.times import from_nanoseconds
from lithos.stores.files import FileState, NoteFiles, OutsideKnowledge, state_of

#: Two looks at a tree that stands still are alike; in one that never does the last look counts.
LOOKS = 6
#: Of an id, however its file spells it: the last group of a UUID.
_TAIL = 12


@frozen
class _Sight:
    """One file as one look shows it; another look that shows the same need not read it again."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


@define
class _Search:
    files: NoteFiles
    wanted: Mapping[str, FileState]
    known: Mapping[str, FileState]
    read: dict[_Sight, str | None] = field(factory=dict)
    found: dict[str, str] = field(factory=dict)

    def look(self) -> frozenset[_Sight]:
        """Read what may be a wanted note as soon as it is met; what was met."""
        states = set(self.wanted.values())
        met: set[_Sight] = set()
        for path, status in self.files.walk():
            state = state_of(status)
            if self.known.get(path) == state and state not in states:
                continue
            sight = _Sight(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            met.add(sight)
            if sight not in self.read:
                self.read[sight] = self._recognise(path, status)
            note_id = self.read[sight]
            if note_id is not None:
                self.found[note_id] = path
        return frozenset(met)

    def _recognise(self, path: str, status: os.stat_result) -> str | None:
        """The wanted note in this file."""
        if status.st_size > LARGEST_FILE:
            return None
        try:
            data = self.files.read(path).data
            lowered = data.lower()
            if not any(note_id[-_TAIL:].lower().encode() in lowered for note_id in self.wanted):
                return None
            note_id = parse_document(data, path, from_nanoseconds(status.st_mtime_ns)).note.id
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None
        return note_id if note_id in self.wanted else None


def find_moved(
    files: NoteFiles, wanted: Mapping[str, FileState], known: Mapping[str, FileState]
) -> dict[str, str]:
    """Where notes lie that are not at their paths, by id; `wanted` has the last state of their files.

    `known` are the states in which files were looked at before: those are not read again.
    """
    search = _Search(files, wanted, known)
    before: frozenset[_Sight] | None = None
    for _ in range(LOOKS):
        met = search.look()
        if met == before or search.found.keys() == wanted.keys():
            break
        before = met
    return search.found
