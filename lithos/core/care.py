"""What in the notes wants care: kinds, rows, and the rules that need only values (docs/spec/copies.md §5).

Nothing here changes a note: a row says why it is there and what a person could do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from heapq import nsmallest
from typing import Final

from attrs import define, field, frozen

from lithos.core.text.analysis import fold

DUPLICATES, EXPIRED, CONTRADICTED, SUSPECT = "duplicates", "expired", "contradicted", "suspect"
DEAD_LINKS, UNLINKED, UNUSED, STUBS = "dead_links", "unlinked", "unused", "stubs"
COPIES, MARKERS, BROKEN = "conflict_copies", "conflict_markers", "broken"
#: The groups, those first that are most worth doing: what each is called, and what one could do.
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    BROKEN: ("Broken frontmatter", "Correct the lines between the --- marks; its keys are not read."),
    COPIES: ("Conflict copies", "Look at each on the page Copies, or with lithos conflicts."),
    MARKERS: ("Conflicts of git", "Keep one of both sides, or both, and take the marker lines out."),
    CONTRADICTED: ("Contradictions", "Decide which note is right: lithos_conflict_resolve."),
    SUSPECT: ("Rest on notes in doubt", "Verify them again, or base them on something else."),
    EXPIRED: ("Expired", "Write them again with a later end, or archive them."),
    DEAD_LINKS: ("Links that lead nowhere", "Correct the target, or write the note that is meant."),
    DUPLICATES: ("Near duplicates", "Merge what they say into one; have it supersede the others."),
    STUBS: ("Stubs", "Write what is missing, or delete the note."),
    UNLINKED: ("Without any link", "Link them from where somebody would look."),
    UNUSED: ("Not used", "Archive what nobody needs."),
}  # fmt: skip
#: What is answered while a look goes on.
LOOKING: Final = "looking"
#: Rows of a group that are told.
MOST_ROWS: Final = 200
#: Words of a text below which it is a stub.
STUB_WORDS: Final = 15
#: How alike a link's target and a name must be (`difflib` ratio), and how many names are compared with it.
LIKELY, COMPARED = 0.72, 60


@frozen
class Named:
    """A note that a row names; `id` is None of a file that is not served."""

    id: str | None
    title: str
    path: str


@frozen(kw_only=True)
class CareRow:
    """One thing to look at: the notes it is about, and why. `link` and `likely` belong to dead links."""

    notes: tuple[Named, ...]
    why: str
    link: str | None = None
    likely: Named | None = None


@frozen(kw_only=True)
class CareReport:
    """What one look found: the first rows of each group, and how many there are."""

    at: datetime
    notes: int
    totals: Mapping[str, int]
    rows: Mapping[str, Sequence[CareRow]]
    #: Why something could not be looked at.
    troubles: tuple[str, ...] = ()


@define
class Found:
    """Collects the rows of a look, of each group at most so many."""

    _most: int = MOST_ROWS
    _totals: dict[str, int] = field(factory=lambda: defaultdict(int), init=False)
    _rows: dict[str, list[CareRow]] = field(factory=lambda: defaultdict(list), init=False)

    def add(self, group: str, row: CareRow) -> None:
        """Count a row, and keep it if there is room."""
        self._totals[group] += 1
        if len(self._rows[group]) < self._most:
            self._rows[group].append(row)

    def count(self, group: str, more: int) -> None:
        """Count rows that are not kept."""
        if more:
            self._totals[group] += more

    def report(
        self, at: datetime, notes: int, troubles: Sequence[str], order: Iterable[str] = GROUPS
    ) -> CareReport:
        """All of it, groups in their order."""
        groups = [group for group in order if self._totals.get(group)]
        return CareReport(
            at=at,
            notes=notes,
            totals={group: self._totals[group] for group in groups},
            rows={group: tuple(self._rows[group]) for group in groups},
            troubles=tuple(troubles),
        )


@define
class Clusters:
    """Groups of things joined by pairs (union-find); what is joined to anything of a group belongs to it."""

    _above: dict[str, str] = field(factory=dict, init=False)

    def join(self, one: str, other: str) -> None:
        """Have two in one group."""
        first, second = self._top(one), self._top(other)
        if first != second:
            self._above[max(first, second)] = min(first, second)

    def groups(self) -> list[tuple[str, ...]]:
        """The groups of two and more, each in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for each in sorted(self._above):
            found[self._top(each)].append(each)
        return [(top, *(one for one in rest if one != top)) for top, rest in sorted(found.items())]

    def _top(self, each: str) -> str:
        at = each
        while (above := self._above.get(at, at)) != at:
            at = above
        while (above := self._above.get(each, each)) != each:
            self._above[each], each = at, above
        return at


_WORD: Final = re.compile(r"[^\W_]+")


def words_of(name: str) -> list[str]:
    """The words of a name, folded."""
    return _WORD.findall(fold(name))


@define
class LikelyNotes:
    """Finds the note that a link probably means, by names that are spelled much like its target."""

    _names: list[tuple[str, Named]] = field(factory=list, init=False)
    _places: dict[str, list[int]] = field(factory=lambda: defaultdict(list), init=False)

    def add(self, note: Named, names: Iterable[str]) -> None:
        """Have a note known by its names."""
        for name in dict.fromkeys(_spelling(each) for each in names):
            if name:
                for key in _keys(name):
                    self._places[key].append(len(self._names))
                self._names.append((name, note))

    def find(self, target: str) -> Named | None:
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
#: A key that more names have tells nothing.
_COMMON: Final = 2_000


def _spelling(name: str) -> str:
    return " ".join(words_of(name[:LONGEST_NAME]))


def _keys(name: str) -> set[str]:
    """What similar names share: their words, and the runs of three letters."""
    return {*name.split(), *(name[at : at + 3] for at in range(len(name) - 2))}
