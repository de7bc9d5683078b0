"""The start scan: makes the catalogue agree with the folder (lifecycle spec, section 4).

Files whose size and mtime are as the manifest remembers are not read. Sorted path order decides
who keeps an id, a slug or a URL. Nothing here changes a note file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import attrs
from attrs import frozen

from lithos.actors.catalogue import Catalogue, Entry, digest_of, entry_of
from lithos.core.events import (
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
    EventDraft,
    origin_digest,
)
from lithos.core.frontmatter import UnreadableNote, is_identified, parse_document
from lithos.core.links import scan_links
from lithos.core.model import Document
from lithos.core.plan import plan_files
from lithos.core.times import from_nanoseconds
from lithos.stores.files import FileState, FoundFile, NoteFiles, OutsideKnowledge
from lithos.stores.manifest import Manifest, ManifestRow
from lithos.telemetry import get_logger

log = get_logger("lithos.scan")

SCAN_AGENT = "scan"


@frozen
class ScanResult:
    """Events of what changed while no server ran, and what the manifest has to learn."""

    events: tuple[EventDraft, ...]
    rows: tuple[ManifestRow, ...]
    removed: tuple[str, ...]
    found: int
    examined: int


@frozen
class _Examined:
    """A file that was read: its document, or why it cannot be a note."""

    path: str
    state: FileState
    digest: str
    identified: bool
    document: Document | None
    reason: str = ""


def scan_folder(
    files: NoteFiles,
    manifest: Manifest,
    catalogue: Catalogue,
    announced: Iterable[Event],
    now: datetime,
) -> ScanResult:
    """Fill an empty catalogue. Blocks; run it in a worker thread before anything else uses the catalogue.

    `announced` are the events journalled after the manifest's position: changes that a killed
    process announced but did not enter in the manifest are not announced again. A first scan
    emits no events.
    """
    rows = {row.path: row for row in manifest.load()}
    found = {file.path: file for file in files.list_notes()}
    plan = plan_files(
        {path: row.state for path, row in rows.items()}, {path: file.state for path, file in found.items()}
    )
    examined = {path: _examine(files, found[path], rows.get(path)) for path in plan.examine}
    catalogue.reserve_serials(max((row.serial for row in rows.values()), default=0))
    entries = _elect(found, rows, examined, catalogue)
    catalogue.load(entries.values())
    changed = [entry for entry in entries.values() if rows.get(entry.path) != entry.to_row()]
    removed = tuple(path for path in rows if path not in {entry.path for entry in entries.values()})
    events = () if manifest.is_new else tuple(_events(rows, entries, announced, now))
    for path, reason in catalogue.skipped.items():
        log.warning("file not indexed", path=path, reason=reason)
    _warn_of_claims(catalogue)
    return ScanResult(events, tuple(entry.to_row() for entry in changed), removed, len(found), len(examined))


def _examine(files: NoteFiles, file: FoundFile, row: ManifestRow | None) -> _Examined:
    try:
        source = files.read(file.path)
    except (OSError, OutsideKnowledge) as failure:
        return _Examined(file.path, file.state, "", False, None, f"it cannot be read: {failure}")
    digest = digest_of(source.data)
    if row is not None and row.digest == digest:
        # Only touched: everything known of it still holds.

        return _Examined(file.path, source.state, digest, row.identified, Document(note=row.note, content=""))
    try:
        document = parse_document(source.data, file.path, from_nanoseconds(source.state.mtime_ns))
    except UnreadableNote as problem:
        return _Examined(file.path, source.state, digest, False, None, problem.reason)
    return _Examined(file.path, source.state, digest, is_identified(source.data), document)


def _elect(
    found: Mapping[str, FoundFile],
    rows: Mapping[str, ManifestRow],
    examined: Mapping[str, _Examined],
    catalogue: Catalogue,
) -> dict[str, Entry]:
    """One entry per id, in path order; the catalogue learns what was passed over and why."""
    serials = {row.note.id: row.serial for row in rows.values()}
    entries: dict[str, Entry] = {}
    for path in sorted(found):
        entry = _entry(path, rows.get(path), examined.get(path), catalogue)
        if entry is None:
            continue
        holder = entries.get(entry.note.id)
        if holder is not None:
            catalogue.skipped[path] = f"DUPLICATE_ID: {holder.path} has the same id {entry.note.id}"
            continue
        serial = serials.get(entry.note.id)
        entries[entry.note.id] = attrs.evolve(
            entry, serial=catalogue.take_serial() if serial is None else serial
        )
    return entries


def _entry(
    path: str, row: ManifestRow | None, examined: _Examined | None, catalogue: Catalogue
) -> Entry | None:
    """The entry of one file; a known file that became unreadable keeps its last indexed state."""
    if examined is None:
        assert row is not None
        return entry_of(row)
    if examined.document is None:
        catalogue.skipped[path] = examined.reason
        return None if row is None else entry_of(row)
    if row is not None and row.digest == examined.digest:
        return entry_of(attrs.evolve(row, state=examined.state))
    return Entry(
        serial=0,
        path=path,
        note=examined.document.note,
        digest=examined.digest,
        state=examined.state,
        identified=examined.identified,
        links=tuple(link.target for link in scan_links(examined.document.content)),
    )


def _events(
    rows: Mapping[str, ManifestRow], entries: Mapping[str, Entry], announced: Iterable[Event], now: datetime
) -> Iterable[EventDraft]:
    known = {row.note.id: row for row in rows.values()}
    last = {str(event.draft.payload.get("id")): event.draft for event in announced}
    for note_id, entry in entries.items():
        row, said = known.get(note_id), last.get(note_id)
        if said is not None and origin_digest(said.origin) == entry.digest:
            continue
        payload = {"id": note_id, "title": entry.note.title, "path": entry.path}
        if row is None:
            yield _draft(NOTE_CREATED, payload, entry, now)
        elif row.path != entry.path:
            yield _draft(
                NOTE_RENAMED, {"id": note_id, "src_path": row.path, "dest_path": entry.path}, entry, now
            )
        elif row.digest != entry.digest:
            yield _draft(NOTE_UPDATED, payload, entry, now)
    for note_id, row in known.items():
        said = last.get(note_id)
        if note_id not in entries and (said is None or said.type != NOTE_DELETED):
            yield _draft(NOTE_DELETED, {"id": note_id, "path": row.path}, entry_of(row), now)


def _draft(kind: str, payload: Mapping[str, str], entry: Entry, now: datetime) -> EventDraft:
    return EventDraft(
        type=kind,
        agent=SCAN_AGENT,
        payload=payload,
        timestamp=now,
        tags=entry.note.tags,
        origin=f"{SCAN_AGENT}:{entry.digest}",
    )


def _warn_of_claims(catalogue: Catalogue) -> None:
    """Say how many notes lost a slug or URL to an earlier path."""
    lost: Sequence[tuple[str, int]] = (
        ("slug", catalogue.slugs.surplus),
        ("source_url", catalogue.urls.surplus),
    )
    for what, number in lost:
        if number:
            log.warning("several notes want the same key", key=what, surplus=number)
