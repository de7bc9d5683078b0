"""The note that a link which leads nowhere probably means: names that are spelled much like its target."""

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

#: How alike a link's target and a name must be (`difflib` ratio), and the number of names compared with it.
LIKELY, COMPARED = 0.72, 60
_WORD: Final = re.compile(r"[^\W_]+")


def words_of(name: str) -> list[str]:
    """The words of a name, folded."""
    return _WORD.findall(fold(name))


@define
class LikelyNotes:
    """Finds the note that a link probably means, by names that are spelled much like its target."""

    _names: list[tuple[str, NamedNote]] = field(factory=list, init=False)
    _places: dict[str, list[int]] = field(factory=lambda: defaultdict(list), init=False)

    def add(self, note: NamedNote, names: Iterable[str]) -> None:
        """Have a note known by its names."""
        for name in dict.fromkeys(_spelling(each) for each in names):
            if name:
                for key in _keys(name):
                    self._places[key].append(len(self._names))
                self._names.append((name, note))

    def find(self, target: str) -> NamedNote | None:
        """The note whose name is most like the target; None where none is like it."""
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


#: Characters of a name that are compared.
LONGEST_NAME: Final = 120
#: A key that many names share says nothing about a target.
_COMMON: Final = 2_000


def _spelling(name: str) -> str:
    return " ".join(words_of(name[:LONGEST_NAME]))


def _keys(name: str) -> set[str]:
    """The keys that similar names share: their words, and their runs of three letters."""
    return {*name.split(), *(name[at : at + 3] for at in range(len(name) - 2))}
