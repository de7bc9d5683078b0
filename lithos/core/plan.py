"""Reconciliation plans: desired state compared with actual state, and the actions that make them agree.

The start scan, index repair and reconcile share these comparisons.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from lithos.core.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED

#: Corpora up to this size may lose any share of their notes at once (lifecycle spec, section 6).
UNGUARDED_NOTES = 20


@frozen
class IndexPlan:
    """Serials of notes to add (or index again) and to remove, ascending."""

    add: tuple[int, ...]
    remove: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many notes differ."""
        return len(self.add) + len(self.remove)


def plan_index(wanted: Mapping[int, int], held: Mapping[int, int]) -> IndexPlan:
    """Compare stamps by serial: what an index should hold with what it holds."""
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
    unchanged: list[str] = []
    examine: list[str] = []
    for path, state in found.items():
        (unchanged if known.get(path) == state else examine).append(path)
    missing = tuple(path for path in known if path not in found)
    return FilePlan(tuple(unchanged), tuple(examine), missing)


def plan_event(told: tuple[str, str] | None, current: tuple[str, str]) -> str | None:
    """The event type for subscribers, from (path, digest) of a note as last announced to what it is now."""
    if told is None:
        return NOTE_CREATED
    if told[0] != current[0]:
        return NOTE_RENAMED
    return NOTE_UPDATED if told[1] != current[1] else None


@frozen
class VanishRule:
    """The deletion guard's rule: when vanished files are kept in the indexes (lifecycle spec, section 6).

    `keep_all`: the folder itself is gone. `kept` are paths that were kept before, `approved` those an
    operator gave up.
    """

    fraction: float = 1.0
    keep_all: bool = False
    kept: frozenset[str] = frozenset()
    approved: frozenset[str] = frozenset()


def is_mass_loss(vanished: int, corpus: int, fraction: float) -> bool:
    """True when so many of `corpus` notes vanished at once that a folder is likelier lost than emptied."""
    return corpus > UNGUARDED_NOTES and vanished > fraction * corpus


def plan_vanished(vanished: Collection[str], corpus: int, rule: VanishRule) -> frozenset[str]:
    """Which of the vanished paths are to be kept; `corpus` counts the notes before any vanished."""
    unapproved = frozenset(vanished) - rule.approved
    if unapproved and (rule.keep_all or is_mass_loss(len(unapproved), corpus, rule.fraction)):
        return unapproved
    return unapproved & rule.kept
