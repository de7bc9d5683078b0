"""The projects of notes: the rules that find them, and the projects of all notes of a catalogue.

See docs/spec/projects.md §3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, Protocol

from attrs import field, frozen

from lithos.kernel.values.projects import (
    PROPERTY,
    ProjectFilter,
    normalise_project,
    project_terms,
    projects_of,
    same_project,
)
from lithos.text.words.analysis import name_key

#: Number of remembered property values, and maximum number of characters of such a value. Many notes share
#: the same few values, and reading a value takes some microseconds.
_REMEMBERED: Final = 1_000
_LONGEST_REMEMBERED: Final = 300
#: Number of known projects with which an unknown project is compared, the most frequent first, and number of
#: characters at the end of a key that are compared. All comparisons take less than a tenth of a second. Then
#: the maximum number of similar projects in a message, and the minimum similarity of their names.
_MOST_COMPARED: Final = 100
_COMPARED: Final = 32
_MOST_SIMILAR: Final = 3
_SIMILARITY: Final = 0.7
_NO_TERMS: Final = frozenset[str]()
#: Index terms of a note without a project.
_COMMON: Final = project_terms(())


@frozen
class _Kept:
    """The keys of a note, and the terms under which an index finds them."""

    keys: tuple[str, ...]
    terms: frozenset[str]


_of_no_project: Final = _Kept((), _NO_TERMS)


@lru_cache(maxsize=_REMEMBERED)
def _of_text(text: str) -> tuple[str, ...]:
    return projects_of(text)


@lru_cache(maxsize=_REMEMBERED)
def _kept(keys: tuple[str, ...]) -> _Kept:
    return _Kept(keys, project_terms(keys)) if keys else _of_no_project


def _by_folder(folders: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {name_key(folder.strip("/")): (normalise_project(key),) for folder, key in folders.items()}


def _unlinked(path: str) -> str:
    return ""


@frozen
class ProjectRules:
    """Rules that find the projects of a note: the name of the property, and the projects of folders.

    Without a name, no property counts. `folders` has paths from the root of the vault.
    """

    property_name: str = PROPERTY
    folders: Mapping[str, tuple[str, ...]] = field(factory=dict, converter=_by_folder)
    #: Maximum number of parts of a folder. Deeper parts of a path need no comparison.
    _deepest: int = field(init=False, eq=False)
    #: Function that returns the key of the linked folder that contains a path, or "".
    of_linked: Callable[[str], str] = field(default=_unlinked, eq=False, repr=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        deepest = max((folder.count("/") + 1 for folder in self.folders), default=0)
        object.__setattr__(self, "_deepest", deepest)

    def keys(self, path: str, extra: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the project keys of a note from its path and its properties."""
        found: tuple[str, ...] = ()
        if self.property_name and self.property_name in extra:
            value = extra[self.property_name]
            is_short = isinstance(value, str) and len(value) <= _LONGEST_REMEMBERED
            found = _of_text(value) if is_short else projects_of(value)
        return found or self.of_path(path)

    def of_path(self, path: str) -> tuple[str, ...]:
        """Return the keys of the longest configured folder that contains a path, or of a linked folder."""
        linked = self.of_linked(path)
        if not self.folders:
            return (linked,) if linked else ()
        parts = name_key(path).split("/")[:-1]
        for depth in range(min(len(parts), self._deepest), 0, -1):
            found = self.folders.get("/".join(parts[:depth]))
            if found is not None:
                return found
        return (linked,) if linked else ()


DEFAULT_RULES: Final = ProjectRules()


class Numbered(Protocol):
    """A note with its serial number in the catalogue."""

    @property
    def serial(self) -> int: ...


class NoteProjects:
    """The projects of the notes of a catalogue. Only notes with a project take memory."""

    def __init__(self, rules: ProjectRules = DEFAULT_RULES) -> None:
        self.rules = rules
        self._kept: dict[int, _Kept] = {}
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of notes with a project."""
        return len(self._kept)

    def of(self, note: Numbered) -> tuple[str, ...]:
        """Return the project keys of a note, or () for a common note."""
        return self._kept.get(note.serial, _of_no_project).keys

    def passes(self, note: Numbered, wanted: ProjectFilter | None) -> bool:
        """Return whether a note passes a filter. Without a filter, every note passes."""
        if wanted is None:
            return True
        kept = self._kept.get(note.serial)
        return not wanted.terms.isdisjoint(_COMMON if kept is None else kept.terms)

    def counts(self) -> dict[str, int]:
        """Return the number of notes of each project. Keys that differ only in case are one project."""
        shown: dict[str, str] = {}
        found = Counter[str]()
        for key, notes in self._counts.most_common():
            found[shown.setdefault(key.casefold(), key)] += notes
        return dict(sorted(found.items()))

    def missing(self, wanted: ProjectFilter | None) -> str:
        """Return a sentence if no note belongs to the requested project, with similar keys, or ""."""
        if wanted is None or not wanted.key or any(same_project(wanted.key, key) for key in self._counts):
            return ""
        keys = {key.casefold(): key for key, _ in self._counts.most_common(_MOST_COMPARED)}
        names = {key.rpartition("/")[2]: key for key in reversed(keys)} | {key: key for key in keys}
        ends = {name[-_COMPARED:]: key for name, key in names.items()}
        asked = wanted.key.casefold()
        near = {
            keys[ends[each]]: None
            for text in (asked, asked.rpartition("/")[2])
            for each in get_close_matches(text[-_COMPARED:], ends, n=_MOST_SIMILAR, cutoff=_SIMILARITY)
        }
        similar = f" Similar projects: {', '.join([*near][:_MOST_SIMILAR])}." if near else ""
        return f"No note belongs to the project {wanted.key!r}.{similar}"

    def put(self, serial: int, keys: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        """Set the projects of a note. Return its index terms before and after."""
        old, new = self._kept.get(serial, _of_no_project), _kept(keys)
        if old.keys == new.keys:
            return old.terms, old.terms
        if new.keys:
            self._kept[serial] = new
        else:
            del self._kept[serial]
        self._counts.update(new.keys)
        for key in old.keys:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
        return old.terms, new.terms
