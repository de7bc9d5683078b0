"""Preparation of writes: turns a request into bytes, catalogue entry, reply and event, without I/O.

Everything is computed before anything is written.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import attrs
from attrs import define, frozen

from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import InvalidInput, LithosError, PathCollision, StorageFailed
from lithos.kernel.values.events import (
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_UPDATED,
    TOOL,
    EventDraft,
    note_origin,
)
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.displaced import MoveIntent
from lithos.notes.files.placeholders import FileInCloud
from lithos.notes.files.values import (
    FileBusy,
    FileChanged,
    FileOccupied,
    FileState,
    LinkedFile,
    Move,
    OutsideKnowledge,
    PathRedirected,
    Put,
    ReadFile,
    Remove,
    digest_of,
)
from lithos.notes.format.document import Rewritten, open_document, parse_document, render_document, told_by
from lithos.notes.format.pasted_file import check_said
from lithos.notes.format.tolerant_reading import normalise_note
from lithos.notes.links.links import targets_in
from lithos.notes.model.ignored import Ignored
from lithos.notes.model.note import Document, Note, current_of
from lithos.notes.model.versions import NewVersion
from lithos.notes.writing.messages import (
    DeleteNote,
    NoteAway,
    NoteBusy,
    PatchNote,
    UpdateRequest,
    WriteNote,
    WriteOutcome,
    WriteRequest,
)
from lithos.notes.writing.rebasing import Rebased
from lithos.notes.writing.write_rules import (
    Decision,
    check_values,
    check_version,
    decide_creation,
    decide_update,
    no_such_note,
    path_collision,
    refuse_broken,
)
from lithos.text.yaml.layout import trim_content
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

log = get_logger("lithos.writer")

#: Error numbers for a name that is too long, or for a file at a path that should be a folder.
_UNUSABLE_PATH = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST)
#: Errors for a file or folder that does not exist or is of the wrong kind.
FILE_GONE = (FileNotFoundError, NotADirectoryError)
_NOT_WRITTEN_YET = FileState(0, 0)


@frozen
class Passed:
    """A state between two edits of a round. It gets a version but is never written to the file.

    `entry` is the note in this state.
    """

    entry: Entry
    data: bytes

    @property
    def path(self) -> str:
        """The path of the note's file."""
        return self.entry.path


@frozen
class Prepared:
    """A validated change that is ready to be written. For a deletion, `document` is `None`.

    If the operation is a `Passed` state, `entry` and `document` are the result of the note's last edit in the
    round.
    """

    operation: Put | Remove | Move | Passed
    entry: Entry
    document: Document | None
    outcome: WriteOutcome
    event: EventDraft
    #: True if the file itself contains the version of the note.
    says_version: bool = True
    #: For a move: the intent to journal before the file is renamed.
    intent: MoveIntent | None = None
    #: For an edit that shares its file write with earlier edits: the note after the previous edit.
    former: Entry | None = None
    #: The operation that the history records, if it differs from that of the change
    #: (`notes.model.versions.RESTORED`).
    op: str | None = None
    #: The person who approved the change.
    approved_by: str | None = None
    #: Versions of a note from another vault. They are stored before the note's new version.
    past: tuple[NewVersion, ...] = ()

    @property
    def makes(self) -> str | None:
        """Return the path of the file that the change creates. If no file is created, return None."""
        operation = self.operation
        if isinstance(operation, Move):
            return operation.new
        return operation.path if isinstance(operation, Put) and operation.expected is None else None


@frozen
class ProposedFile(ReadFile):
    """A file that an agent proposed. The agent's next proposal is based on this file.

    `entry` is the current note. If the note is only proposed, `entry` is the proposed note with version 0.
    """

    entry: Entry


@define(eq=False, slots=False)
class Preparation:
    """Preparation of write requests against the current catalogue.

    The methods of `Preparation` raise errors for refused requests.
    """

    catalogue: Catalogue
    content_limit: int
    clock: Callable[[], datetime]
    _new_id: Callable[[], str]
    #: Function that returns the ignored paths. No note may be created at these paths.
    _ignored: Callable[[], Ignored] = Ignored

    def prepare_creation(self, request: WriteNote) -> Prepared:
        """Prepare the creation of a note."""
        decision = decide_creation(request, self.catalogue, self._new_id(), self.clock(), self.content_limit)
        self.refuse_ignored(decision.path)
        data = _render(decision.document, decision.path, self.catalogue.style)
        entry = self._entry(decision, data, self.catalogue.take_serial())
        put = Put(decision.path, data, None)
        return self._prepared(put, entry, decision, request.agent, created=True)

    def refuse_ignored(self, path: str) -> None:
        """Raise `InvalidInput` for an ignored path, where searches and lists would never show a note."""
        if self._ignored().covers(path):
            raise InvalidInput(
                f"The path {path} is ignored (storage.ignore, or the ignored files of Obsidian), "
                "so a note there would never be found. Choose another folder."
            )

    def prepare_update(
        self, request: UpdateRequest, source: ReadFile | Exception | None, rebased: Rebased | None = None
    ) -> Prepared:
        """Prepare the next version of a note. `source` is the note's current file.

        `rebased` is the request merged with this file, if the request was made for an earlier version.
        """
        assert request.id is not None
        if isinstance(request, WriteNote):
            check_values(request, self.content_limit)
        entry, source = find_note(self.catalogue, request, source)
        decision, made = self._rewrite(request, entry, source, rebased)
        data, new = made.data, self._entry(decision, made.data, entry.serial, identified=made.identified)
        modified = from_nanoseconds(source.state.mtime_ns)
        new = attrs.evolve(new, note=self.catalogue.with_creation(new.note, modified))
        is_unseen = _replaces_body(request) and source.digest != entry.digest
        operation = Put(entry.path, data, source.digest, saves_old=is_unseen)
        source_name = request.source if isinstance(request, PatchNote) else TOOL
        says_version = made.says_version
        return self._prepared(
            operation, new, decision, request.agent, source=source_name, says_version=says_version
        )

    def _rewrite(
        self, request: UpdateRequest, entry: Entry, source: ReadFile, rebased: Rebased | None
    ) -> tuple[Decision, Rewritten]:
        modified = from_nanoseconds(source.state.mtime_ns)
        try:
            reading = open_document(source.data, entry.path, modified, entry.stand_in, self.catalogue.style)
        except UnreadableNote as problem:
            raise cannot_update(entry.path, problem) from problem
        old, is_signed = reading.document, reading.is_signed
        refuse_broken(old, entry.path)
        if old.note.id != entry.note.id:
            raise no_such_note(request)
        # An edit by a person since the last version counts as a version. It must be counted before versions
        # are compared.
        version = version_read(self.catalogue, entry, source, old.note.version)
        if isinstance(request, WriteNote) and request.said:
            now_note = attrs.evolve(old.note, version=version)
            check_said(request.said, now_note, old.note.version, request.expected_version)
        note = self.catalogue.to_update(attrs.evolve(old.note, version=version), modified, self.clock())
        old = attrs.evolve(old, note=note)
        expected, merged_with = request.expected_version, None
        if rebased is not None and expected is not None and expected != version:
            request, merged_with = rebased.request_at(note, expected), version
        now, limit = self.clock(), self.content_limit
        decision = decide_update(
            request, old, entry.path, self.catalogue, now=now, content_limit=limit, is_signed=is_signed
        )
        decision = attrs.evolve(decision, merged_with=merged_with)
        try:
            made = reading.rewritten(decision.document, replace_body=_replaces_body(request))
        except UnreadableNote as problem:
            # If no file can contain these values, this raises an error about the values rather than the
            # existing file.
            _render(decision.document, entry.path, self.catalogue.style)
            raise cannot_update(entry.path, problem) from problem
        return decision, made

    def _prepared(
        self, operation: Put, entry: Entry, decision: Decision, agent: str, **more: Any
    ) -> Prepared:
        return make_prepared(
            operation,
            entry,
            Document(note=entry.note, content=trim_content(decision.document.content)),
            agent,
            min(entry.note.updated_at, self.clock()),  # After a clock was set back, the note may be newer.
            warnings=decision.warnings,
            merged_with=decision.merged_with,
            **more,
        )

    def _entry(self, decision: Decision, data: bytes, serial: int, *, identified: bool = True) -> Entry:
        document = decision.document
        told = told_by(document.content, self.catalogue.style)
        return Entry(
            serial=serial,
            path=decision.path,
            note=attrs.evolve(normalise_note(document.note), **told),
            digest=digest_of(data),
            state=_NOT_WRITTEN_YET,
            identified=identified,  # A write adds the id, unless another program keeps the file.
            links=targets_in(data, document.content, decision.path),
        )

    def prepare_deletion(self, request: DeleteNote, source: ReadFile | Exception | None) -> Prepared:
        """Prepare a deletion. Raises an error if the current file `source` belongs to another note."""
        entry = self.catalogue.get(request.id)
        if entry is None or (isinstance(source, ReadFile) and self._is_of_another(entry, source)):
            raise no_such_note(request)
        if isinstance(source, Exception) and not isinstance(source, FileNotFoundError):
            raise explain_unreadable(entry, source)
        if request.expected_version is not None:
            check_version(request.expected_version, self._current(entry, source))
        event = EventDraft(
            type=NOTE_DELETED,
            agent=request.agent,
            payload={"id": entry.note.id, "path": entry.path},
            timestamp=self.clock(),
            tags=entry.note.all_tags,
            origin=request.source,
        )
        outcome = WriteOutcome("deleted", entry.note.id, entry.path, entry.note.version)
        expected = source.digest if isinstance(source, ReadFile) else None
        operation = Remove(entry.path, expected, saves_old=expected not in (None, entry.digest))
        return Prepared(operation, entry, None, outcome, event)

    def _current(self, entry: Entry, source: ReadFile | Exception | None) -> Note:
        """Return the note with the version of its file. If the bytes are new, they get a new version."""
        if not isinstance(source, ReadFile):
            return entry.note
        version = self.catalogue.see_version(entry.note.id, source.digest, entry.note.version)
        return attrs.evolve(entry.note, version=version)

    def _is_of_another(self, entry: Entry, source: ReadFile) -> bool:
        if digest_of(source.data) == entry.digest:
            return False
        try:
            modified = from_nanoseconds(source.state.mtime_ns)
            document = parse_document(source.data, entry.path, modified, entry.stand_in, self.catalogue.style)
        except UnreadableNote:
            return False  # An unreadable file counts as a damaged state of this note, not as another note.
        return document.note.id != entry.note.id

    def explain(self, prepared: Prepared, failure: Exception) -> LithosError:
        """Return the error for the caller if the file system refused a change."""
        path = prepared.entry.path
        if isinstance(failure, FileOccupied):
            return path_collision(path, self.catalogue)
        if isinstance(failure, FileInCloud):
            return PathCollision(
                f"The file {path} already exists in the cloud: {failure.program} has the "
                f"placeholder {failure.placeholder} for it. Nothing was changed. Open the file to "
                "download it, then read it, or choose another path.",
                existing_id=None,
            )
        if isinstance(failure, OutsideKnowledge):
            return InvalidInput(
                f"The path {path} must stay within knowledge directory, but it "
                "leads out of it. Choose another path."
            )
        if isinstance(failure, LinkedFile):
            return InvalidInput(
                f"{failure.path} is a symbolic link to {failure.real}. A deletion or a move does "
                f"not follow links. Nothing was changed. Change {failure.real}, or have a person "
                "remove the link."
            )
        if isinstance(failure, OSError) and failure.errno in _UNUSABLE_PATH:
            return InvalidInput(f"The path {path} cannot be used: {failure.strerror}. Choose another path.")
        if isinstance(failure, FileChanged | FileBusy | PathRedirected):
            return note_busy(path)
        reason = failure.strerror if isinstance(failure, OSError) else str(failure)
        log.error("note file not written", path=path, reason=str(failure))
        return StorageFailed(
            f"The file {path} could not be written: {reason}. Nothing was changed; "
            "check free space, free inodes and permissions, then retry."
        )


def _replaces_body(request: UpdateRequest) -> bool:
    return isinstance(request, WriteNote) and request.content is not None


def _render(document: Document, path: str, style: VaultStyle) -> bytes:
    """Return the note as the bytes of a new file. Raises `InvalidInput` if a file cannot store the note."""
    try:
        return render_document(document, path, style)
    except UnreadableNote as problem:
        raise InvalidInput(
            f"The note cannot be stored as a file: {problem.reason}. Nothing was "
            "changed. Correct the value, then retry."
        ) from problem


def cannot_update(path: str, problem: UnreadableNote) -> StorageFailed:
    """Return the error for a file whose frontmatter cannot be edited."""
    return StorageFailed(
        f"The file {path} cannot be updated: {problem.reason}. Nothing was changed; "
        "repair its frontmatter in an editor, then retry."
    )


def find_note(
    catalogue: Catalogue, request: WriteRequest, source: ReadFile | Exception | None
) -> tuple[Entry, ReadFile]:
    """Return the note of a request, and the file that was just read.

    Raises a `LithosError` if either is missing.
    """
    entry = catalogue.get(request.id or "")
    if entry is None and isinstance(source, ProposedFile):
        entry = source.entry
    if entry is None or source is None:
        raise no_such_note(request)
    if isinstance(source, Exception):
        raise explain_unreadable(entry, source)
    return entry, source


def version_read(catalogue: Catalogue, entry: Entry, source: ReadFile, own: int) -> int:
    """Return the version of the note that was read.

    `own` is the version in the note's file. For a proposed file, the version is that of the note.
    """
    if isinstance(source, ProposedFile):
        return source.entry.note.version
    return catalogue.see_version(entry.note.id, source.digest, own)


def make_prepared(
    operation: Put,
    entry: Entry,
    document: Document,
    agent: str,
    at: datetime,
    *,
    source: str = TOOL,
    created: bool = False,
    says_version: bool = True,
    op: str | None = None,
    **told: Any,
) -> Prepared:
    """Return a version of a note with its event and its reply. `told` contains extra fields of the reply."""
    note = entry.note
    event = EventDraft(
        type=NOTE_CREATED if created else NOTE_UPDATED,
        agent=agent,
        payload={"id": note.id, "title": beginning(note.title, TITLE), "path": entry.path},
        timestamp=at,
        tags=note.all_tags,
        origin=note_origin(source, entry.digest, note.version),
    )
    status: Literal["created", "updated"] = "created" if created else "updated"
    outcome = WriteOutcome(status, note.id, entry.path, note.version, **told)
    return Prepared(operation, entry, document, outcome, event, says_version=says_version, op=op)


def note_busy(path: str) -> NoteBusy:
    """Return the error for a file that another program is writing."""
    return NoteBusy(
        f"The file {path} is open for writing in another program, or keeps changing while it is written. "
        "Nothing was changed; retry when it is saved or closed there."
    )


def explain_unreadable(entry: Entry, failure: Exception) -> LithosError:
    """Return the error for a note whose file cannot be read at the moment."""
    path = entry.path
    if isinstance(failure, FileBusy):
        return note_busy(path)
    if isinstance(failure, FILE_GONE):
        return NoteAway(
            f"The file {path} of this note is missing: another program moved or removed it. "
            "Nothing was changed. Read the note again and retry in a moment, or put the file "
            "back.",
            **current_of(entry.note),
        )
    if isinstance(failure, FileInCloud):
        return StorageFailed(
            f"The file {path} cannot be read: {failure.strerror}. Nothing was changed. Open the "
            "file to download it, then retry."
        )
    return StorageFailed(
        f"The file {path} cannot be read: {failure}. Nothing was changed. Check its permissions."
    )
