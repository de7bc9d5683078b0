"""Desired state against what is there: the actions that make them meet.

Start, repair and reconcile share these comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class IndexPlan:
    """Numbers of notes to add (or index again) and to remove, ascending."""

    add: tuple[int, ...]
    remove: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many notes differ."""
        return len(self.add) + len(self.remove)


def plan_index(wanted: Mapping[int, int], held: Mapping[int, int]) -> IndexPlan:
    """Compare stamps by number: what an index should hold with what it holds."""
    add = tuple(sorted(serial for serial, stamp in wanted.items() if held.get(serial) != stamp))
    remove = tuple(sorted(serial for serial in held if serial not in wanted))
    return IndexPlan(add, remove)


@frozen
class FilePlan:
    """What a scan has to do, by path: `examine` new and changed files, `missing` ones have vanished."""

    unchanged: tuple[str, ...]
    examine: tuple[str, ...]
    missing: tuple[str, ...]


def plan_files(known: Mapping[str, object], found: Mapping[str, object]) -> FilePlan:
    """Compare file states (size and mtime) by path: the manifest's with the folder's."""
    unchanged = tuple(path for path, state in found.items() if known.get(path) == state)
    examine = tuple(path for path, state in found.items() if known.get(path) != state)
    missing = tuple(path for path in known if path not in found)
    return FilePlan(unchanged, examine, missing)
