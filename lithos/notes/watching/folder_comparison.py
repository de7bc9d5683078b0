"""Snapshots of the notes folder and comparisons for the watcher, and the search for moved notes.

All functions of this module block, so they must run in a worker thread.

A listing can miss a file that moves during the listing, from a folder that is not yet visited to one that is.
A note is therefore gone only if `find_moved` does not find it in a tree that no longer changes.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping

from attrs import define, field, frozen

from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.note_reading import LARGEST_FILE
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import UNKNOWN_STATE, AliasedPath, find_note, is_note_name
from lithos.notes.files.values import FileState, FoundFile, OutsideKnowledge, digest_of, state_of
from lithos.notes.format.document import parse_document
from lithos.notes.model.plan import claim_order, plan_files
from lithos.text.yaml.nodes import UnreadableNote

#: Maximum number of listings. The search ends earlier if two successive listings are equal. If the tree never
#: stops changing, the last listing is used.
LOOKS = 6
#: Number of characters at the end of an id that are the same in every spelling. This is the last group of a
#: UUID.
_TAIL = 12


@frozen
class _Sight:
    """A file in a listing. If all values are the same in the next listing, the file is not read again."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int


@define
class _Search:
    files: NoteFiles
    wanted: Mapping[str, FileState]
    known: Mapping[str, FileState]
    #: Hashes of the files of missing notes that have no id in their text, by note id.
    nameless: Mapping[str, str] = field(factory=dict)  # bounded: ends with its search
    #: Paths of other notes whose files have the same bytes as a missing note.
    twins: Container[str] = ()
    read: dict[_Sight, str | None] = field(factory=dict)
    found: dict[str, str] = field(factory=dict)

    def look(self) -> frozenset[_Sight]:
        """List the tree. Read each file that may be a missing note immediately. Return the listing."""
        states = set(self.wanted.values())
        met: set[_Sight] = set()
        for path, status in self.files.walk():
            state = state_of(status)
            if self.known.get(path) == state and (state not in states or path in self.twins):
                continue
            sight = _Sight(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            met.add(sight)
            if sight not in self.read:
                self.read[sight] = self._recognise(path, status)
            note_id = self.read[sight]
            if note_id is not None:
                self.found[note_id] = path
        return frozenset(met)

    def _recognise(self, path: str, status: os.stat_result) -> str | None:
        """Return the id of the missing note in this file, or None."""
        if status.st_size > LARGEST_FILE:
            return None
        try:
            data = self.files.read(path).data
            if self.nameless:
                digest = digest_of(data)
                same = [note_id for note_id, each in self.nameless.items() if each == digest]
                if same:
                    return next((note_id for note_id in same if note_id not in self.found), same[0])
            lowered = data.lower()
            if not any(note_id[-_TAIL:].lower().encode() in lowered for note_id in self.wanted):
                return None
            note_id = parse_document(data, path, from_nanoseconds(status.st_mtime_ns)).note.id
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None
        return note_id if note_id in self.wanted else None


def find_moved(
    files: NoteFiles,
    wanted: Mapping[str, FileState],
    known: Mapping[str, FileState],
    nameless: Mapping[str, str] | None = None,
    twins: Container[str] = (),
) -> dict[str, str]:
    """Return the new paths of missing notes by id. `wanted` contains the last file states of these notes.

    `nameless` contains the hashes of files without an id, which are recognised by their bytes. `twins`
    contains the paths of other notes with the same bytes. A file whose state equals its state in `known` was
    examined before and is not read again.
    """
    search = _Search(files, wanted, known, nameless or {}, twins)
    before: frozenset[_Sight] | None = None
    for _ in range(LOOKS):
        met = search.look()
        if met == before or search.found.keys() == wanted.keys():
            break
        before = met
    return search.found


@frozen
class TouchedFiles:
    """Files that may have changed, and touched paths without a file.

    `is_unclear` means that a full comparison with the tree is needed.

    `others` lists files that are not notes, as pairs of the path and whether the file exists.
    """

    found: tuple[FoundFile, ...]
    absent: tuple[str, ...]
    is_unclear: bool = False
    others: tuple[tuple[str, bool], ...] = ()


#: Snapshot of the tree for a watcher that polls every second. The snapshot includes the ctime, which no
#: program can set back, so it detects a replaced file with the same size and mtime. A snapshot stores only
#: hashes, so it is small even for 10,000 notes.
Sights = Mapping[str, int]


def look_again(files: NoteFiles, before: Sights | None) -> tuple[Sights, list[str] | None]:
    """Return a snapshot of the tree, and the paths that are new, changed or missing since `before`.

    If `before` is None, the list of paths is None.
    """
    now = {
        path: hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns)) for path, status in files.walk()
    }
    if before is None:
        return now, None
    if now == before:
        return now, []
    changed = [path for path, seen in now.items() if before.get(path) != seen]
    return now, changed + [path for path in before if path not in now]


def survey_tree(files: NoteFiles, known: Mapping[str, FileState], touched: TouchedFiles) -> TouchedFiles:
    """Compare size and time of all files with the known values, like an incremental scan.

    The result also includes the files at the `touched` paths.
    """
    listed = {file.path: file for file in files.list_notes()}
    plan = plan_files(known, {path: file.state for path, file in listed.items()})
    found = {file.path: file for file in touched.found} | {path: listed[path] for path in plan.examine}
    return TouchedFiles(_in_order(found.values()), tuple({*touched.absent, *plan.missing} - found.keys()))


def _in_order(found: Iterable[FoundFile]) -> tuple[FoundFile, ...]:
    """Return the files in the order in which their claims to an id have priority."""
    return tuple(sorted(found, key=lambda file: claim_order(file.path, file.state.mtime_ns)))


def survey_paths(files: NoteFiles, paths: Iterable[str]) -> TouchedFiles:
    """Examine touched paths without a comparison of the whole tree."""
    found: list[FoundFile] = []
    absent: list[str] = []
    others: list[tuple[str, bool]] = []
    is_unclear = False
    for path in paths:
        target = files.place(path)
        if not is_note_name(path):
            # The path is a folder or was one. No notification reports the files in such a folder.
            is_unclear |= os.path.isdir(target) or not os.path.lexists(target)
            if is_watched(path) and not path.endswith(".md"):
                others.append((path, os.path.isfile(target)))
            continue
        try:
            file = find_note(files, path)
        except AliasedPath:
            is_unclear = True
            continue
        except OSError:
            file = FoundFile(path, UNKNOWN_STATE)  # A later attempt to read the file will return the reason.
        if file is not None:
            found.append(file)
            continue
        absent.append(path)
        is_unclear |= os.path.isdir(target)
    return TouchedFiles(_in_order(found), tuple(absent), is_unclear, tuple(others))


def is_watched(path: str) -> bool:
    """Return whether the watcher covers a relative path. No part of the path may start with a dot.

    Files in folders whose names start with a dot are not notes.
    """
    return bool(path) and not any(part.startswith(".") for part in path.split("/"))
