"""Reconciliation plans: the differences between desired and actual state, and the necessary actions.

The comparisons of desired and actual state are shared by the scan at start, the watcher, index repair and
`reconcile`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Final, TypeAlias

from attrs import frozen

from lithos.kernel.values.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.model.copies import all_copy_names, strong_originals

#: Maximum number of notes in a vault for which the deletion guard is off (docs/spec/lifecycle.md §6).
UNGUARDED_NOTES = 20
#: Share of vanished notes above which Lithos keeps all vanished notes in the indexes.
MASS_LOSS = 0.5


@frozen
class IndexPlan:
    """Serial numbers of the notes that must be indexed or removed, in ascending order."""

    add: tuple[int, ...]
    remove: tuple[int, ...]

    @property
    def total(self) -> int:
        """Return the number of notes that must be indexed or removed."""
        return len(self.add) + len(self.remove)


def plan_index(wanted: Mapping[int, int], held: Mapping[int, int]) -> IndexPlan:
    """Return the differences between the required and the actual content of an index.

    `wanted` and `held` map serial numbers to stamps.
    """
    add = tuple(sorted(serial for serial, stamp in wanted.items() if held.get(serial) != stamp))
    remove = tuple(sorted(serial for serial in held if serial not in wanted))
    return IndexPlan(add, remove)


@frozen
class FilePlan:
    """The files that a scan must process: new and changed files to `examine`, and `missing` files."""

    examine: tuple[str, ...]
    missing: tuple[str, ...]


def plan_files(known: Mapping[str, object], found: Mapping[str, object]) -> FilePlan:
    """Return the differences between the files in the manifest and the files in the folder.

    `known` and `found` map paths to size and mtime.
    """
    examine = tuple(path for path, state in found.items() if known.get(path) != state)
    return FilePlan(examine, tuple(path for path in known if path not in found))


def plan_event(told: tuple[str, str] | None, current: tuple[str, str]) -> str | None:
    """Return the event type for a changed note, or None if nothing changed.

    `told` and `current` are (path, digest).
    """
    if told is None:
        return NOTE_CREATED
    if told[0] != current[0]:
        return NOTE_RENAMED
    return NOTE_UPDATED if told[1] != current[1] else None


#: The last known path of a note, and the hash of the bytes at that path.
RecordedPath: TypeAlias = tuple[str, str]

#: Matches the suffix of a conflict copy. Synchronisation programs add it to the name of the losing version.
_CONFLICT: Final = re.compile(
    r"(?:\.sync-conflict-[\w-]+"
    r"| ?\([^()]*(?:conflict|konflikt|conflit|конфликт|競合|冲突|衝突)[^()]*\))\.md$",
    re.IGNORECASE,
)
#: Matches the suffix of any other copy, made by a person or a program: ` 2`, ` (1)`, `-1`, `-HOST`, ` copy`,
#: ` - Kopie (2)`.
_COPY: Final = re.compile(
    r"(?: \d{1,3}| ?\(\d{1,3}\)|-\d{1,3}|-(?-i:[A-Z0-9]{2,}(?:-[A-Z0-9]+)*)"
    r"|[ _-](?:copy|copia|cópia|copie|kopie|kopia)(?: ?\(?\d{1,3}\)?)?)\.md$"
    r"|^(?:copy|copia|copie|kopie)(?: \(\d{1,3}\))? (?:of|di|de|von) ",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"(?:^|/)(?:archives?|archived|backups?)/", re.IGNORECASE)
#: Maximum number of characters in a file name on any file system. Suffixes are not checked in longer names.
_LONGEST_NAME: Final = 255


@frozen
class IdClaim:
    """A file that claims an id. `digest` is the hash of the file's bytes."""

    path: str
    digest: str
    mtime_ns: int


def claim_order(path: str, mtime_ns: int) -> tuple[bool, int, str]:
    """Return the sort key of a file that claims an unknown id.

    Names without a copy suffix come first, then older files. Equally old files are ordered by path.
    """
    name = path.rpartition("/")[2][: _LONGEST_NAME + 1]
    is_marked = len(name) <= _LONGEST_NAME and (_CONFLICT.search(name) or _COPY.search(name))
    return bool(is_marked or _ASIDE.search(path)), mtime_ns, path


def elect(claims: Collection[IdClaim], known: Iterable[RecordedPath]) -> IdClaim:
    """Return the file that keeps the id if several files claim the same id (docs/spec/notes.md §4).

    `known` lists the former paths of the note, most reliable first. The file at such a path wins. Otherwise a
    file with the same bytes wins. A file that is named as a conflict copy of another claiming file never wins
    over that file, because some programs create the copy by renaming the note.
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
    """Return the sort key of a claim. Files that are named as copies of other claiming files come last."""
    is_copy = any(name.original in paths for name in all_copy_names(claim.path))
    return is_copy, claim_order(claim.path, claim.mtime_ns)


@frozen
class VanishRule:
    """The rule of the deletion guard for vanished files that stay in the indexes (docs/spec/lifecycle.md §6).

    `keep_all` means that the notes folder itself is missing. `kept` contains the paths that were kept
    earlier. `approved` contains the paths whose deletion an operator approved. `away` contains the beginnings
    of paths in linked folders that are missing.
    """

    fraction: float = 1.0
    keep_all: bool = False
    kept: frozenset[str] = frozenset()
    approved: frozenset[str] = frozenset()
    away: tuple[str, ...] = ()


def is_mass_loss(vanished: int, corpus: int, fraction: float) -> bool:
    """Return whether the share of vanished notes is so large that the folder was probably lost.

    `corpus` is the number of all notes.
    """
    return corpus > UNGUARDED_NOTES and vanished > fraction * corpus


def plan_vanished(vanished: Collection[str], corpus: int, rule: VanishRule) -> frozenset[str]:
    """Return the vanished paths to keep in the indexes.

    `corpus` is the number of notes before any note vanished.
    """
    unapproved = frozenset(vanished) - rule.approved
    away = frozenset(path for path in unapproved if path.startswith(rule.away))
    others = unapproved - away
    if others and (rule.keep_all or is_mass_loss(len(others), corpus, rule.fraction)):
        return unapproved
    return away | (others & rule.kept)
