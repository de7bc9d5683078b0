"""Preparation of given bytes: earlier versions to restore, imported notes, and notes from other vaults.

Only the id, version and `updated_at`, and a missing `created_at`, change in the bytes. Three kinds of bytes
are written unchanged: those that an undo restores, all kept bytes in a served vault, and bytes whose
frontmatter cannot be edited. The file then does not contain its version, just like a file that a person has
edited.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
from attrs import frozen

from lithos.kernel.values.errors import DocNotFound, InvalidInput, VersionConflict
from lithos.kernel.values.events import TAKING_BACK, TOOL
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.values import FileState, Put, ReadFile, digest_of
from lithos.notes.format.document import (
    amend_document,
    derive_id,
    given_keys,
    parse_document,
    parse_identified,
)
from lithos.notes.links.links import targets_in
from lithos.notes.model.note import AssignedVersion, Document, Note, current_of, not_ahead
from lithos.notes.model.versions import RENAMED
from lithos.notes.writing.messages import ImportNote, RestoreNote, TakeOverNote
from lithos.notes.writing.preparation import (
    Preparation,
    Prepared,
    explain_unreadable,
    find_note,
    make_prepared,
)
from lithos.notes.writing.write_rules import (
    check_free,
    check_unique,
    check_version,
    no_such_note,
    path_collision,
)
from lithos.text.yaml.nodes import UnreadableNote

_NOT_WRITTEN_YET = FileState(0, 0)


@frozen
class _Bytes:
    """The bytes to write, their parsed content, and whether they contain the id and the version."""

    data: bytes
    document: Document
    identified: bool
    says_version: bool


class RestorePreparation:
    """Preparation of restores against the current catalogue.

    The methods of `RestorePreparation` raise errors for refused requests.
    """

    def __init__(self, preparation: Preparation) -> None:
        self._catalogue = preparation.catalogue
        self._clock = preparation.clock
        self._refuse = preparation.refuse_ignored

    def prepare(self, request: RestoreNote, source: ReadFile | Exception | None) -> Prepared:
        """Prepare the next version of a note, or create a deleted note again.

        `source` is the note's current file.
        """
        entry = self._catalogue.get(request.id)
        if entry is None:
            return self._prepare_return(request)
        # If the note was restored in the meantime, `source` is None, and this raises an error.
        entry, source = find_note(self._catalogue, request, source)
        current = self._current(entry, source)
        if current.id != entry.note.id:
            raise no_such_note(request)
        check_version(request.expected_version, current)
        version = max(current.version, request.newest_version) + 1
        created_at = request.created_at or current.created_at
        made = self._make(request, entry.path, version, created_at, current.next_update(self._clock()))
        check_unique(made.document.note, current, entry.path, self._catalogue, is_restored=True)
        is_unseen = source.digest != entry.digest
        operation = Put(entry.path, made.data, source.digest, saves_old=is_unseen)
        return self._prepared(request, made, operation, entry.serial, created=False)

    def _prepare_return(self, request: RestoreNote) -> Prepared:
        """Prepare a deleted note that is created again at its former path."""
        newest = request.newest_version
        if not request.is_return:
            raise VersionConflict(
                "The note was deleted a moment ago, so nothing was restored. Read its history "
                "with lithos_history, then retry.",
                current_version=None,
            )
        if request.expected_version not in (None, newest):
            raise VersionConflict(
                f"The note was deleted in version {newest}, but {request.expected_version} was "
                "expected. Read its history with lithos_history, then retry with that version.",
                current_version=newest,
            )
        self._refuse(request.path)
        if self._catalogue.at_path(request.path) is not None:
            raise path_collision(request.path, self._catalogue)
        now = self._clock()
        at = max(now, request.created_at or now)
        made = self._make(request, request.path, newest + 1, request.created_at, at)
        check_unique(made.document.note, None, request.path, self._catalogue, is_restored=True)
        operation = Put(request.path, made.data, None)
        return self._prepared(request, made, operation, self._catalogue.take_serial(), created=True)

    def _current(self, entry: Entry, source: ReadFile) -> Note:
        """Return the note with the content of its file. An unreadable file counts as an edit."""
        style = self._catalogue.style
        modified = from_nanoseconds(source.state.mtime_ns)
        try:
            note = parse_document(source.data, entry.path, modified, entry.stand_in, style).note
            note = not_ahead(self._catalogue.with_creation(note, modified), modified, self._clock())
        except UnreadableNote:
            note = entry.note
        version = self._catalogue.see_version(entry.note.id, source.digest, note.version)
        return attrs.evolve(note, version=version)

    def _make(
        self, request: RestoreNote, path: str, version: int, created_at: datetime | None, at: datetime
    ) -> _Bytes:
        """Return the bytes with a new version. Raises `InvalidInput` if the bytes are not a readable note."""
        now, style = self._clock(), self._catalogue.style.at(path)
        if created_at is not None:
            self._catalogue.records.put_creation(request.id, created_at)
        try:
            is_unchanged = request.is_kept and (style.minimal_frontmatter or request.source == TAKING_BACK)
            if is_unchanged or style.is_bare:
                document, identified = parse_identified(request.data, path, now, request.id, style)
                if document.note.id == request.id:
                    document = self._dated(document, now)
                    return self._as_it_is(request, document, path, version, at, identified=identified)
            values: dict[str, Any] = {"id": request.id, "version": version, "updated_at": at}
            given = given_keys(request.data, style)
            if style.minimal_frontmatter:
                values = {key: value for key, value in values.items() if key == "id" or key in given}
            elif created_at is not None and "created_at" not in given:
                values["created_at"] = created_at
            data = amend_document(request.data, path, now, values, request.id, style)
        except UnreadableNote:
            return self._keep(request, path, version, now)
        document, identified = parse_identified(data, path, now, request.id, style)
        document = self._versioned(self._dated(document, now), version, at)
        return _Bytes(data, document, identified, says_version="version" in values)

    def _as_it_is(
        self,
        request: RestoreNote,
        document: Document,
        path: str,
        version: int,
        at: datetime,
        *,
        identified: bool,
    ) -> _Bytes:
        """Return the unchanged bytes, with the new version assigned to the note."""
        records, says_version = self._catalogue.records, document.note.version == version
        if request.is_return:
            # Values that the file does not contain must be stored before the file exists, because they are
            # not in any index either.
            records.put_version(request.id, AssignedVersion(version, digest_of(request.data)))
            if not identified:
                records.place(path, None if derive_id(path) == request.id else request.id)
        return _Bytes(
            request.data, self._versioned(document, version, at), identified, says_version=says_version
        )

    @staticmethod
    def _versioned(document: Document, version: int, at: datetime) -> Document:
        return attrs.evolve(document, note=attrs.evolve(document.note, version=version, updated_at=at))

    def _dated(self, document: Document, now: datetime) -> Document:
        return attrs.evolve(document, note=self._catalogue.with_creation(document.note, now))

    def _keep(self, request: RestoreNote, path: str, version: int, now: datetime) -> _Bytes:
        """Return the bytes unchanged, because the keys in the file cannot be edited."""
        data = request.data
        try:
            document, identified = parse_identified(data, path, now, request.id, self._catalogue.style)
        except UnreadableNote as problem:
            raise InvalidInput(
                f"This version of {path} cannot be restored: {problem.reason}. Read it with "
                "lithos_read and write the text you want with lithos_write."
            ) from problem
        if document.note.id != request.id:
            raise DocNotFound(
                f"This version of {path} belongs to the note {document.note.id!r}. Restore that note instead."
            )
        self._catalogue.records.put_version(request.id, AssignedVersion(version, digest_of(data)))
        document = self._dated(document, now)
        document = attrs.evolve(document, note=attrs.evolve(document.note, version=version))
        return _Bytes(data, document, identified, says_version=False)

    def prepare_import(self, request: ImportNote, source: ReadFile | Exception | None) -> Prepared:
        """Prepare a new imported note, or the next version of a note that was imported before."""
        entry = self._catalogue.get(request.id)
        made = _Bytes(request.data, request.document, request.identified, says_version=True)
        if entry is None:
            self._refuse(request.path)
            check_free(request.path, self._catalogue)
            put, serial = Put(request.path, made.data, None), self._catalogue.take_serial()
            return self._prepared(request, made, put, serial, created=True)
        if isinstance(source, Exception):
            raise explain_unreadable(entry, source)
        if (
            source is None
            or entry.path != request.path
            or source.digest != request.expected
            or made.document.note.version <= self._current(entry, source).version
        ):
            raise VersionConflict(
                f"The note at {entry.path} changed while it was imported. Import it again.",
                **current_of(entry.note),
            )
        put = Put(entry.path, made.data, source.digest, saves_old=source.digest != entry.digest)
        return self._prepared(request, made, put, entry.serial, created=False)

    def prepare_arrival(self, request: TakeOverNote) -> Prepared:
        """Prepare a note from another vault. The note is not changed."""
        note, path, records = request.document.note, request.path, self._catalogue.records
        there = self._catalogue.get(request.id)
        if there is not None:
            raise VersionConflict(
                f"The note already exists at {there.path}. Read it before you move the note from "
                "the other vault.",
                **current_of(there.note),
            )
        self._refuse(path)
        check_free(path, self._catalogue)
        check_unique(note, None, path, self._catalogue)
        # Values that the file does not contain must be stored before the file exists, because a killed
        # process would lose them. The remaining values are committed with a recorded version.
        says_version = request.says_version and request.identified
        if not says_version:
            records.put_version(request.id, AssignedVersion(note.version, digest_of(request.data)))
        if not request.identified:
            records.place(path, None if derive_id(path) == request.id else request.id)
        if request.created_at is not None:
            records.put_creation(request.id, request.created_at)
        made = _Bytes(request.data, request.document, request.identified, says_version=says_version)
        put = Put(path, made.data, None)
        prepared = self._prepared(request, made, put, self._catalogue.take_serial(), created=True)
        return attrs.evolve(prepared, op=RENAMED if request.past else None, past=request.past)

    def _prepared(
        self, request: RestoreNote | ImportNote, made: _Bytes, operation: Put, serial: int, *, created: bool
    ) -> Prepared:
        note, source, op = made.document.note, TOOL, None
        if isinstance(request, RestoreNote):
            source, op = request.source, None if request.approval else request.op
        entry = Entry(
            serial=serial,
            path=operation.path,
            note=note,
            digest=digest_of(made.data),
            state=_NOT_WRITTEN_YET,
            identified=made.identified,
            links=targets_in(made.data, made.document.content, operation.path),
        )
        return make_prepared(
            operation,
            entry,
            made.document,
            request.agent,
            self._clock(),
            source=source,
            created=created,
            says_version=made.says_version,
            op=op,
        )
