"""Reads note files into catalogue entries for the start scan and the watcher.

The module also drafts the change events.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs
from attrs import field, frozen

from lithos.kernel.values.events import NOTE_CONFLICT_COPY, NOTE_RENAMED, EventDraft, note_origin
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import ConflictCopy, Entry, SkippedFile
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import FileState, FoundFile, OutsideKnowledge, digest_of, state_of
from lithos.notes.format.document import parse_identified
from lithos.notes.links.links import targets_in
from lithos.notes.model.copies import is_copy_of, is_weakly_named
from lithos.notes.model.note import AssignedVersion, Document, Note
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

#: Maximum size in bytes of a file that is read as a note. A larger file could exhaust the memory.
LARGEST_FILE = 64 * 1024 * 1024


@frozen
class Examined:
    """The result of reading a file: its document, or the reason why the file cannot be a note.

    `is_known` means that the content hash equals the last indexed hash of the file. Such a file was not
    parsed: its document has the known note, but no content.
    """

    path: str
    state: FileState
    digest: str
    identified: bool
    document: Document | None
    reason: str = ""
    is_known: bool = False
    #: Link targets in the note, including repeated targets.
    links: tuple[str, ...] = ()
    #: The bytes of the file if they must be stored as a version, else None.
    data: bytes | None = field(default=None, repr=False, eq=False)


def examine(
    files: NoteFiles,
    file: FoundFile,
    known: Entry | None,
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
    *,
    keeps_data: bool = False,
) -> Examined:
    """Read one file, and parse it if it has changed.

    `stand_in` is the id if the file does not contain one. Blocks.

    `known` is the last indexed entry of the file.
    """
    if file.state.size > LARGEST_FILE:
        return unreadable(
            file, f"the file has {file.state.size} bytes, more than the limit of {LARGEST_FILE}"
        )
    try:
        source = files.read(file.path)
    except (OSError, OutsideKnowledge) as failure:
        return unreadable(file, f"the file cannot be read: {failure}")
    digest = digest_of(source.data)
    if known is not None and known.digest == digest:
        document = Document(note=known.note, content="")
        return Examined(file.path, source.state, digest, known.identified, document, is_known=True)
    try:
        modified_at = from_nanoseconds(source.state.mtime_ns)
        document, identified = parse_identified(source.data, file.path, modified_at, stand_in, style)
    except UnreadableNote as problem:
        return Examined(file.path, source.state, digest, False, None, problem.reason)
    links = targets_in(source.data, document.content, file.path)
    data = source.data if keeps_data else None
    return Examined(file.path, source.state, digest, identified, document, links=links, data=data)


def examine_renamed(
    files: NoteFiles, lost: Mapping[str, FileState], style: VaultStyle = PLAIN
) -> list[Examined]:
    """Read the lost files that were renamed, directly or with their folder. Blocks.

    `lost` maps content hashes to file states, which a rename does not change. The search runs twice, because
    a directory walk takes time and may miss files that are renamed during the walk.
    """
    states = set(lost.values())
    for _ in range(2):
        found = [
            examine(files, FoundFile(path, state), None, style=style, keeps_data=True)
            for path, status in files.walk()
            if (state := state_of(status)) in states
        ]
        if found := [each for each in found if lost.get(each.digest) == each.state]:
            return found
    return []


def unreadable(file: FoundFile, reason: str) -> Examined:
    """Return the result for a file that exists but cannot be read."""
    return Examined(file.path, file.state, "", False, None, reason)


def second_file(
    file: Entry | Examined, note_id: str, holder_path: str, style: VaultStyle, *, is_own: bool = False
) -> SkippedFile:
    """Return why a file is not indexed if another file has the same id: it is a conflict copy or a duplicate.

    `is_own` means that a person marked the file as a separate note.
    """
    if style.knows_copies and not is_own and is_copy_of(file.path, holder_path, note_id):
        return conflict_copy(file, note_id, holder_path, names_id=True)
    return SkippedFile(f"DUPLICATE_ID: {holder_path} has the same id {note_id}", file.state, note_id)


def conflict_copy(file: Entry | Examined, note_id: str, original: str, *, names_id: bool) -> SkippedFile:
    """Return the record of a conflict copy, which is not indexed because it belongs to a note."""
    copy = ConflictCopy(file.digest, original, names_id, is_weakly_named(file.path, original))
    return SkippedFile(f"CONFLICT_COPY: another version of {original}", file.state, note_id, copy)


def with_id(examined: Examined, note_id: str) -> Examined:
    """Return the file with an assigned id that differs from the id derived from its path."""
    assert examined.document is not None
    note = examined.document.note
    sources = tuple(source for source in note.derived_from_ids if source != note_id)
    return with_note(examined, attrs.evolve(note, id=note_id, derived_from_ids=sources))


def with_version(examined: Examined, version: int) -> Examined:
    """Return the file with its effective version."""
    assert examined.document is not None
    note = examined.document.note
    return examined if note.version == version else with_note(examined, attrs.evolve(note, version=version))


def with_note(examined: Examined, note: Note) -> Examined:
    """Return the file with a changed note."""
    assert examined.document is not None
    return attrs.evolve(examined, document=attrs.evolve(examined.document, note=note))


def make_entry(examined: Examined, serial: int) -> Entry:
    """Return the catalogue entry for a file that was read completely."""
    assert examined.document is not None
    assert not examined.is_known
    return Entry(
        serial=serial,
        path=examined.path,
        note=examined.document.note,
        digest=examined.digest,
        state=examined.state,
        identified=examined.identified,
        links=examined.links,
    )


def draft_change(kind: str, entry: Entry, former_path: str, agent: str, now: datetime) -> EventDraft:
    """Return the event for a note that another program created, updated or renamed."""
    note = entry.note
    payload = {"id": note.id, "title": beginning(note.title, TITLE), "path": entry.path}
    if kind == NOTE_RENAMED:
        payload = {"id": note.id, "src_path": former_path, "dest_path": entry.path}
    return draft_event(kind, payload, entry.standing, note.all_tags, agent, now)


def draft_copy(original: Entry, path: str, agent: str, now: datetime) -> EventDraft:
    """Return the event for a conflict copy of a note at a path."""
    note = original.note
    payload = {"id": note.id, "title": beginning(note.title, TITLE), "path": original.path, "copy": path}
    return EventDraft(
        type=NOTE_CONFLICT_COPY, agent=agent, payload=payload, timestamp=now, tags=note.all_tags, origin=agent
    )


def draft_event(
    kind: str,
    payload: Mapping[str, str],
    standing: AssignedVersion,
    tags: tuple[str, ...],
    agent: str,
    now: datetime,
) -> EventDraft:
    """Return an event for an external change.

    The origin of the event contains the content digest. A later start scan compares the digest with the file.
    """
    origin = note_origin(agent, standing.digest, standing.version)
    return EventDraft(type=kind, agent=agent, payload=payload, timestamp=now, tags=tags, origin=origin)
