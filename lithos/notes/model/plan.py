"""Reconciliation plans: desired state compared with actual state, and the actions that make them agree.

The start scan, the watcher, index repair and reconcile share these comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final, TypeAlias

from attrs import frozen

from lithos.kernel.values.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.model.copies import all_copy_names, strong_originals

#: Corpora up to this size may lose any share of their notes at once (docs/spec/lifecycle.md §6).
UNGUARDED_NOTES = 20
#: Share of vanished notes above which all are kept.
MASS_LOSS = 0.5


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
    """Compare stamps by serial: the required content of an index with its actual content."""
    add = tuple(sorted(serial for serial, stamp in wanted.items() if held.get(serial) != stamp))
    remove = tuple(sorted(serial for serial in held if serial not in wanted))
    return IndexPlan(add, remove)


@frozen
class FilePlan:
    """The work of a scan, by path: `examine` new and changed files; `missing` ones have vanished."""

    examine: tuple[str, ...]
    missing: tuple[str, ...]


def plan_files(known: Mapping[str, object], found: Mapping[str, object]) -> FilePlan:
    """Compare file states (size and mtime) by path: the manifest's with the folder's."""
    examine = tuple(path for path, state in found.items() if known.get(path) != state)
    return FilePlan(examine, tuple(path for path in known if path not in found))


def plan_event(told: tuple[str, str] | None, current: tuple[str, str]) -> str | None:
    """Return the event type for subscribers, from (path, digest) of a note as last announced to what it is
    now.
    """
    if told is None:
        return NOTE_CREATED
    if told[0] != current[0]:
        return NOTE_RENAMED
    return NOTE_UPDATED if told[1] != current[1] else None


#: Where a note was last known to be, and the hash of the bytes that it had there.
RecordedPath: TypeAlias = tuple[str, str]

#: Suffixes that synchronising programs add to a note's name for the losing version of a conflict.
_CONFLICT: Final = re.compile(
    r"(?:\.sync-conflict-[\w-]+"
    r"| ?\([^()]*(?:conflict|konflikt|conflit|конфликт|競合|冲突|衝突)[^()]*\))\.md$",
    re.IGNORECASE,
)
#: Suffixes that people and programs add for any other copy: ` 2`, ` (1)`, `-1`, `-HOST`, ` copy`, ` - Kopie
#: (2)`.
_COPY: Final = re.compile(
    r"(?: \d{1,3}| ?\(\d{1,3}\)|-\d{1,3}|-(?-i:[A-Z0-9]{2,}(?:-[A-Z0-9]+)*)"
    r"|[ _-](?:copy|copia|cópia|copie|kopie|kopia)(?: ?\(?\d{1,3}\)?)?)\.md$"
    r"|^(?:copy|copia|copie|kopie)(?: \(\d{1,3}\))? (?:of|di|de|von) ",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"(?:^|/)(?:archives?|archived|backups?)/", re.IGNORECASE)
#: Characters that a file's name has at most on any file system; a longer one has no marks.
_LONGEST_NAME: Final = 255


@frozen
class IdClaim:
    """A file that claims an id: its path, the hash of its bytes, and when it was changed."""

    path: str
    digest: str
    mtime_ns: int


def claim_order(path: str, mtime_ns: int) -> tuple[bool, int, str]:
    """The order in which files claim an id of which nothing is known: no mark of a copy, older, path."""
    name = path.rpartition("/")[2][: _LONGEST_NAME + 1]
    is_marked = len(name) <= _LONGEST_NAME and (_CONFLICT.search(name) or _COPY.search(name))
    return bool(is_marked or _ASIDE.search(path)), mtime_ns, path


def elect(claims: Collection[IdClaim], known: Iterable[RecordedPath]) -> IdClaim:
    """Return the file that keeps an id that several claim (docs/spec/notes.md §4).

    `known` is where the note was, the surest first: the file there, else one with the bytes it had there. A
    conflict copy, by its name, holds no id against its note: some programs rename the note to make it.
    """
    by_path = {claim.path: claim for claim in claims}
    ordered = sorted(claims, key=lambda claim: _claim_order(claim, by_path))
    places = list(known)
    for path, _ in places:
        copied_from = (by_path[each] for each in strong_originals(path) if each in by_path)
        holder = next(copied_from, by_path.get(path))
        if holder is not None:
            return holder
    digests = {digest for _, digest in places}
    return next((claim for claim in ordered if claim.digest in digests), ordered[0])


def _claim_order(claim: IdClaim, paths: Container[str]) -> tuple[bool, tuple[bool, int, str]]:
    """Return the order of claims: a file that is named as a copy of another one comes after that."""
    is_copy = any(name.original in paths for name in all_copy_names(claim.path))
    return is_copy, claim_order(claim.path, claim.mtime_ns)


@frozen
class VanishRule:
    """The deletion guard's rule: when vanished files are kept in the indexes (docs/spec/lifecycle.md §6).

    `keep_all`: the folder itself is gone. `kept` are paths that were kept before, `approved` those an
    operator gave up.
    """

    fraction: float = 1.0
    keep_all: bool = False
    kept: frozenset[str] = frozenset()
    approved: frozenset[str] = frozenset()


def is_mass_loss(vanished: int, corpus: int, fraction: float) -> bool:
    """Return True when the share of `corpus` notes that vanished at once suggests a lost folder, not a
    deletion.
    """
    return corpus > UNGUARDED_NOTES and vanished > fraction * corpus


def plan_vanished(vanished: Collection[str], corpus: int, rule: VanishRule) -> frozenset[str]:
    """Which of the vanished paths are to be kept; `corpus` counts the notes before any vanished."""
    unapproved = frozenset(vanished) - rule.approved
    if unapproved and (rule.keep_all or is_mass_loss(len(unapproved), corpus, rule.fraction)):
        return unapproved
    return unapproved & rule.kept
