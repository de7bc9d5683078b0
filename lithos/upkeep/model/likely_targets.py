"""A search for the note that a broken link probably means. It compares names with a similar spelling."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nsmallest
from typing import Final

from attrs import define, field

from lithos.kernel.values.findings import NamedNote
from lithos.text.words.analysis import fold

#: Minimum similarity (`difflib` ratio) of a link target and a name, and maximum number of names to compare.
LIKELY, COMPARED = 0.72, 60
_WORD: Final = re.compile(r"[^\W_]+")


def words_of(name: str) -> list[str]:
    """Return the words of a name, folded to a common spelling."""
    return _WORD.findall(fold(name))


@define
class LikelyNotes:
    """A search for the note that a broken link probably means. It compares names with a similar spelling."""

    _names: list[tuple[str, NamedNote]] = field(factory=list, init=False)
    _places: dict[str, list[int]] = field(factory=lambda: defaultdict(list), init=False)

    def add(self, note: NamedNote, names: Iterable[str]) -> None:
        """Add a note with its names."""
        for name in dict.fromkeys(_spelling(each) for each in names):
            if name:
                for key in _keys(name):
                    self._places[key].append(len(self._names))
                self._names.append((name, note))

    def find(self, target: str) -> NamedNote | None:
        """Return the note with the name most similar to the target.

        Return None if no name is similar enough.
        """
        wanted = _spelling(target.rpartition("/")[2].removesuffix(".md").partition("#")[0])
        if not wanted:
            return None
        shared: dict[int, int] = defaultdict(int)
        for key in _keys(wanted):
            places = self._places.get(key, ())
            if len(places) <= _COMMON:
                for place in places:
                    shared[place] += 1
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(wanted)
        best, found = LIKELY, None
        for place in nsmallest(COMPARED, shared, key=lambda each: (-shared[each], each)):
            name, note = self._names[place]
            matcher.set_seq1(name)
            if matcher.real_quick_ratio() > best and (ratio := matcher.ratio()) > best:
                best, found = ratio, note
        return found


#: Maximum number of characters to compare of a name.
LONGEST_NAME: Final = 120
#: Maximum number of names that share a key. More common keys do not distinguish targets and are ignored.
_COMMON: Final = 2_000


def _spelling(name: str) -> str:
    return " ".join(words_of(name[:LONGEST_NAME]))


def _keys(name: str) -> set[str]:
    """Return the keys that find similar names: words and sequences of three characters."""
    return {*name.split(), *(name[at : at + 3] for at in range(len(name) - 2))}
