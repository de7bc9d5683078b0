"""The projects of notes, and the number of notes of each project, for lists and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lithos.kernel.values.projects import PROPERTY, projects_of
from lithos.notes.catalogue.catalogue import Catalogue, Entry


def keys_of(catalogue: Catalogue, entry: Entry) -> tuple[str, ...]:
    """Return the keys of a note's projects."""
    return projects_of(entry.note.extra.get(PROPERTY))


def count_projects(catalogue: Catalogue, entries: Iterable[Entry]) -> dict[str, int]:
    """Return the number of notes of each project. Keys that differ only in case are one project."""
    shown: dict[str, str] = {}
    counts = Counter[str]()
    for entry in entries:
        for key in keys_of(catalogue, entry):
            counts[shown.setdefault(key.casefold(), key)] += 1
    return counts
