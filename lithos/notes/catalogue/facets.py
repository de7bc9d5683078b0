"""Note postings: the listing order, and the notes with each tag, author, folder and date.

A posting is an ascending array of places. A place is the position of a note in the listing, which has the
order of first indexing. So the intersection of two postings is already sorted. Reading a page needs neither a
sort nor the notes outside the page, and the total is the length of an array. Every change of a note updates
its postings. Memory: eight bytes per note and value.

Case-folded titles are joined in blocks of places. Each block is searched in one call. The first search builds
a block, and the first search after a change of one of its notes rebuilds the block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from lithos.kernel.values.projects import ProjectFilter
from lithos.kernel.values.times import to_microseconds
from lithos.notes.catalogue.relations import Multimap
from lithos.notes.model.note import Note
from lithos.notes.model.note_projects import DEFAULT_RULES, NoteProjects, ProjectRules
from lithos.notes.model.paths import DEFAULT_NAMESPACE, folder_of
from lithos.text.words.analysis import fold, normalise
from lithos.text.words.list_filters import tag_key, tag_keys

#: Number of places per block, as a power of two. Building a block takes 0.5 ms. Searching a block takes some
#: hundredths of a millisecond.
BLOCK_BITS: Final = 10
_BETWEEN: Final = "\0"


@frozen
class _Block:
    """The joined titles of a block of notes.

    `begins` are the start offsets of the titles and the end of the last title.
    """

    text: str
    begins: Sequence[int]
    serials: Sequence[int]

    def find(self, wanted: str) -> list[int]:
        """Return the serial numbers of the notes whose titles contain a non-empty text."""
        found: list[int] = []
        text, begins, length = self.text, self.begins, len(wanted)
        at = text.find(wanted)
        while at >= 0:
            number = bisect_right(begins, at) - 1
            following = begins[number + 1]
            if at + length < following:  # a match must not cross the end of a title
                found.append(self.serials[number])
                at = text.find(wanted, following)
            else:
                at = text.find(wanted, at + 1)
        return found


class Titles:
    """Cache of the title blocks that have been searched and have not changed since."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def leave(self, block: int) -> None:
        """Drop a block, because one of its notes was changed, added or removed."""
        self._blocks.pop(block, None)

    def find(
        self, block: int, wanted: str, serials: Callable[[], Sequence[int]], title_of: Callable[[int], str]
    ) -> Sequence[int]:
        """Return the serial numbers from `serials` whose titles contain the folded text `wanted`."""
        known = self._blocks.get(block)
        if known is None:
            whose = serials()
            titles = [fold(title_of(serial)) for serial in whose]
            begins = list(accumulate((len(title) + 1 for title in titles), initial=0))
            known = self._blocks[block] = _Block(_BETWEEN.join((*titles, "")), begins, whose)
        return known.find(wanted) if wanted else known.serials


Places: TypeAlias = "array[int]"
#: Bits by which a serial number is shifted to get the place of a note. The gaps are for notes that are
#: entered later than a note with a greater serial number.
_SHIFT: Final = 20
_BLOCK: Final = _SHIFT + BLOCK_BITS
_NONE: Final = np.empty(0, np.int64)
#: Maximum number of notes in one folder whose names are compared with a prefix. Comparing them takes less
#: than 1 ms.
MOST_COMPARED: Final = 2_000
#: Value under which the notes of all projects are found. No key of a project is empty.
_ANY_PROJECT: Final = ""


@frozen(kw_only=True)
class FacetFilter:
    """Filter conditions, all of which a note must meet.

    None and empty `tags` match every note. `since` is inclusive.
    """

    tags: tuple[str, ...] = ()
    author: str | None = None
    path_prefix: str | None = None
    since: datetime | None = None
    namespaces: Collection[str] | None = None
    project: ProjectFilter | None = None


@frozen
class FacetPage:
    """The serial numbers of one page of matching notes, in listing order, and the total number of matches.

    If `is_exact` is false, the page contains all candidates, and the caller must still compare their paths in
    steps.
    """

    serials: list[int]
    total: int
    is_exact: bool = True


@frozen
class _Values:
    """Notes by the values of one property. Values without notes are removed."""

    places: dict[str, Places] = field(factory=dict)

    def add(self, value: str, place: int) -> None:
        known = self.places.get(value)
        if known is None:
            self.places[value] = array("q", (place,))
        else:
            _insert(known, place)

    def discard(self, value: str, place: int) -> None:
        known = self.places[value]
        del known[bisect_left(known, place)]
        if not known:
            del self.places[value]

    def replace(self, old: str, new: str, place: int) -> None:
        if old != new:
            self.discard(old, place)
            self.add(new, place)

    def of(self, values: Iterable[str]) -> NDArray[np.int64]:
        """Return the notes that have at least one of these values."""
        found = [_view(known) for value in values if (known := self.places.get(value)) is not None]
        if len(found) < 2:
            return found[0] if found else _NONE
        return np.unique(np.concatenate(found))


@frozen
class _Tags(_Values):
    """The notes with each tag, by tag key.

    A parent tag also includes the tags below it (`a/b` is below `a`).
    """

    below: Multimap = field(factory=Multimap)

    def add(self, value: str, place: int) -> None:
        if value not in self.places:
            self.nest(value)
        _Values.add(self, value, place)

    def nest(self, tag: str) -> None:
        """Register a tag under each of its parent tags."""
        for parent in _above(tag):
            self.below.add(parent, tag)

    def discard(self, value: str, place: int) -> None:
        _Values.discard(self, value, place)
        if value not in self.places:
            for parent in _above(value):
                self.below.discard(parent, value)

    def wished(self, wish: str) -> NDArray[np.int64]:
        """Return the notes that match a tag filter, by the same rules as `has_tag`."""
        name = tag_key(wish)
        return self.of((name, *self.below.of(name)))


def _above(tag: str) -> list[str]:
    """Return the parent tags of a tag: `a/b` and `a` for `a/b/c`."""
    return [tag[:at] for at, character in enumerate(tag) if character == "/"] if "/" in tag else []


class Facets:
    """The postings of all notes in a catalogue. The catalogue must report each change of a note."""

    def __init__(self, rules: ProjectRules = DEFAULT_RULES) -> None:
        #: The places of all notes in listing order. `_updated` contains their `updated_at` in microseconds
        #: since 1970.
        self._places: Places = array("q")
        self._updated: Places = array("q")
        self._tags = _Tags()
        self._authors = _Values()
        self._folders = _Values()
        self._namespaces = _Values()
        self.projects = NoteProjects(rules)
        #: The notes with each index term of a project. Notes without a project are not in it.
        self._projects = _Values()
        #: The notes with an expiry date.
        self._expiring: Places = array("q")
        self._titles = Titles()
        #: Places of the notes that were entered later than a note with a greater serial number.
        #: `_late_serials` maps these places to serial numbers.
        self._late: dict[int, int] = {}
        self._late_serials: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def load(self, notes: Iterable[tuple[int, str, Note]]) -> None:
        """Enter many notes (serial number, path, note) in listing order.

        The result is the same as with `add`.

        `load` takes half the time of `add` if the serial numbers ascend and titles were not searched yet.
        """
        tags, authors = self._tags.places, self._authors.places
        folders, namespaces = self._folders.places, self._namespaces.places
        last = self._places[-1] if self._places else -1
        for serial, path, note in notes:
            place = serial << _SHIFT
            if place <= last or self._late or len(self._titles):
                self.add(serial, path, note)
                last = self._places[-1]
                continue
            last = place
            self._places.append(place)
            self._updated.append(to_microseconds(note.updated_at))
            for tag in tag_keys(note.all_tags):
                _append(tags, tag, place)
            _append(authors, note.author, place)
            folder = folder_of(path)
            _append(folders, folder, place)
            _append(namespaces, normalise("NFC", note.namespace or folder or DEFAULT_NAMESPACE), place)
            if note.expires_at is not None:
                self._expiring.append(place)
            self._file(serial, path, note)
        for tag in tags:
            self._tags.nest(tag)

    def add(self, serial: int, path: str, note: Note) -> None:
        """Enter a note at the end of the listing."""
        place, last = serial << _SHIFT, self._places[-1] if self._places else -1
        if place <= last:
            place = last + 1
            self._late[serial], self._late_serials[place] = place, serial
        self._places.append(place)
        self._updated.append(to_microseconds(note.updated_at))
        for tag in tag_keys(note.all_tags):
            self._tags.add(tag, place)
        self._authors.add(note.author, place)
        self._folders.add(folder_of(path), place)
        self._namespaces.add(_namespace(path, note), place)
        self._titles.leave(place >> _BLOCK)
        if note.expires_at is not None:
            self._expiring.append(place)
        self._file(serial, path, note)

    def replace(self, serial: int, old: tuple[str, Note], new: tuple[str, Note]) -> None:
        """Replace the path and values of a note. The note keeps its place in the listing."""
        place = self.place_of(serial)
        (old_path, old_note), (new_path, new_note) = old, new
        self._updated[bisect_left(self._places, place)] = to_microseconds(new_note.updated_at)
        before, after = tag_keys(old_note.all_tags), tag_keys(new_note.all_tags)
        for tag in before - after:
            self._tags.discard(tag, place)
        for tag in after - before:
            self._tags.add(tag, place)
        self._authors.replace(old_note.author, new_note.author, place)
        self._folders.replace(folder_of(old_path), folder_of(new_path), place)
        self._namespaces.replace(_namespace(old_path, old_note), _namespace(new_path, new_note), place)
        if old_note.title != new_note.title:
            self._titles.leave(place >> _BLOCK)
        if (old_note.expires_at is None) is not (new_note.expires_at is None):
            if new_note.expires_at is None:
                del self._expiring[bisect_left(self._expiring, place)]
            else:
                insort(self._expiring, place)
        self._file(serial, new_path, new_note)

    def discard(self, serial: int, path: str, note: Note) -> None:
        """Remove a note."""
        place = self.place_of(serial)
        self._file_under(serial, ())
        position = bisect_left(self._places, place)
        del self._places[position], self._updated[position]
        for tag in tag_keys(note.all_tags):
            self._tags.discard(tag, place)
        self._authors.discard(note.author, place)
        self._folders.discard(folder_of(path), place)
        self._namespaces.discard(_namespace(path, note), place)
        self._titles.leave(place >> _BLOCK)
        if note.expires_at is not None:
            del self._expiring[bisect_left(self._expiring, place)]
        if self._late.pop(serial, None) is not None:
            del self._late_serials[place]

    def _file(self, serial: int, path: str, note: Note) -> None:
        self._file_under(serial, self.projects.rules.keys(path, note.extra))

    def _file_under(self, serial: int, keys: tuple[str, ...]) -> None:
        """Set the projects of a note. The note must have a place."""
        before, after = self.projects.put(serial, keys)
        if before is after:
            return
        place = self.place_of(serial)
        for term in before - after:
            self._projects.discard(term, place)
        for term in after - before:
            self._projects.add(term, place)
        if bool(before) is not bool(after):
            (self._projects.add if after else self._projects.discard)(_ANY_PROJECT, place)

    @property
    def folders(self) -> Collection[str]:
        """Return the folders that directly contain notes."""
        return self._folders.places.keys()

    def page(
        self, wanted: FacetFilter, path_of: Callable[[int], str], offset: int = 0, limit: int | None = None
    ) -> FacetPage:
        """Return a page of the matching notes.

        The page starts at `offset`. `path_of` returns the path for a serial number.
        """
        prefix = wanted.path_prefix or ""
        folder = folder_of(prefix)
        is_whole = prefix in ("", f"{folder}/")  # whole folders match, so note names do not matter
        is_exact = is_whole or len(self._folders.places.get(folder, ())) <= MOST_COMPARED
        start, end = (offset, None if limit is None else offset + limit) if is_exact else (0, None)
        found = self._select(wanted, path_of if is_exact else None)
        if found is None:
            return FacetPage(self._serials(self._places[start:end].tolist()), len(self._places))
        return FacetPage(self._serials(found[start:end].tolist()), len(found), is_exact)

    def expiring(self) -> list[int]:
        """Return the serial numbers of the notes with a past or future expiry date, in listing order."""
        return self._serials(self._expiring.tolist())

    def blocks(self) -> list[int]:
        """Return the numbers of the title blocks, in listing order."""
        found: list[int] = []
        position = 0
        while position < len(self._places):
            found.append(self._places[position] >> _BLOCK)
            position = bisect_left(self._places, (found[-1] + 1) << _BLOCK, position + 1)
        return found

    def titled(self, block: int, wanted: str, title_of: Callable[[int], str]) -> Sequence[int]:
        """Return the notes in a block whose titles contain a folded text, in listing order."""

        def serials() -> list[int]:
            start = bisect_left(self._places, block << _BLOCK)
            end = bisect_left(self._places, (block + 1) << _BLOCK, start)
            return self._serials(self._places[start:end].tolist())

        return self._titles.find(block, wanted, serials, title_of)

    def size_of(self, folder: str) -> int:
        """Return the number of notes directly in a folder, without its subfolders."""
        return len(self._folders.places.get(folder, ()))

    def in_folder(self, folder: str) -> list[int]:
        """Return the serial numbers of the notes directly in a folder, in listing order."""
        return self._serials(list(self._folders.places.get(folder, ())))

    def below(self, folder: str) -> list[int]:
        """Return the serial numbers of the notes in a folder and its subfolders, in listing order."""
        within = self._below(f"{folder}/", None) if folder else _view(self._places)
        return self._serials(within.tolist())

    def place_of(self, serial: int) -> int:
        """Return the position of a note in the listing. Positions sort in listing order."""
        return self._late.get(serial, serial << _SHIFT) if self._late else serial << _SHIFT

    def _serials(self, places: list[int]) -> list[int]:
        if not self._late:
            return [place >> _SHIFT for place in places]
        return [self._late_serials.get(place, place >> _SHIFT) for place in places]

    def _select(self, wanted: FacetFilter, path_of: Callable[[int], str] | None) -> NDArray[np.int64] | None:
        """Return the places of the matching notes, or None if all notes match.

        Only the smallest posting is scanned.
        """
        postings = [self._tags.wished(tag) for tag in wanted.tags]
        if wanted.author is not None:
            postings.append(self._authors.of((wanted.author,)))
        if wanted.namespaces is not None:
            postings.append(self._namespaces.of(wanted.namespaces))
        if wanted.path_prefix:
            postings.append(self._below(wanted.path_prefix, path_of))
        if wanted.project is not None:
            postings.append(self._of_project(wanted.project))
        postings.sort(key=len)
        found: NDArray[np.int64] | None = None
        for posting in postings:
            found = posting if found is None else _common(found, posting)
        if wanted.since is None or not self._places:
            return found
        since, places, updated = to_microseconds(wanted.since), _view(self._places), _view(self._updated)
        if found is None:
            return places[updated >= since]
        return found[updated[np.searchsorted(places, found)] >= since]

    def _of_project(self, wanted: ProjectFilter) -> NDArray[np.int64]:
        found = self._projects.of(wanted.terms)
        if not wanted.passes(()):
            return found
        common = np.setdiff1d(_view(self._places), self._projects.of((_ANY_PROJECT,)), assume_unique=True)
        return np.union1d(found, common) if len(found) else common

    def _below(self, prefix: str, path_of: Callable[[int], str] | None) -> NDArray[np.int64]:
        """Return the notes whose paths begin with a prefix.

        The result has all notes of matching folders, and the matching notes of the last folder.

        Without `path_of`, the result contains all notes of the last folder.
        """
        folder = folder_of(prefix)
        whole = [name for name in self._folders.places if name and f"{name}/".startswith(prefix)]
        partly = self._folders.places.get(folder)
        if partly is None or f"{folder}/" == prefix:
            return self._folders.of(whole)
        if path_of is None:
            return self._folders.of([*whole, folder])
        some = [
            place
            for place, serial in zip(partly, self._serials(partly.tolist()), strict=True)
            if path_of(serial).startswith(prefix)
        ]
        found = self._folders.of(whole)
        return np.union1d(found, np.array(some, np.int64)) if some else found


def _append(places: dict[str, Places], value: str, place: int) -> None:
    """Append a place that is greater than all existing places."""
    known = places.get(value)
    if known is None:
        places[value] = array("q", (place,))
    else:
        known.append(place)


def _insert(places: Places, place: int) -> None:
    if places[-1] < place:
        places.append(place)
    else:
        insort(places, place)


def _view(places: Places) -> NDArray[np.int64]:
    """Return the array without copying it.

    Do not store the result, because an array with a view cannot grow.
    """
    return np.frombuffer(places, np.int64)


def _common(few: NDArray[np.int64], many: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the intersection of two ascending arrays. The first array must be the shorter one."""
    if not len(few):
        return few
    at = np.searchsorted(many, few)
    at[at == len(many)] = 0  # this value is not in `many`, so it differs from the first value
    shared: NDArray[np.int64] = few[many[at] == few]
    return shared


def _namespace(path: str, note: Note) -> str:
    """Return the same result as `namespace_of` for a path in the catalogue, but ten times as fast."""
    return normalise("NFC", note.namespace or folder_of(path) or DEFAULT_NAMESPACE)
