"""The restore service: write an earlier state of a note as its next version, either whole or merged.

A merge (for `lithos undo`) keeps later changes of other passages. `base` is the version whose change is
undone, `mine` the version before it, and `theirs` the current note.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import Final

from attrs import define, frozen

from lithos.history.model.undo import takes_back
from lithos.history.service.history import HistoryRequest, NoteHistory, VersionContent
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import (
    DocNotFound,
    InvalidInput,
    PathCollision,
    VersionConflict,
    VersionNotFound,
)
from lithos.kernel.values.events import TOOL
from lithos.kernel.values.principals import UNDO_AGENT
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.format.document import parse_document
from lithos.notes.format.merging import merge_documents
from lithos.notes.model.note import Document, current_of
from lithos.notes.model.versions import DELETED, OUTSIDE, VersionRow
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.merging import merge_files, says
from lithos.notes.service.texts import LoadedNote, NoteTexts
from lithos.notes.writing.messages import RestoreNote, WriteOutcome
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of earlier versions by the agent that are checked.
MOST_EARLIER: Final = 20
#: Maximum number of newest versions among which the last bytes that no agent wrote are searched.
MOST_LOOKED_AT: Final = 200
#: Maximum number of attempts at a merge if the note changes meanwhile.
RETRIES: Final = 5


@frozen(kw_only=True)
class RestoreRequest:
    """A request to restore a version or a row.

    If `base` is set, changes after that version are kept. A dry run changes nothing.
    """

    id: str
    version: int | None = None
    row: int | None = None
    agent: str
    expected_version: int | None = None
    base: int | None = None
    dry_run: bool = False
    #: `TOOL`, or `TAKING_BACK` for an undo (both from `kernel.values.events`). `undo` is the version that the
    #: note had when the undo began.
    source: str = TOOL
    undo: int | None = None
    #: New path for a deleted note. If None, the note returns to the path where it was deleted.
    back_to: str | None = None


@frozen
class RestoredNote:
    """The result of a restore. `outcome` is None if the note already had the restored text.

    `merged_with` is the version whose changes were kept in the merge.
    """

    outcome: WriteOutcome | None
    id: str
    path: str
    version: int
    merged_with: int | None = None


@define(eq=False)
class Restoring:
    """Restores earlier states of notes."""

    _history: NoteHistory
    _knowledge: Knowledge
    _catalogue: Catalogue
    _texts: NoteTexts
    _blocking: Blocking

    async def restore(self, request: RestoreRequest) -> RestoredNote:
        """Restore a version. The result is the same as that of `Knowledge.write`.

        Raises `VersionNotFound`, `DocNotFound`, `PathCollision`, and `VersionConflict` with `conflicts` for
        overlapping changes.
        """
        kept = await self._wanted(request)
        if request.base is None:
            return await self._restore_in_turn(request, kept)
        base = await self._history.at_version(request.id, request.base)
        for _ in range(RETRIES):
            try:
                return await self._restore_merged(request, base, kept)
            except VersionConflict as refusal:
                if "conflicts" in refusal.extras or request.expected_version is not None:
                    raise
        entry = self._catalogue.get(request.id)
        raise VersionConflict(
            "The note changes too often, so nothing was restored. Retry in a moment.",
            **({"current_version": None} if entry is None else current_of(entry.note)),
        )

    async def _wanted(self, request: RestoreRequest) -> VersionContent:
        """Return the version to restore. Raises `InvalidInput` unless either a version or a row is given."""
        if request.row is None and request.version is not None:
            return await self._history.at_version(request.id, request.version)
        if request.row is None or request.version is not None:
            raise InvalidInput(
                "Give either version, or row (the number of a history row). Nothing was "
                "restored. Use lithos_history to list versions and rows."
            )
        return await self._history.at_row(request.id, request.row)

    async def _restore_in_turn(self, request: RestoreRequest, kept: VersionContent) -> RestoredNote:
        """Restore a version. If another client deletes the note meanwhile, try again."""
        for _ in range(RETRIES - 1):
            try:
                return await self._restore_whole(request, kept)
            except VersionConflict:
                if request.expected_version is not None or request.id in self._catalogue:
                    raise
        return await self._restore_whole(request, kept)

    async def _restore_whole(self, request: RestoreRequest, kept: VersionContent) -> RestoredNote:
        # All rows may be pruned by now, but `kept` is still in memory.
        newest = await self._history.newest(request.id) or kept.row
        oldest = await self._history.oldest(request.id)
        entry = self._catalogue.get(request.id)
        path = request.back_to or newest.path if entry is None else entry.path
        made = await self._make(
            request,
            kept,
            kept.data,
            path=path,
            newest=newest.version,
            created_at=oldest.at if oldest is not None and entry is None else None,
            expected=request.expected_version,
            is_return=entry is None,
            is_kept=True,
        )
        if request.dry_run:
            holder = self._catalogue.at_path(path)
            if entry is None and holder is not None:
                raise PathCollision(
                    f"The file {path} already exists. Move that note to another path, then retry.",
                    existing_id=holder.note.id,
                )
            is_back = entry is None
            version = newest.version + 1
            return _told(WriteOutcome("created" if is_back else "updated", request.id, path, version))
        return _told(await self._knowledge.write(made))

    async def _restore_merged(
        self, request: RestoreRequest, base: VersionContent, kept: VersionContent
    ) -> RestoredNote:
        entry = self._catalogue.get(request.id)
        loaded = None if entry is None else await self._texts.load(entry)
        if entry is None or loaded is None:
            raise DocNotFound(
                "The note is deleted, so changes cannot be merged with it. Restore a version without base."
            )
        current = loaded.document.note.version
        if request.expected_version not in (None, current):
            raise VersionConflict(
                f"The note is at version {current}, not {request.expected_version}. Read it "
                "again, then retry with the current version.",
                **current_of(loaded.document.note),
            )
        style, now = self._catalogue.style, loaded
        if await self._is_done(request, base, kept, entry.path):
            return RestoredNote(None, request.id, entry.path, current)
        refused = (
            f"Other agents changed the same places after version {base.row.version}. Nothing was "
            "restored. Use lithos_history to compare the versions, then edit the note."
        )
        merged = await self._blocking.run(
            lambda: merge_files(base.data, kept.data, now, entry, style, refused=refused)
        )
        data, is_kept = merged.data, not merged.is_merged
        if request.undo is not None and (data is None or merged.is_merged):
            own = await self._own_bytes(entry, now, data)
            data, is_kept = (data, is_kept) if own is None else (own, True)
        if data is None:
            return RestoredNote(None, request.id, entry.path, current)
        merged_with = current if merged.is_merged else None
        newest = await self._history.newest(request.id)
        made = await self._make(
            request,
            kept,
            data,
            path=entry.path,
            newest=newest.version if newest else current,
            created_at=None,
            expected=current,
            is_kept=is_kept,
        )
        if request.dry_run:
            return _told(WriteOutcome("updated", request.id, entry.path, current + 1), merged_with)
        return _told(await self._knowledge.write(made), merged_with)

    async def _own_bytes(self, entry: Entry, now: LoadedNote, merged: bytes | None) -> bytes | None:
        """Return the newest bytes that no agent wrote, or otherwise the oldest bytes of the note.

        The bytes of a version are returned only if the note still has the same meaning.

        When several undos follow one another, the last of them thereby removes what Lithos had added to the
        file. The result is None if changes by agents remain, if the file already has these bytes, or if they
        are not kept.
        """
        asked = HistoryRequest(note_id=entry.note.id, limit=MOST_LOOKED_AT)
        listed = await self._history.list_versions(asked)
        rows = listed.rows
        row = next((each for each in rows if each.op == OUTSIDE), None)
        if row is None and len(rows) == listed.total and rows:
            row = rows[-1]
        if row is None or row.op == DELETED:
            return None
        try:
            kept = await self._history.at_version(entry.note.id, row.version)
        except VersionNotFound:  # The version was pruned in the meantime.
            return None
        left = now.source.data if merged is None else merged
        is_right = await self._blocking.run(
            partial(_say_the_same, kept.data, left, entry, row.at, self._catalogue.style)
        )
        return kept.data if is_right and kept.data != now.source.data else None

    async def _is_done(
        self, request: RestoreRequest, base: VersionContent, kept: VersionContent, path: str
    ) -> bool:
        """Return whether an earlier version by this agent or by `lithos undo` already undid the change.

        Later changes were made with knowledge of the undo, even if they repeat the change. Earlier versions
        of the same undo run do not count, because one run reverts several changes of a note.
        """
        style, lower = self._catalogue.style, base.row.version
        upper = math.inf if request.undo is None else request.undo
        rows: list[VersionRow] = []
        for agent in dict.fromkeys((request.agent, UNDO_AGENT)):
            asked = HistoryRequest(note_id=request.id, agent=agent, limit=MOST_EARLIER)
            rows += (await self._history.list_versions(asked)).rows
        for row in rows:
            if row.op == DELETED or not lower < row.version <= upper:
                continue
            # Earlier Lithos versions allowed an agent with this name.
            if row.agent == UNDO_AGENT and not takes_back(row, UNDO_AGENT):
                continue
            try:
                then = await self._history.at_version(request.id, row.version)
            except VersionNotFound:  # The version was pruned in the meantime.
                continue
            if await self._blocking.run(partial(_has_done, base, kept, then, path, style)):
                return True
        return False

    async def _make(
        self,
        request: RestoreRequest,
        kept: VersionContent,
        data: bytes,
        *,
        path: str,
        newest: int,
        created_at: datetime | None,
        expected: int | None,
        is_return: bool = False,
        is_kept: bool = False,
    ) -> RestoreNote:
        """Build the message for the writer. Raises `InvalidInput` if the bytes are no longer a valid note."""
        row, style = kept.row, self._catalogue.style

        def read() -> Document:
            return parse_document(data, path, row.at, request.id, style)

        try:
            document = await self._blocking.run(read)
        except UnreadableNote as problem:
            raise InvalidInput(
                f"Version {row.version} of {row.path} cannot be read as a note: {problem.reason}. Restore "
                "another version."
            ) from problem
        return RestoreNote(
            id=request.id,
            agent=request.agent,
            data=data,
            is_kept=is_kept,
            path=path,
            title=document.note.title,
            source_url=document.note.source_url,
            newest_version=newest,
            is_return=is_return,
            created_at=created_at,
            expected_version=expected,
            source=request.source,
        )


def _say_the_same(one: bytes, other: bytes, entry: Entry, at: datetime, style: VaultStyle) -> bool:
    """Return whether two files of a note have the same meaning. Blocks."""
    try:
        first, second = (parse_document(each, entry.path, at, entry.note.id, style) for each in (one, other))
    except UnreadableNote:
        return False
    return says(first) == says(second)


def _told(outcome: WriteOutcome, merged_with: int | None = None) -> RestoredNote:
    return RestoredNote(outcome, outcome.id, outcome.path, outcome.version, merged_with)


def _has_done(
    base: VersionContent, kept: VersionContent, then: VersionContent, path: str, style: VaultStyle
) -> bool:
    """Return whether `then` already has the content that the merge would produce. Blocks."""
    try:
        before, mine, theirs = (
            parse_document(each.data, path, base.row.at, base.row.note_id, style)
            for each in (base, kept, then)
        )
    except UnreadableNote:
        return False
    if says(before) == says(mine):  # Only the bytes differ, because of text that Lithos added.
        return then.data == kept.data
    merged = merge_documents(before, mine, theirs).result
    return merged is not None and says(merged) == says(theirs)
