"""From a write request to the bytes, the catalogue entry and the event it will become.

Everything is worked out before anything is written; nothing here does I/O.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime

import attrs
from attrs import frozen

from lithos.actors.catalogue import Catalogue, Entry, digest_of
from lithos.actors.decisions import (
    Decision,
    check_values,
    decide_creation,
    decide_patch,
    decide_update,
    no_such_note,
    path_collision,
)
from lithos.actors.requests import DeleteNote, PatchNote, UpdateRequest, WriteNote, WriteOutcome
from lithos.core.errors import InvalidInput, LithosError, StorageFailed
from lithos.core.events import NOTE_CREATED, NOTE_DELETED, NOTE_UPDATED, TOOL, EventDraft
from lithos.core.frontmatter import (
    UnreadableNote,
    is_identified,
    parse_document,
    render_document,
    rewrite_document,
)
from lithos.core.links import scan_links
from lithos.core.model import Document
from lithos.core.note_values import normalise_note
from lithos.core.times import from_nanoseconds
from lithos.stores.files import FileChanged, FileOccupied, FileState, OutsideKnowledge, Put, ReadFile, Remove
from lithos.telemetry import get_logger

log = get_logger("lithos.writer")

#: A name that is too long, or a file that stands where the path wants a folder.
_UNUSABLE_PATH = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST)
_NOT_WRITTEN_YET = FileState(0, 0)


@frozen
class Prepared:
    """A decided change, ready to be written; `document` is None for a deletion."""

    operation: Put | Remove
    entry: Entry
    document: Document | None
    outcome: WriteOutcome
    event: EventDraft


class Preparation:
    """Works requests out against the catalogue as it stands; refusals are raised."""

    def __init__(
        self,
        catalogue: Catalogue,
        content_limit: int,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._catalogue = catalogue
        self._content_limit = content_limit
        self.clock = clock
        self._new_id = new_id

    def prepare_creation(self, request: WriteNote) -> Prepared:
        """A new note."""
        decision = decide_creation(
            request,
            self._catalogue,
            note_id=self._new_id(),
            now=self.clock(),
            content_limit=self._content_limit,
        )
        data = _render(decision.document)
        entry = _entry(decision, data, self._catalogue.take_serial(), identified=True)
        return _prepared(Put(decision.path, data, None), entry, decision, request.agent, created=True)

    def prepare_update(self, request: UpdateRequest, source: ReadFile | Exception | None) -> Prepared:
        """A new version of what `source`, the note's file, says now."""
        assert request.id is not None
        if isinstance(request, WriteNote):
            check_values(request, self._content_limit)
        entry = self._catalogue.get(request.id)
        if entry is None or source is None:
            raise no_such_note(request)
        if isinstance(source, Exception):
            raise _explain_unreadable(entry.path, source)
        decision, data = self._rewrite(request, entry, source)
        new = _entry(decision, data, entry.serial, identified=is_identified(data))
        operation = Put(entry.path, data, source.state)
        source_name = request.source if isinstance(request, PatchNote) else TOOL
        return _prepared(operation, new, decision, request.agent, created=False, source=source_name)

    def _rewrite(self, request: UpdateRequest, entry: Entry, source: ReadFile) -> tuple[Decision, bytes]:
        modified = from_nanoseconds(source.state.mtime_ns)
        try:
            old = parse_document(source.data, entry.path, modified)
        except UnreadableNote as problem:
            raise _cannot_update(entry.path, problem) from problem
        if old.note.id != entry.note.id:
            raise no_such_note(request)
        decision = self._decide(request, old, entry.path)
        replace = isinstance(request, WriteNote)
        try:
            data = rewrite_document(
                source.data, entry.path, modified, decision.document, replace_body=replace
            )
        except UnreadableNote as problem:
            _render(decision.document)  # when no file could hold these values, the file is not to blame
            raise _cannot_update(entry.path, problem) from problem
        return decision, data

    def _decide(self, request: UpdateRequest, old: Document, path: str) -> Decision:
        now = self.clock()
        if isinstance(request, WriteNote):
            limit = self._content_limit
            return decide_update(request, old, path, self._catalogue, now=now, content_limit=limit)
        return decide_patch(request, old, path, self._catalogue, now=now)

    def prepare_deletion(self, request: DeleteNote, source: ReadFile | Exception | None) -> Prepared:
        """The end of a note; `source`, its file, must not be another note's by now."""
        entry = self._catalogue.get(request.id)
        if entry is None or (isinstance(source, ReadFile) and _is_of_another(entry, source)):
            raise no_such_note(request)
        event = EventDraft(
            type=NOTE_DELETED,
            agent=request.agent,
            payload={"id": entry.note.id, "path": entry.path},
            timestamp=self.clock(),
            tags=entry.note.tags,
        )
        outcome = WriteOutcome("deleted", entry.note.id, entry.path, entry.note.version)
        return Prepared(Remove(entry.path), entry, None, outcome, event)

    def explain(self, prepared: Prepared, failure: Exception) -> LithosError:
        """What to tell the caller when the file system refused a change."""
        path = prepared.entry.path
        if isinstance(failure, FileOccupied):
            return path_collision(path, self._catalogue)
        if isinstance(failure, OutsideKnowledge):
            return InvalidInput(f"The path {path} must stay within knowledge directory; it leads out of it.")
        if isinstance(failure, OSError) and failure.errno in _UNUSABLE_PATH:
            return InvalidInput(f"The path {path} cannot be used: {failure.strerror}. Choose another path.")
        if isinstance(failure, FileChanged):
            return StorageFailed(
                f"The file {path} keeps changing while it is written. Nothing was changed; retry in a moment."
            )
        reason = failure.strerror if isinstance(failure, OSError) else str(failure)
        log.error("note file not written", path=path, reason=str(failure))
        return StorageFailed(
            f"The file {path} could not be written: {reason}. Nothing was changed; "
            "check free space and permissions, then retry."
        )


def _render(document: Document) -> bytes:
    """The note as a new file; raises `InvalidInput` when no file can hold it."""
    try:
        return render_document(document)
    except UnreadableNote as problem:
        raise InvalidInput(f"The note cannot be stored as a file: {problem.reason}.") from problem


def _cannot_update(path: str, problem: UnreadableNote) -> StorageFailed:
    return StorageFailed(
        f"The file {path} cannot be updated: {problem.reason}. Nothing was changed; "
        "mend its frontmatter in an editor, then retry."
    )


def _entry(decision: Decision, data: bytes, serial: int, *, identified: bool) -> Entry:
    document = decision.document
    return Entry(
        serial=serial,
        path=decision.path,
        note=normalise_note(document.note),
        digest=digest_of(data),
        state=_NOT_WRITTEN_YET,
        identified=identified,
        links=tuple(link.target for link in scan_links(document.content)),
    )


def _prepared(
    operation: Put, entry: Entry, decision: Decision, agent: str, *, created: bool, source: str = TOOL
) -> Prepared:
    note = entry.note
    event = EventDraft(
        type=NOTE_CREATED if created else NOTE_UPDATED,
        agent=agent,
        payload={"id": note.id, "title": note.title, "path": entry.path},
        timestamp=note.updated_at,
        tags=note.tags,
        origin=f"{source}:{entry.digest}",
    )
    outcome = WriteOutcome(
        "created" if created else "updated", note.id, entry.path, note.version, decision.warnings
    )
    document = attrs.evolve(decision.document, note=note)
    return Prepared(operation, entry, document, outcome, event)


def _is_of_another(entry: Entry, source: ReadFile) -> bool:
    if digest_of(source.data) == entry.digest:
        return False
    try:
        document = parse_document(source.data, entry.path, from_nanoseconds(source.state.mtime_ns))
    except UnreadableNote:
        return False  # nobody else's: what is left of this note
    return document.note.id != entry.note.id


def _explain_unreadable(path: str, failure: Exception) -> LithosError:
    if isinstance(failure, FileNotFoundError):
        return StorageFailed(
            f"The file {path} of this note is missing. Nothing was changed; put the file back, then retry."
        )
    return StorageFailed(
        f"The file {path} cannot be read: {failure}. Nothing was changed; check its permissions."
    )
