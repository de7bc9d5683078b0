"""Versions of changes: creation of the rows for the history, and the decision which rows are confirmed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lithos.kernel.values.events import NOTE_CREATED, TAKING_BACK, origin_source
from lithos.kernel.values.principals import WATCHER_AGENT
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.values import FileState, Move, NotSynced, Put, ReadFile
from lithos.notes.model.note import AssignedVersion
from lithos.notes.model.versions import (
    CREATED,
    DELETED,
    OUTSIDE,
    PATH,
    RENAMED,
    UPDATED,
    HistoryFailed,
    NewVersion,
    changed_properties,
)
from lithos.notes.writing.preparation import Passed, Prepared


class NotKept(Exception):
    """Result for a file that was changed although its version could not be stored in the history.

    `state` is the state of the new file, or None if the file was removed.
    """

    def __init__(self, failure: HistoryFailed, state: FileState | None) -> None:
        super().__init__(failure.message)
        self.state = state


FileResult = FileState | Exception | None


def is_undone(result: FileResult) -> bool:
    """Return whether a result means that the file did not change."""
    return isinstance(result, Exception) and not isinstance(result, NotSynced | NotKept)


def version_of(
    prepared: Prepared,
    source: ReadFile | Exception | None,
    former: Entry | None,
    seen: AssignedVersion | None,
) -> NewVersion:
    """Return the version that results from a prepared change.

    `source` is the file that was read, and `former` is the note in the catalogue. `seen` is the version
    assigned to bytes that the catalogue does not contain.
    """
    event, note, operation = prepared.event, prepared.entry.note, prepared.operation
    former = prepared.former or former
    before = None
    if former is not None and isinstance(source, ReadFile):
        before = _state_before(former, source, seen, event.timestamp)
    version, data = note.version, source.data if isinstance(source, ReadFile) else None
    changed = changed_properties(former.note, note) if former is not None else ()
    entry, is_passed = prepared.entry, isinstance(operation, Passed)
    if isinstance(operation, Passed):
        entry = operation.entry
        version = entry.note.version
        changed = changed_properties(former.note, entry.note) if former is not None else ()
    if isinstance(operation, Put | Passed):
        data = operation.data
        op = CREATED if event.type == NOTE_CREATED else UPDATED
    elif isinstance(operation, Move):
        op, changed = RENAMED, (*changed, PATH)
    else:
        op, version = DELETED, (note.version if before is None else before.version) + 1
    return _new(
        entry,
        version,
        event.timestamp,
        event.agent,
        prepared.op or op,
        data,
        changed=changed,
        is_undo=origin_source(event.origin) == TAKING_BACK,
        approved_by=prepared.approved_by,
        before=before,
        is_passed=is_passed,
    )


def _new(
    entry: Entry, version: int, at: datetime, agent: str, op: str, data: bytes | None, **more: Any
) -> NewVersion:
    return NewVersion(
        note_id=entry.note.id,
        version=version,
        at=at,
        agent=agent,
        op=op,
        path=entry.path,
        title=entry.note.title,
        data=data,
        **more,
    )


def _state_before(former: Entry, source: ReadFile, seen: AssignedVersion | None, now: datetime) -> NewVersion:
    """Return the state before a change. It is recorded if the history does not contain it."""
    if source.digest == former.digest:
        return first_version(former, source.data, now)
    # Another program has written the file, and the watcher has not reported this yet.
    version = former.note.version + 1
    if seen is not None and seen.digest == source.digest:
        version = seen.version
    return _new(former, version, now, WATCHER_AGENT, OUTSIDE, source.data)


def first_version(entry: Entry, data: bytes, now: datetime) -> NewVersion:
    """Return the first recorded version of a note that is older than its history."""
    note = entry.note
    agent = note.contributors[-1] if note.contributors else note.author
    op = CREATED if note.version == 1 else UPDATED
    return _new(entry, note.version, min(note.updated_at, now), agent, op, data)


def outside_version(
    entry: Entry,
    former: Entry | None,
    data: bytes | None,
    agent: str,
    now: datetime,
    *,
    is_gone: bool = False,
) -> NewVersion:
    """Return the version for an external change. `former` is the note before the change, or None.

    If `data` is `None`, the bytes are those of `former`.
    """
    changed: tuple[str, ...] = ()
    if is_gone:
        op = DELETED
    elif former is None:
        op = CREATED
    else:
        changed = changed_properties(former.note, entry.note)
        op = OUTSIDE
        if former.path != entry.path:
            changed = (*changed, PATH)
            op = RENAMED if former.digest == entry.digest else OUTSIDE
    return _new(entry, entry.note.version + int(is_gone), now, agent, op, data, changed=changed)
