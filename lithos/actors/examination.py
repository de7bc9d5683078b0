"""What a note file says, read for the start scan and for the watcher, and the event that tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from attrs import frozen

from lithos.actors.catalogue import Entry, Skipped, digest_of
from lithos.core.events import NOTE_RENAMED, EventDraft
from lithos.core.frontmatter import UnreadableNote, parse_identified
from lithos.core.links import scan_links
from lithos.core.model import Document, Note
from lithos.core.times import from_nanoseconds
from lithos.stores.files import FileState, FoundFile, NoteFiles, OutsideKnowledge

#: Bytes of a file that is still taken for a note: reading a larger one would cost all agents their memory.
LARGEST_FILE = 64 * 1024 * 1024


class Indexed(Protocol):
    """What is known of a file from its last indexing."""

    @property
    def digest(self) -> str: ...

    @property
    def identified(self) -> bool: ...

    @property
    def note(self) -> Note: ...


@frozen
class Examined:
    """A file that was read: its document, or the reason why it cannot be a note.

    `is_known`: its bytes are those indexed last, so the document has no content.
    """

    path: str
    state: FileState
    digest: str
    identified: bool
    document: Document | None
    reason: str = ""
    is_known: bool = False


def examine(files: NoteFiles, file: FoundFile, known: Indexed | None) -> Examined:
    """Read one file. Blocks."""
    if file.state.size > LARGEST_FILE:
        return unreadable(file, f"it has {file.state.size} bytes, more than {LARGEST_FILE}")
    try:
        source = files.read(file.path)
    except (OSError, OutsideKnowledge) as failure:
        return unreadable(file, f"it cannot be read: {failure}")
    digest = digest_of(source.data)
    if known is not None and known.digest == digest:
        document = Document(note=known.note, content="")
        return Examined(file.path, source.state, digest, known.identified, document, is_known=True)
    try:
        modified_at = from_nanoseconds(source.state.mtime_ns)
        document, identified = parse_identified(source.data, file.path, modified_at)
    except UnreadableNote as problem:
        return Examined(file.path, source.state, digest, False, None, problem.reason)
    return Examined(file.path, source.state, digest, identified, document)


def unreadable(file: FoundFile, reason: str) -> Examined:
    """A file that is there but cannot be read."""
    return Examined(file.path, file.state, "", False, None, reason)


def duplicate(note_id: str, holder_path: str, state: FileState) -> Skipped:
    """Why a second file of one id is not indexed."""
    return Skipped(f"DUPLICATE_ID: {holder_path} has the same id {note_id}", state, note_id)


def make_entry(examined: Examined, serial: int) -> Entry:
    """The catalogue entry of a file with a document that was read in full."""
    assert examined.document is not None
    assert not examined.is_known
    return Entry(
        serial=serial,
        path=examined.path,
        note=examined.document.note,
        digest=examined.digest,
        state=examined.state,
        identified=examined.identified,
        links=tuple(link.target for link in scan_links(examined.document.content)),
    )


def draft_change(kind: str, entry: Entry, former_path: str, agent: str, now: datetime) -> EventDraft:
    """The event of a note that appeared, changed or moved."""
    note = entry.note
    payload = {"id": note.id, "title": note.title, "path": entry.path}
    if kind == NOTE_RENAMED:
        payload = {"id": note.id, "src_path": former_path, "dest_path": entry.path}
    return draft_event(kind, payload, entry.digest, note.tags, agent, now)


def draft_event(
    kind: str, payload: Mapping[str, str], digest: str, tags: tuple[str, ...], agent: str, now: datetime
) -> EventDraft:
    """An event of a change that some other program made; a later start scan knows it by its digest."""
    return EventDraft(
        type=kind, agent=agent, payload=payload, timestamp=now, tags=tags, origin=f"{agent}:{digest}"
    )
