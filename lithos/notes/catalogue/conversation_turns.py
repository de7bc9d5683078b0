"""Conversation turns: short notes whose titles contain a date and time.

The turns of a folder are sorted by time.

The answer to a question is often in an adjacent turn: in the reply to the matching turn, or in the question
before that turn. Specified in docs/spec/search.md §5.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from typing import Final, TypeAlias

from lithos.notes.files.manifest import Entry
from lithos.notes.model.paths import folder_of

#: Maximum size in bytes of a file that counts as a turn.
LONGEST: Final = 2_048
#: Maximum number of minutes between adjacent turns. Adjacent turns must also have the same date.
APART: Final = 30

_SAID: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T,]{1,2}([01]\d|2[0-3]):([0-5]\d)")
_NUMBER: Final = re.compile(r"\d{1,9}")

#: Date, minute of the day, path with zero-padded numbers, and serial number. Turns are sorted by this tuple.
_Place: TypeAlias = tuple[str, int, str, int]


class Turns:
    """The turns of a catalogue by folder, sorted by time. Turns with equal times are sorted by path."""

    def __init__(self) -> None:
        self._placed: dict[int, tuple[str, _Place]] = {}
        self._folders: dict[str, list[_Place]] = {}

    def __len__(self) -> int:
        return len(self._placed)

    def __contains__(self, serial: object) -> bool:
        return serial in self._placed

    def enter(self, entry: Entry) -> None:
        """Add a note if it is a turn."""
        said = _SAID.search(entry.note.title) if entry.state.size <= LONGEST else None
        if said is None:
            return
        path = _NUMBER.sub(lambda number: number[0].zfill(9), entry.path)
        place = said[1], 60 * int(said[2]) + int(said[3]), path, entry.serial
        folder = folder_of(entry.path)
        self._placed[entry.serial] = folder, place
        insort(self._folders.setdefault(folder, []), place)

    def leave(self, serial: int) -> None:
        """Remove a note if it is a turn."""
        known = self._placed.pop(serial, None)
        if known is None:
            return
        folder, place = known
        turns = self._folders[folder]
        del turns[bisect_left(turns, place)]
        if not turns:
            del self._folders[folder]

    def beside(self, serial: int) -> list[int]:
        """Return the serial numbers of the turns directly before and after a turn."""
        folder, place = self._placed[serial]
        turns = self._folders[folder]
        at = bisect_left(turns, place)
        near = [turns[i] for i in (at - 1, at + 1) if 0 <= i < len(turns)]
        return [one[3] for one in near if one[0] == place[0] and abs(one[1] - place[1]) <= APART]
