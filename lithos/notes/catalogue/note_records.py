"""Persistent facts about notes that are not in the files: versions of edited notes, ids and creation times.

A version must be durable before any reader sees it. Otherwise another edit could get the same version after a
crash, and an agent that had read the first edit would overwrite the second. So a version assigned here is
dirty until the coordinator has committed it, and `save` waits for that commit. Other facts are saved with the
next commit (write-behind). A new id is saved in the same commit as the event that announces it. A creation
time is saved in the same commit as the intents of the write that changes the file's mtime.

If a tool writes a note, the file contains the version. But after a crash, a person may replace the file
before the manifest or the journal has recorded the version. So each write first records its intent
(write-ahead). This commit runs while the file is synced. The intent is dropped once the manifest has the
version.

Extracted entities are also stored outside the note files (`KeptEntities`).
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import attrs
import trio

from lithos.events.model.ports import ExtraRows
from lithos.notes.format.document import derive_id
from lithos.notes.model.entities import ExtractedEntities
from lithos.notes.model.note import AssignedVersion, Note, effective_version, newest
from lithos.notes.rows_coordination import NoteRows

_JOINT: Final = "\x1f"


class KeptEntities:
    """Extracted entities by note id (docs/spec/memory.md §4).

    The entities of a deleted note may remain for some time.

    The entities are stored in `stats.db`. The memory actor owns that database. At its start, the actor enters
    all entities here; later, it enters each change after the commit. Entities in a note's own file have
    priority, unless an earlier extraction wrote them there.
    """

    def __init__(self) -> None:
        self._found: dict[str, ExtractedEntities] = {}

    def load(self, found: Mapping[str, ExtractedEntities]) -> None:
        """Replace the contents with all stored rows."""
        self._found = dict(found)

    def put(self, note_id: str, found: ExtractedEntities | None) -> None:
        """Record the entities found in a note. Passing None deletes them."""
        if found is None:
            self._found.pop(note_id, None)
        else:
            self._found[note_id] = found

    def get(self, note_id: str) -> ExtractedEntities | None:
        """Return the entities that extraction found in a note. Entities in the note's file are ignored."""
        return self._found.get(note_id)

    def counting(self, note: Note) -> ExtractedEntities | None:
        """Return the entities that extraction found in a note, if they have priority.

        Return None if the entities in the note's file have priority.
        """
        found = self._found.get(note.id)
        return found if found is not None and found.counts_for(note) else None

    def of(self, note: Note) -> tuple[str, ...]:
        """Return the entities of a note, for filters and indexes."""
        found = self.counting(note)
        return note.entities if found is None else found.entities

    def shown(self, note: Note) -> Note:
        """Return the note as readers see it: with extracted entities if these have priority."""
        found = self.counting(note)
        if found is None:
            return note
        marker = found.extractor if found.entities else note.entities_extractor
        return attrs.evolve(note, entities=found.entities, entities_extractor=marker)

    def stamped(self, stamp: int, note: Note) -> tuple[int, tuple[str, ...]]:
        """Return the index stamp and entities of a note. Extracted entities change the stamp."""
        found = self.counting(note)
        if found is None or found.entities == note.entities:
            return stamp, note.entities
        mixed = zlib.crc32(_JOINT.join(found.entities).encode("utf-8", "surrogatepass"))
        return stamp ^ mixed, found.entities


_NEVER = datetime.max.replace(tzinfo=UTC)


class NoteRecords(ExtraRows):
    """A write-behind cache of the facts about notes. The catalogue owns it, and the coordinator commits it.

    The cache contains at most three rows per note.
    """

    def __init__(self, rows: NoteRows | None = None) -> None:
        rows = rows or NoteRows()
        self._versions = {key: row for key, row in rows.versions.items() if row is not None}
        self._ids = {path: note_id for path, note_id in rows.ids.items() if note_id is not None}
        self._paths = {note_id: path for path, note_id in self._ids.items()}
        self._creations = {key: at for key, at in rows.creations.items() if at is not None}
        #: Paths of the files that a person marked as separate notes.
        self._own = {path for path, is_own in rows.own.items() if is_own}
        #: Whether a reader is waiting until these marks are durable.
        self._own_is_urgent = False
        #: Rows that are not committed yet.
        self._unsaved = NoteRows()
        #: Versions of writes that have not reached the manifest yet. Some of these writes may not have
        #: started.
        self._intents: dict[str, dict[int, str]] = {}
        for (note_id, number), digest in rows.intents.items():
            self._intents.setdefault(note_id, {})[number] = digest or ""
        #: Notes whose intents must be committed before the catalogue shows the new versions.
        self._urgent_intents: set[str] = set()
        #: Notes whose versions are not committed yet, so readers must not see the versions.
        self._urgent: set[str] = set()
        #: Notes that are being written. The event is set once the outcome of the write is known.
        self._undecided: dict[str, trio.Event] = {}
        #: Commits all unsaved rows. The returned function waits for the commit. None if rows are never saved,
        #: for example in a survey. In that case, `save` returns at once.
        self.commit: Callable[[], Awaitable[Callable[[], Awaitable[object]]]] | None = None

    def take_over(self, newer: NoteRecords) -> None:
        """Replace the contents with those of another instance."""
        commit = self.commit
        vars(self).update(vars(newer))
        self.commit = commit

    # -- versions ------------------------------------------------------------------------------

    def version(self, note_id: str) -> AssignedVersion | None:
        """Return the last version assigned to a note, or None if the file itself contains its version."""
        return self._versions.get(note_id)

    def see(self, note_id: str, digest: str, own: int, known: AssignedVersion | None) -> int:
        """Assign the effective version to the bytes of a note. `known` is the catalogue's version."""
        # The catalogue may not have the version of the latest write yet, so intents count too. The intent of
        # a refused write is already removed.
        last = newest((self._versions.get(note_id) or known, *self.intents(note_id)), digest)
        version = effective_version(own, digest, last)
        if last is not None and last.digest != digest:
            standing = AssignedVersion(version, digest)
            is_safe = standing in self.intents(note_id) and note_id not in self._urgent_intents
            self.put_version(note_id, standing, is_urgent=not is_safe)
        return version

    def put_version(self, note_id: str, standing: AssignedVersion, *, is_urgent: bool = True) -> None:
        """Record a version. An urgent version must be committed before any reader sees it."""
        if self._versions.get(note_id) != standing:
            self._versions[note_id] = self._unsaved.versions[note_id] = standing
            if is_urgent:
                self._urgent.add(note_id)

    def settle_version(self, note_id: str, standing: AssignedVersion, *, is_said: bool = True) -> None:
        """Delete the row of a version that is now both in the file and in the catalogue.

        If the file does not contain the version (`is_said` is false), the version is recorded instead. The
        next commit saves this record, at the latest in the commit that removes the intent. If other bytes
        were read during the write, their version number is reserved and will not be assigned again.
        """
        seen = self._versions.get(note_id)
        if seen is not None and seen.version >= standing.version and seen.digest != standing.digest:
            self.put_version(note_id, AssignedVersion(seen.version, ""))
        elif is_said:
            self.drop_version(note_id)
        else:
            self.put_version(note_id, standing, is_urgent=False)

    def drop_version(self, note_id: str) -> None:
        """Delete the version row of a note. The note was deleted, or its file now contains the version."""
        if self._versions.pop(note_id, None) is not None:
            self._unsaved.versions[note_id] = None
            self._urgent.discard(note_id)

    # -- intents -------------------------------------------------------------------------------

    def intents(self, note_id: str) -> Collection[AssignedVersion]:
        """Return the versions that writes have stored or are about to store.

        The manifest may not have these versions yet.
        """
        known = self._intents.get(note_id, {})
        return [AssignedVersion(version, digest) for version, digest in known.items()]

    def intend(self, note_id: str, standing: AssignedVersion) -> None:
        """Record the version and content hash of a write that is about to start.

        `save_intents` must finish before readers see this version.
        """
        known = self._intents.setdefault(note_id, {})
        if known.get(standing.version) != standing.digest:
            known[standing.version] = standing.digest
            self._unsaved.intents[note_id, standing.version] = standing.digest
            self._urgent_intents.add(note_id)

    def withdraw(self, note_id: str, standing: AssignedVersion) -> None:
        """Drop the intent of a write that was refused."""
        known = self._intents.get(note_id, {})
        if known.get(standing.version) == standing.digest:
            self._drop_intents(note_id, [standing.version])

    def fulfil(self, note_id: str, version: int | None = None) -> None:
        """Drop the intents up to a version that is recorded elsewhere.

        Without `version`, drop all intents of a note.

        Intents for later versions are not dropped.
        """
        known = self._intents.get(note_id, {})
        self._drop_intents(note_id, [each for each in known if version is None or each <= version])

    def fulfil_all(self) -> None:
        """Delete all intents that the previous process left, once their results are recorded."""
        for note_id in list(self._intents):
            self.fulfil(note_id)

    def _drop_intents(self, note_id: str, versions: Collection[int]) -> None:
        known = self._intents.get(note_id, {})
        for version in versions:
            del known[version]
            self._unsaved.intents[note_id, version] = None
        if not known:
            self._intents.pop(note_id, None)
            self._urgent_intents.discard(note_id)

    @contextmanager
    def deciding(self, note_ids: Collection[str]) -> Iterator[None]:
        """Mark notes as being written while the context is open.

        While a note is being written, its file may have an intended version that is withdrawn if the exchange
        of the file fails.
        """
        decided = trio.Event()
        self._undecided.update(dict.fromkeys(note_ids, decided))
        try:
            yield
        finally:
            for note_id in note_ids:
                del self._undecided[note_id]
            decided.set()

    async def decided(self, note_id: str) -> bool:
        """Wait for the outcome of a running write to the note.

        Return False if no write to the note is running.

        Until the outcome is known, other bytes in the file may be an edit of the new version or of the
        version before.
        """
        written = self._undecided.get(note_id)
        if written is None:
            return False
        await written.wait()
        return True

    # -- ids -----------------------------------------------------------------------------------

    def id_at(self, path: str) -> str | None:
        """Return the recorded id of a file that does not contain an id.

        Return None if the id is derived from the path.
        """
        return self._ids.get(path)

    def place(self, path: str, note_id: str | None) -> None:
        """Record the id of a file that does not contain an id.

        Pass None to delete the record: the file is missing, or its id is derived from the path.
        """
        known = self._ids.get(path)
        if known == note_id:
            return
        if known is not None:
            del self._ids[path]
            del self._paths[known]
        if note_id is not None:
            former = self._paths.get(note_id)
            if former is not None:
                self.place(former, None)
            self._ids[path], self._paths[note_id] = note_id, path
        self._unsaved.ids[path] = note_id

    def keep_ids(self, former: Mapping[str, str]) -> None:
        """Record the ids that files contained earlier, by path.

        Ids already recorded for a path are not replaced.
        """
        for path, note_id in former.items():
            if path not in self._ids:
                self.place(path, note_id)

    def leave(self, path: str, note_id: str) -> None:
        """Delete the recorded id of a path from which a note was moved."""
        if self._ids.get(path) == note_id:
            self.place(path, None)

    def free_id(self, path: str, is_taken: Callable[[str], bool]) -> str:
        """Return an id for a new file that does not contain one.

        The id is derived from the path. If the id is taken, a number is added.
        """
        number, note_id = 1, derive_id(path)
        while is_taken(note_id) or self._paths.get(note_id, path) != path:
            number += 1
            note_id = derive_id(path, number)
        return note_id

    # -- separate notes ------------------------------------------------------------------------

    @property
    def has_own(self) -> bool:
        """Return whether a person marked any file as a separate note."""
        return bool(self._own)

    def is_own(self, path: str) -> bool:
        """Return whether a person marked the file at a path as a separate note."""
        return path in self._own

    def put_own(self, path: str) -> None:
        """Record that a person marked a file as a separate note.

        The mark has no expiry. It is on disk after `save`.
        """
        if path not in self._own:
            self._own.add(path)
            self._unsaved.own[path] = True
            self._own_is_urgent = True

    @property
    def is_own_saved(self) -> bool:
        """Return whether all files marked by people are durably recorded."""
        return not self._own_is_urgent

    def drop_own(self, path: str) -> None:
        """Remove the mark of a file, because the mark could not be made durable."""
        self._own.discard(path)
        self._unsaved.own[path] = None

    def move_own(self, former: str, path: str) -> None:
        """Record that a marked file was moved to another path."""
        if former in self._own and former != path:
            self._own.discard(former)
            self._own.add(path)
            self._unsaved.own.update({former: None, path: True})

    # -- times ---------------------------------------------------------------------------------

    def creation(self, note_id: str) -> datetime | None:
        """Return the recorded creation time of a note.

        The time is recorded only if the file does not contain it and its mtime has changed since.
        """
        return self._creations.get(note_id)

    def put_creation(self, note_id: str, created_at: datetime) -> None:
        """Record the creation time of a note. The earliest recorded time is kept."""
        if created_at < self._creations.get(note_id, _NEVER):
            self._creations[note_id] = self._unsaved.creations[note_id] = created_at

    def drop_creation(self, note_id: str) -> None:
        """Delete the recorded creation time of a deleted note."""
        if self._creations.pop(note_id, None) is not None:
            self._unsaved.creations[note_id] = None

    # -- saving --------------------------------------------------------------------------------

    def prune(self, ids: Collection[str], paths: Collection[str]) -> None:
        """Delete the rows of all notes and paths, except those in `ids` and `paths` (garbage collection)."""
        for note_id in self._versions.keys() - set(ids):
            self.drop_version(note_id)
        for note_id in self._creations.keys() - set(ids):
            self.drop_creation(note_id)
        self.prune_paths(paths)

    def prune_paths(self, paths: Collection[str]) -> None:
        """Delete the recorded ids of all paths except `paths`."""
        for path in self._ids.keys() - set(paths):
            self.place(path, None)

    @property
    def has_unsaved(self) -> bool:
        """Return whether there are unsaved rows."""
        return bool(self._unsaved)

    async def save(self, note_id: str | None = None) -> None:
        """Wait until all versions assigned so far are durable.

        With `note_id`, wait only for the version of that note.

        If the database refuses the commit, each later commit retries it. External edits do not wait for the
        commit.
        """
        is_due = bool(self._urgent) or self._own_is_urgent if note_id is None else note_id in self._urgent
        if is_due and self.commit is not None:
            await (await self.commit())()

    async def save_intents(self) -> Callable[[], Awaitable[object]]:
        """Commit the intents recorded so far. The returned function waits for the commit.

        Like `save`, the returned function fails if the database is broken.
        """
        if self._urgent_intents and self.commit is not None:
            return await self.commit()
        return trio.lowlevel.checkpoint_if_cancelled

    def take_unsaved(self) -> NoteRows:
        """Take the unsaved rows for a commit. They no longer count as unsaved.

        Call `saved` afterwards, or `put_back` if the commit failed.
        """
        rows, self._unsaved = self._unsaved, NoteRows()
        return rows

    def put_back(self, rows: NoteRows) -> None:
        """Mark rows as unsaved again after a failed commit. Newer rows have priority."""
        newer = self._unsaved
        self._unsaved = NoteRows(
            {**rows.versions, **newer.versions},
            {**rows.ids, **newer.ids},
            {**rows.intents, **newer.intents},
            {**rows.creations, **newer.creations},
            {**rows.own, **newer.own},
        )

    def saved(self, rows: NoteRows) -> None:
        """Record that the rows of `take_unsaved` are committed."""
        self._own_is_urgent = bool(self._unsaved.own)
        self._urgent -= rows.versions.keys() - self._unsaved.versions.keys()
        unsaved = {note_id for note_id, _ in self._unsaved.intents}
        self._urgent_intents -= {note_id for note_id, _ in rows.intents} - unsaved
