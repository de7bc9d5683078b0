"""The start scan: updates the catalogue incrementally to match the folder (docs/spec/lifecycle.md §4).

Files with the same size and mtime as in the manifest are not read. If several files have the same id, the
file that had the id before keeps the id (`notes.model.plan.elect`). If slugs or URLs are equal, the first
path in sorted order has priority. The scan does not change note files.

The scan also assigns ids to files that do not contain an id, and versions to notes that were edited while no
server was running. A file without an id keeps the id recorded for its path. If such a file was moved, it gets
the id of the vanished file with the same bytes. A file that contains an id has priority over a file that does
not contain one. A file that is unreadable, or has unreadable frontmatter, keeps its id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import attrs
from attrs import frozen

from lithos.kernel.log import get_logger
from lithos.kernel.values.events import (
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
    EventDraft,
    origin_digest,
    origin_version,
)
from lithos.kernel.values.principals import SCAN_AGENT
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry, SkippedFile
from lithos.notes.catalogue.copy_origin import Kinship, VersionsOf
from lithos.notes.catalogue.note_reading import (
    conflict_copy,
    draft_change,
    draft_event,
    examine,
    make_entry,
    second_file,
)
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import UNKNOWN_STATE, current_state, list_attachments
from lithos.notes.files.manifest import Manifest
from lithos.notes.files.values import FoundFile, OutsideKnowledge
from lithos.notes.model.copies import all_copy_names, is_copy_of, is_weakly_named, says_own_note
from lithos.notes.model.note import AssignedVersion, effective_version, newest, with_creation
from lithos.notes.model.plan import RecordedPath, VanishRule, elect, plan_event, plan_files, plan_vanished


def name_entries(
    entries: Mapping[str, Entry],
    rows: Mapping[str, Entry],
    missing: Iterable[str],
    unread: Iterable[str],
    records: NoteRecords,
) -> dict[str, Entry]:
    """Assign ids to files that do not contain an id. Return all entries by path.

    `rows` are the manifest's rows by path. `missing` are the paths of vanished files, `unread` those of
    unreadable files.
    """
    named_by: dict[str, list[str]] = {}
    for path, entry in entries.items():
        if entry.identified:
            named_by.setdefault(entry.note.id, []).append(path)
    taken = named_by.keys() | {rows[path].note.id for path in unread if path in rows}

    def is_taken(note_id: str, path: str) -> bool:
        """Return whether another file already has the id.

        A conflict copy of the file at `path` is ignored, because its id comes from that file.

        But if the file at `path` no longer contains the id that it had before, the note may have been
        renamed. The other file is then ignored only if its name is unmistakably that of a copy.
        """
        row, others = rows.get(path), named_by.get(note_id, ())
        has_left = row is not None and row.identified
        are_copies = all(
            is_copy_of(each, path, note_id) and not (has_left and is_weakly_named(each, path))
            for each in others
        )
        return note_id in taken and not (others and are_copies)

    vanished: dict[str, list[str]] = {}
    for path in sorted(missing):
        if not rows[path].identified:
            vanished.setdefault(rows[path].digest, []).append(rows[path].note.id)
    named: dict[str, Entry] = {}
    fresh: list[str] = []
    for path in sorted(entries):
        entry = entries[path]
        if entry.identified:
            named[path] = entry
            continue
        note_id = _kept_id(entry, rows.get(path), vanished, records)
        if note_id is None or (is_taken(note_id, path) and not entry.may_name_id):
            fresh.append(path)
            continue
        taken.add(note_id)
        named_by.pop(note_id, None)
        named[path] = _with_id(entry, note_id)
    for path in fresh:  # New files get their ids last, so that none of them gets the id of a moved file.
        note_id = records.free_id(path, partial(is_taken, path=path))
        taken.add(note_id)
        named_by.pop(note_id, None)
        named[path] = _with_id(entries[path], note_id)
    return named


def _kept_id(
    entry: Entry, row: Entry | None, vanished: dict[str, list[str]], records: NoteRecords
) -> str | None:
    """Return the id that a file without an id had before, or None for a new file."""
    if row is None or row.digest != entry.digest:
        moved = vanished.get(entry.digest)
        if moved:
            return moved.pop(0)
    return records.id_at(entry.path) or (row.note.id if row is not None else None)


def _with_id(entry: Entry, note_id: str) -> Entry:
    note = entry.note
    if note.id == note_id:
        return entry
    sources = tuple(source for source in note.derived_from_ids if source != note_id)
    return attrs.evolve(entry, note=attrs.evolve(note, id=note_id, derived_from_ids=sources))


def give_versions(
    entries: dict[str, Entry],
    rows: Iterable[Entry],
    announced: Mapping[str, AssignedVersion],
    records: NoteRecords,
    *,
    says_versions: Callable[[str], bool] = lambda path: True,
) -> None:
    """Assign effective versions to the entries that were edited while no server was running.

    `entries` is changed in place.

    The last known version of a note is the newest of three: the manifest row, the record, and the version
    that was `announced` after the manifest was stored. If `says_versions` is false for a path, the file may
    not contain its version, so the record of a known version is not deleted.
    """
    known = {row.note.id: row for row in rows}
    for note_id, entry in entries.items():
        row, remembered, told = known.get(note_id), records.version(note_id), announced.get(note_id)
        intents = records.intents(note_id)
        is_known = remembered is None and told is None and not intents
        if row is not None and row.digest == entry.digest and is_known:
            continue  # nearly all notes are unchanged
        indexed = AssignedVersion(row.note.version, row.digest) if row is not None else None
        last = newest((indexed, remembered, told), entry.digest)
        if last is None or last.digest != entry.digest:
            # If the file does not have the intended bytes, the write failed or the file was edited later.
            done = [intent for intent in intents if intent.digest == entry.digest]
            last = newest((last, *(done or intents)), entry.digest)
        version = effective_version(entry.note.version, entry.digest, last)
        dated = entries[note_id] = _with_creation(entry, row, records)
        if version != entry.note.version:
            entries[note_id] = attrs.evolve(dated, note=attrs.evolve(dated.note, version=version))
            records.put_version(note_id, entries[note_id].standing)
        elif remembered is not None and remembered != entry.standing:
            records.settle_version(note_id, entry.standing, is_said=says_versions(entry.path))


def _with_creation(entry: Entry, row: Entry | None, records: NoteRecords) -> Entry:
    """Return the entry with its known creation time.

    The creation time is recorded if the file shows another time.
    """
    note, modified_at = entry.note, from_nanoseconds(entry.state.mtime_ns)
    dated = with_creation(note, modified_at, records.creation(note.id), row.note.created_at if row else None)
    if dated is note:
        return entry
    records.put_creation(note.id, dated.created_at)
    return attrs.evolve(entry, note=dated)


log = get_logger("lithos.scan")

_UNGUARDED = VanishRule()

#: Minimum number of known notes for which readers get these notes while the scan is still checking files.
MANY_KNOWN: Final = 20_000
#: Number of unread files above which readers get the known notes while the scan is still reading.
MANY_UNREAD: Final = 300

#: Progress callback with the number of files checked or read so far, and the total.
Progress = Callable[[int, int], None]
#: Callback that shows the known notes to readers until the scan has finished.
Show = Callable[[Catalogue], None]
#: Callback that returns the paths of notes in the history, by id. Called only if several files have the same
#: id.
PlacesOf = Callable[[Collection[str]], Mapping[str, RecordedPath]]


@frozen
class ScanResult:
    """The events about changes made while no server was running, and the updates for the manifest."""

    events: tuple[EventDraft, ...]
    rows: tuple[Entry, ...]
    removed: tuple[str, ...]
    found: int
    examined: int
    #: Ids of notes that are not removed although their files have vanished (deletion guard:
    #: docs/spec/lifecycle.md §6).
    vanished: tuple[str, ...] = ()


@frozen
class _Told:
    """The state of a note according to the last event about the note."""

    path: str
    standing: AssignedVersion
    tags: tuple[str, ...]


def _drop_vanished(
    files: NoteFiles, found: dict[str, FoundFile], examined: dict[str, Entry | SkippedFile]
) -> set[str]:
    """Remove from both mappings the files that vanished between the listing and the check.

    Return the paths of these files.
    """
    unreadable = [path for path, seen in examined.items() if isinstance(seen, SkippedFile)]
    lost = {path for path in unreadable if current_state(files, path) is None}
    for path in lost:
        del found[path], examined[path]
    return lost


def _read_again(found: Iterable[str], rows: Mapping[str, Entry], *, reads_links: bool) -> list[str]:
    """Return the paths of known files that must be read again even if they are unchanged.

    Files with broken frontmatter are read again, because the rules for broken frontmatter may have changed
    since the last run.

    If the rules for links have changed, all known files are read again.
    """
    return [
        path
        for path in found
        if path in rows and (reads_links or rows[path].note.frontmatter_error is not None)
    ]


def scan_folder(
    files: NoteFiles,
    manifest: Manifest,
    catalogue: Catalogue,
    announced: Sequence[Event],
    now: datetime,
    rule: VanishRule = _UNGUARDED,
    tell: Progress = lambda done, total: None,
    recorded: PlacesOf = lambda ids: {},
    show: Show = lambda known: None,
    versions: VersionsOf = lambda note_id: (),
) -> ScanResult:
    """Fill an empty catalogue. Blocks, so run this in a worker thread before any other use of the catalogue.

    `announced` are the events journalled after the manifest's position. A killed process may have announced
    changes without entering them in the manifest; these changes are not announced again. Without a manifest,
    `announced` only supplies versions, because a first scan does not emit events. Notes of vanished files are
    kept if `rule` requires this. Versions and ids that files do not contain come from the catalogue's
    records, which are updated. `tell` is called for every file that is read, and may raise to end the scan.
    `recorded` returns the earlier paths of notes that are neither in the manifest nor in `announced`. If the
    scan takes long, `show` first gets the notes of the manifest, and later the same notes without those whose
    files have vanished. `versions` returns the kept versions of a note. They are compared with files without
    an id, which may be conflict copies.
    """
    records = catalogue.records
    rows = {row.path: row for row in manifest.load()}
    records.keep_ids(manifest.former_ids)
    shown = _show(rows.values(), catalogue, show) if len(rows) >= MANY_KNOWN else None
    found = {file.path: file for file in files.list_notes()}
    plan = plan_files(
        {path: row.state for path, row in rows.items()}, {path: file.state for path, file in found.items()}
    )
    if rows and len(plan.examine) > MANY_UNREAD:
        gone = set(plan.missing)
        shown = _show((row for path, row in rows.items() if path not in gone), catalogue, show)
    for path in list_attachments(str(files.root)):
        catalogue.files.add(path)
    examined: dict[str, Entry | SkippedFile] = {}
    known = len(found) - len(plan.examine)
    tell(known, len(found))
    reads_links = manifest.has_old_links
    again = _read_again(found, rows, reads_links=reads_links)
    for number, path in enumerate(dict.fromkeys((*plan.examine, *again)), start=known + 1):
        examined[path] = _look(files, found[path], rows.get(path), catalogue, reads_links=reads_links)
        tell(number, len(found))
    catalogue.reserve_serials(max((row.serial for row in rows.values()), default=0))
    lost = _drop_vanished(files, found, examined)
    absent = (*plan.missing, *sorted(lost & rows.keys()))
    hidden = {path: seen for path in absent if (seen := _examine_hidden(files, path))}
    read = {path: rows[path] for path in found if path not in examined}
    read |= {path: seen for path, seen in examined.items() if isinstance(seen, Entry)}
    unread = [*hidden, *(path for path, seen in examined.items() if isinstance(seen, SkippedFile))]
    named = name_entries(read, rows, (path for path in absent if path not in hidden), unread, records)
    _follow_own(named, rows, records)
    copies = _find_copies(files, named, rows, catalogue, versions)
    told = _recall(rows.values(), announced) if announced else {}
    entries = _elect(
        [*found, *hidden], rows, {**examined, **named, **copies, **hidden}, catalogue, told, recorded
    )
    missing = [
        rows[path]
        for path in absent
        if path not in hidden and rows[path].note.id not in entries and not files.excludes(path)
    ]
    vanished = _choose_kept(missing, rows, entries, rule)
    entries |= {row.note.id: row for row in vanished}
    ids = {str(event.draft.payload.get("id")) for event in announced}
    given = {each: told[each].standing for each in ids & told.keys()}
    give_versions(
        entries,
        rows.values(),
        given,
        records,
        says_versions=lambda path: not catalogue.style.at(path).minimal_frontmatter,
    )
    if shown is not None and _are_same(entries, rows):
        catalogue.adopt(shown)
    else:
        catalogue.load(entries.values())
    changed = [entry for entry in entries.values() if _differs(entry, rows.get(entry.path))]
    paths = {entry.path for entry in entries.values()}
    removed = tuple(path for path in rows if path not in paths)
    # If all notes are as in the manifest, there are no changes to announce and no duplicates to decide.
    is_known = manifest.is_new or not (announced or changed or removed)
    told = told if announced or is_known else _recall(rows.values(), ())
    events = () if is_known else tuple(_events(told, entries, now))
    _prune(records, catalogue, paths)
    for path, why in catalogue.skipped.items():
        log.warning("file not indexed", path=path, reason=why.reason)
    _warn_of_claims(catalogue)
    kept = tuple(row.note.id for row in vanished)
    return ScanResult(events, tuple(changed), removed, len(found), len(examined), kept)


def _follow_own(named: Mapping[str, Entry], rows: Mapping[str, Entry], records: NoteRecords) -> None:
    """Move the marks of separate notes to the new paths of moved files. People have set these marks."""
    if not records.has_own:
        return
    former = {row.note.id: path for path, row in rows.items() if records.is_own(path) and path not in named}
    for path, entry in named.items():
        if entry.note.id in former:
            records.move_own(former[entry.note.id], path)


def _find_copies(
    files: NoteFiles,
    named: Mapping[str, Entry],
    rows: Mapping[str, Entry],
    catalogue: Catalogue,
    versions: VersionsOf,
) -> dict[str, SkippedFile]:
    """Return the conflict copies among the files that do not contain an id."""
    found: dict[str, SkippedFile] = {}
    if not catalogue.style.knows_copies:
        return found

    def at(path: str) -> Entry | None:
        entry = named.get(path)
        return None if path in found or _is_second(entry, named) else entry

    kinship = Kinship(files, at, catalogue.records.is_own, versions)
    # A file that was a note before, at this path or another, is still a note if a person could have chosen
    # its name.
    held = {row.note.id for row in rows.values()}
    known = {path for path, entry in named.items() if path in rows or entry.note.id in held}
    doubtful = {
        path: entry
        for path, entry in named.items()
        if not entry.identified
        and kinship.may_be_copy(path, is_note=path in known)
        and not says_own_note(entry.note.extra)
    }
    kinship = attrs.evolve(kinship, undecided=doubtful)
    # Copies of copies have longer names, so the file from which a name is derived is decided first.
    for path, entry in sorted(doubtful.items(), key=lambda each: (len(each[0]), each[0])):
        original = kinship.find_original(path, entry.note.id, is_note=path in known)
        if original is not None:
            found[path] = conflict_copy(entry, original.note.id, original.path, names_id=False)
    return found


def _is_second(entry: Entry | None, named: Mapping[str, Entry]) -> bool:
    """Return whether a file has the same id as the note from whose name its name is derived."""
    if entry is None or not entry.identified:
        return False
    originals = (named.get(name.original) for name in all_copy_names(entry.path))
    return any(each is not None and each.note.id == entry.note.id for each in originals)


def _show(rows: Iterable[Entry], catalogue: Catalogue, show: Show) -> Catalogue:
    known = catalogue.like()
    known.load(rows)
    show(known)
    return known


def _are_same(entries: Mapping[str, Entry], rows: Mapping[str, Entry]) -> bool:
    """Return whether the notes are exactly the notes of the manifest."""
    return len(entries) == len(rows) and all(rows.get(each.path) is each for each in entries.values())


def _choose_kept(
    missing: Sequence[Entry],
    rows: Mapping[str, Entry],
    entries: Mapping[str, Entry],
    rule: VanishRule,
) -> list[Entry]:
    """Return the notes that stay in the catalogue although their files have vanished.

    A note whose file did not contain an id is not lost if its bytes are found at a new path.
    """
    arrived = {entry.digest for entry in entries.values() if entry.path not in rows}
    lost = {row.path: row for row in missing if row.identified or row.digest not in arrived}
    return [lost[path] for path in sorted(plan_vanished(lost, len(rows), rule))]


def _look(
    files: NoteFiles, file: FoundFile, row: Entry | None, catalogue: Catalogue, *, reads_links: bool = False
) -> Entry | SkippedFile:
    """Read a new or changed file. The result does not contain its text.

    `_elect` assigns the serial number later.

    `reads_links` means that older rules found the known links, so the links must be read again.
    """
    is_whole = row is None or (row.note.frontmatter_error is None and not reads_links)
    stand_in = catalogue.records.id_at(file.path)
    seen = examine(files, file, row if is_whole else None, stand_in, catalogue.style)
    if seen.document is None:
        return SkippedFile(seen.reason, seen.state)
    if row is not None and row.digest == seen.digest:
        note = attrs.evolve(seen.document.note, id=row.note.id, version=row.note.version)
        links = row.links if seen.is_known else seen.links
        return attrs.evolve(row, state=seen.state, note=note, links=links)
    return make_entry(seen, serial=0)


def _examine_hidden(files: NoteFiles, path: str) -> SkippedFile | None:
    """Return why a known file exists but is not listed. For example, its folder may be unreadable."""
    try:
        files.read(path)
    except (FileNotFoundError, NotADirectoryError, OutsideKnowledge):
        return None
    except OSError as failure:
        return SkippedFile(f"the file cannot be read: {failure}", UNKNOWN_STATE)
    return None


def _elect(
    paths: Iterable[str],
    rows: Mapping[str, Entry],
    examined: Mapping[str, Entry | SkippedFile],
    catalogue: Catalogue,
    told: Mapping[str, _Told],
    recorded: PlacesOf,
) -> dict[str, Entry]:
    """Return one entry per id. The catalogue records the skipped files with the reasons.

    A known file that is now unreadable keeps its id and its last indexed state.
    """
    serials = {row.note.id: row.serial for row in rows.values()}
    entries: dict[str, Entry] = {}
    claimants: dict[str, list[Entry]] = {}
    for path in sorted(paths):
        row, seen = rows.get(path), examined.get(path)
        if isinstance(seen, SkippedFile):
            catalogue.skip(path, seen)
            if row is None or seen.copy is not None:
                continue
            seen = row
        assert seen is not None
        first = entries.setdefault(seen.note.id, seen)
        if first is not seen:
            claimants.setdefault(seen.note.id, [first]).append(seen)
    if claimants:
        places = _places(claimants, rows, told, recorded)
        for note_id, several in claimants.items():
            _settle_claims(note_id, several, places[note_id], entries, catalogue)
    for note_id, entry in entries.items():
        serial = serials.get(note_id)
        if serial is None or serial != entry.serial:
            entries[note_id] = attrs.evolve(
                entry, serial=catalogue.take_serial() if serial is None else serial
            )
    return entries


def _places(
    claimants: Mapping[str, Sequence[Entry]],
    rows: Mapping[str, Entry],
    told: Mapping[str, _Told],
    recorded: PlacesOf,
) -> dict[str, list[RecordedPath]]:
    """Return the known paths of notes whose ids several files contain. The most reliable path comes first."""
    places: dict[str, list[RecordedPath]] = {note_id: [] for note_id in claimants}
    for note_id in claimants.keys() & told.keys():
        places[note_id].append((told[note_id].path, told[note_id].standing.digest))
    for row in rows.values():
        if row.note.id in places:
            places[row.note.id].append((row.path, row.digest))
    files = {note_id: {entry.path for entry in several} for note_id, several in claimants.items()}
    unknown = [
        note_id for note_id, known in places.items() if not any(path in files[note_id] for path, _ in known)
    ]
    for note_id, place in (recorded(unknown) if unknown else {}).items():
        places[note_id].append(place)
    return places


def _settle_claims(
    note_id: str,
    claimants: Sequence[Entry],
    places: Sequence[RecordedPath],
    entries: dict[str, Entry],
    catalogue: Catalogue,
) -> None:
    """Decide which of several files gets an id.

    The files that do not get the id are skipped. A file that does not contain an id gets another id.
    """
    path = elect([entry.claim for entry in claimants], places).path
    for entry in claimants:
        if entry.path == path:
            entries[note_id] = entry
        elif entry.path in catalogue.skipped:
            continue  # the file is unreadable, which is recorded as the more important error
        elif entry.identified:
            catalogue.skip(entry.path, second_file(entry, note_id, path, catalogue.style))
        else:
            free = catalogue.records.free_id(entry.path, entries.__contains__)
            entries[free] = _with_id(entry, free)


def _differs(entry: Entry, row: Entry | None) -> bool:
    """Return whether an entry differs from its manifest row.

    Identities are compared first, because nearly all notes are unchanged.
    """
    if row is not None and entry.note is row.note and entry.state is row.state:
        return entry.serial != row.serial
    return row != entry


def _recall(rows: Iterable[Entry], announced: Iterable[Event]) -> dict[str, _Told]:
    """Return the last announced state of each note, from the manifest and the events after it."""
    told = {row.note.id: _Told(row.path, row.standing, row.note.all_tags) for row in rows}
    for event in announced:
        draft, note_id = event.draft, str(event.draft.payload.get("id"))
        if draft.type == NOTE_DELETED:
            told.pop(note_id, None)
        elif draft.type in (NOTE_CREATED, NOTE_UPDATED, NOTE_RENAMED):
            path = draft.payload["dest_path" if draft.type == NOTE_RENAMED else "path"]
            standing = AssignedVersion(origin_version(draft.origin) or 1, origin_digest(draft.origin) or "")
            told[note_id] = _Told(str(path), standing, draft.tags)
    return told


def _events(told: Mapping[str, _Told], entries: Mapping[str, Entry], now: datetime) -> Iterator[EventDraft]:
    for note_id, entry in entries.items():
        last = told.get(note_id)
        kind = plan_event((last.path, last.standing.digest) if last else None, (entry.path, entry.digest))
        if kind is not None:
            yield draft_change(kind, entry, last.path if last else "", SCAN_AGENT, now)
    for note_id, last in told.items():
        if note_id not in entries:
            payload = {"id": note_id, "path": last.path}
            yield draft_event(NOTE_DELETED, payload, last.standing, last.tags, SCAN_AGENT, now)


def _prune(records: NoteRecords, catalogue: Catalogue, paths: set[str]) -> None:
    """Delete the records of notes and paths that do not exist.

    While any file is unreadable, versions are not deleted, because that file may be one of the notes.
    """
    unread = {path for path, why in catalogue.skipped.items() if why.note_id is None}
    if not unread:
        records.prune([entry.note.id for entry in catalogue], paths)
    else:
        records.prune_paths(paths | unread)


def _warn_of_claims(catalogue: Catalogue) -> None:
    """Log how many notes lost a slug or URL to a note whose path sorts earlier."""
    for what, number in (("slug", catalogue.surplus_slugs), ("source_url", catalogue.urls.surplus)):
        if number:
            log.warning("duplicate slugs or URLs found", key=what, surplus=number)
