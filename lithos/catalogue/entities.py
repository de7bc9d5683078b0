"""What extraction found in notes, kept outside their files (docs/spec/memory.md §4).

`stats.db` has it. The memory actor, which owns that, enters all of it when it starts, then each change after
its commit. What a note's own file says comes first, unless an earlier machine wrote it there.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import attrs

from lithos.core.notes.model import Note
from lithos.core.text.entities import Found

_JOINT: Final = "\x1f"


class KeptEntities:
    """What was found, by note id; deleted notes may still have theirs for a while."""

    def __init__(self) -> None:
        self._found: dict[str, Found] = {}

    def load(self, found: Mapping[str, Found]) -> None:
        """Have all that is stored, and nothing else."""
        self._found = dict(found)

    def put(self, note_id: str, found: Found | None) -> None:
        """Enter what was found in a note; None: nothing is kept of it."""
        if found is None:
            self._found.pop(note_id, None)
        else:
            self._found[note_id] = found

    def get(self, note_id: str) -> Found | None:
        """What was found in a note, whether it counts or not."""
        return self._found.get(note_id)

    def counting(self, note: Note) -> Found | None:
        """What was found in a note, where that counts and not what its file says."""
        found = self._found.get(note.id)
        return found if found is not None and found.counts_for(note) else None

    def of(self, note: Note) -> tuple[str, ...]:
        """The entities of a note, as filters and indexes know them."""
        found = self.counting(note)
        return note.entities if found is None else found.entities

    def shown(self, note: Note) -> Note:
        """The note as readers see it, with the entities that count."""
        found = self.counting(note)
        if found is None:
            return note
        marker = found.extractor if found.entities else note.entities_extractor
        return attrs.evolve(note, entities=found.entities, entities_extractor=marker)

    def stamped(self, stamp: int, note: Note) -> tuple[int, tuple[str, ...]]:
        """What an index holds of a note: its file's stamp, changed by what was found; and its entities."""
        found = self.counting(note)
        if found is None or found.entities == note.entities:
            return stamp, note.entities
        mixed = zlib.crc32(_JOINT.join(found.entities).encode("utf-8", "surrogatepass"))
        return stamp ^ mixed, found.entities
