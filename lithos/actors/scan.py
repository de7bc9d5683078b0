"""The start scan: makes the catalogue agree with the folder (lifecycle spec, section 4).

Files whose size and mtime are as the manifest remembers are not read. Sorted path order decides
who keeps an id, a slug or a URL. Nothing here changes a note file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import attrs
from attrs import frozen

from lithos.actors.catalogue import Catalogue, Entry, Skipped, entry_of
from lithos.actors.examination import (
    draft_change,
    draft_event,
    duplicate,
    examine,
    make_entry,
)
from lithos.core.events import (
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
    EventDraft,
    origin_digest,
)
from lithos.core.plan import VanishRule, plan_event, plan_files, plan_vanished
from lithos.stores.files import FoundFile, NoteFiles, OutsideKnowledge
from lithos.stores.manifest import Manifest, ManifestRow
from lithos.stores.note_lookup import UNKNOWN_STATE
from lithos.telemetry import get_logger

log = get_logger("lithos.scan")

SCAN_AGENT = "scan"
_UNGUARDED = VanishRule()


@frozen
class ScanResult:
    """Events of what changed while no server ran, and what the manifest has to learn."""

    events: tuple[EventDraft, ...]
    rows: tuple[ManifestRow, ...]
    removed: tuple[str, ...]
    found: int
    examined: int
    #: Ids of notes whose files have vanished but which stay known (lifecycle spec, section 6).
    vanished: tuple[str, ...] = ()


@frozen
class _Told:
    """What was last announced of a note."""

    path: str
    digest: str
    tags: tuple[str, ...]


def scan_folder(
    files: NoteFiles,
    manifest: Manifest,
    catalogue: Catalogue,
    announced: Iterable[Event],
    now: datetime,
    rule: VanishRule = _UNGUARDED,
) -> ScanResult:
    """Fill an empty catalogue. Blocks; run it in a worker thread before anything else uses the catalogue.

    `announced` are the events journalled after the manifest's position: changes that a killed
    process announced but did not enter in the manifest are not announced again. A first scan
    emits no events. Notes of vanished files stay known where `rule` says so.
    """
    rows = {row.path: row for row in manifest.load()}
    found = {file.path: file for file in files.list_notes()}
    plan = plan_files(
        {path: row.state for path, row in rows.items()}, {path: file.state for path, file in found.items()}
    )
    examined = {path: _look(files, found[path], rows.get(path)) for path in plan.examine}
    catalogue.reserve_serials(max((row.serial for row in rows.values()), default=0))
    hidden = {path: seen for path in plan.missing if (seen := _examine_hidden(files, path))}
    entries = _elect([*found, *hidden], rows, {**examined, **hidden}, catalogue)
    missing = [
        rows[path] for path in plan.missing if path not in hidden and rows[path].note.id not in entries
    ]
    vanished = _choose_kept(missing, rows, entries, rule)
    entries |= {row.note.id: entry_of(row) for row in vanished}
    catalogue.load(entries.values())
    changed = [entry for entry in entries.values() if _differs(entry, rows.get(entry.path))]
    paths = {entry.path for entry in entries.values()}
    removed = tuple(path for path in rows if path not in paths)
    events = () if manifest.is_new else tuple(_events(_recall(rows.values(), announced), entries, now))
    for path, skipped in catalogue.skipped.items():
        log.warning("file not indexed", path=path, reason=skipped.reason)
    _warn_of_claims(catalogue)
    kept = tuple(row.note.id for row in vanished)
    return ScanResult(
        events, tuple(entry.to_row() for entry in changed), removed, len(found), len(examined), kept
    )


def _choose_kept(
    missing: Sequence[ManifestRow],
    rows: Mapping[str, ManifestRow],
    entries: Mapping[str, Entry],
    rule: VanishRule,
) -> list[ManifestRow]:
    """The vanished notes that stay known. A file without id that moved is another note, but not lost."""
    arrived = {entry.digest for entry in entries.values() if entry.path not in rows}
    lost = {row.path: row for row in missing if row.identified or row.digest not in arrived}
    return [lost[path] for path in sorted(plan_vanished(lost, len(rows), rule))]


def _look(files: NoteFiles, file: FoundFile, row: ManifestRow | None) -> Entry | Skipped:
    """A file that is new or was touched, without its text; its number is settled when it is elected."""
    seen = examine(files, file, row)
    if seen.document is None:
        return Skipped(seen.reason, seen.state)
    if row is not None and row.digest == seen.digest:
        return entry_of(attrs.evolve(row, state=seen.state))
    return make_entry(seen, serial=0)


def _examine_hidden(files: NoteFiles, path: str) -> Skipped | None:
    """Why a known file is not listed although it has not vanished: its folder may be unreadable."""
    try:
        files.read(path)
    except (FileNotFoundError, NotADirectoryError, OutsideKnowledge):
        return None
    except OSError as failure:
        return Skipped(f"it cannot be read: {failure}", UNKNOWN_STATE)
    return None


def _elect(
    paths: Iterable[str],
    rows: Mapping[str, ManifestRow],
    examined: Mapping[str, Entry | Skipped],
    catalogue: Catalogue,
) -> dict[str, Entry]:
    """One entry per id, in path order; the catalogue learns what was passed over and why.

    A known file that became unreadable keeps its last indexed state, unless its note is elsewhere.
    """
    serials = {row.note.id: row.serial for row in rows.values()}
    entries: dict[str, Entry] = {}
    unread: list[ManifestRow] = []
    for path in sorted(paths):
        row, seen = rows.get(path), examined.get(path)
        if isinstance(seen, Skipped):
            catalogue.skipped[path] = seen
            unread += [row] if row is not None else []
            continue
        entry = seen or entry_of(rows[path])
        holder = entries.get(entry.note.id)
        if holder is not None:
            catalogue.skipped[path] = duplicate(entry.note.id, holder.path, entry.state)
            continue
        serial = serials.get(entry.note.id)
        if serial is None or serial != entry.serial:
            entry = attrs.evolve(entry, serial=catalogue.take_serial() if serial is None else serial)
        entries[entry.note.id] = entry
    return {row.note.id: entry_of(row) for row in unread} | entries


def _differs(entry: Entry, row: ManifestRow | None) -> bool:
    """Whether the manifest has to learn of it; most notes are what it says, and not looked at closer."""
    if row is not None and entry.note is row.note and entry.state is row.state:
        return entry.serial != row.serial
    return row != entry.to_row()


def _recall(rows: Iterable[ManifestRow], announced: Iterable[Event]) -> dict[str, _Told]:
    """What listeners know of each note: the manifest's state and what was announced after it."""
    told = {row.note.id: _Told(row.path, row.digest, row.note.tags) for row in rows}
    for event in announced:
        draft, note_id = event.draft, str(event.draft.payload.get("id"))
        if draft.type == NOTE_DELETED:
            told.pop(note_id, None)
        elif draft.type in (NOTE_CREATED, NOTE_UPDATED, NOTE_RENAMED):
            path = draft.payload["dest_path" if draft.type == NOTE_RENAMED else "path"]
            told[note_id] = _Told(str(path), origin_digest(draft.origin) or "", draft.tags)
    return told


def _events(told: Mapping[str, _Told], entries: Mapping[str, Entry], now: datetime) -> Iterator[EventDraft]:
    for note_id, entry in entries.items():
        last = told.get(note_id)
        kind = plan_event((last.path, last.digest) if last else None, (entry.path, entry.digest))
        if kind is not None:
            yield draft_change(kind, entry, last.path if last else "", SCAN_AGENT, now)
    for note_id, last in told.items():
        if note_id not in entries:
            payload = {"id": note_id, "path": last.path}
            yield draft_event(NOTE_DELETED, payload, last.digest, last.tags, SCAN_AGENT, now)


def _warn_of_claims(catalogue: Catalogue) -> None:
    """Say how many notes lost a slug or URL to an earlier path."""
    lost: Sequence[tuple[str, int]] = (
        ("slug", catalogue.slugs.surplus),
        ("source_url", catalogue.urls.surplus),
    )
    for what, number in lost:
        if number:
            log.warning("several notes want the same key", key=what, surplus=number)
