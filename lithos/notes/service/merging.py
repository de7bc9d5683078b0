"""Merges of changes: updates with `on_conflict: merge`, and different versions of a note's file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import attrs
from attrs import define, frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import StorageFailed, VersionConflict
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.format.document import amend_document, given_keys, parse_document, rewrite_document
from lithos.notes.format.merging import merge_documents, merge_items
from lithos.notes.model.note import Document, current_of
from lithos.notes.service.texts import LoadedNote
from lithos.notes.writing.messages import MERGE, UpdateRequest, WriteOutcome
from lithos.notes.writing.ports import VersionStore
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Largest version number that a store can hold.
_LARGEST: Final = 2**63 - 1

R = TypeVar("R", bound=UpdateRequest)


@define(eq=False)
class Merging:
    """Service that loads the base version of an update from the history."""

    _catalogue: Catalogue
    #: The version store, or None if the history is disabled.
    _history: VersionStore | None
    _reading: Blocking

    async def submit(self, request: R, submit: Callable[[R], Awaitable[WriteOutcome]]) -> WriteOutcome:
        """Submit a request. If the request is outdated and may be merged, add its base version first.

        The base version is read only if the catalogue or the writer knows a later version of the note. A
        version that is newer than the catalogue may belong to a change that is being refused. The writer
        deletes the row of such a version before it answers. Raises the errors of `submit`, and
        `VersionConflict` if the base version is missing.
        """
        expected = request.expected_version
        if request.on_conflict != MERGE or request.id is None or expected is None:
            return await submit(request)
        entry = self._catalogue.get(request.id)
        is_outdated = entry is not None and entry.note.version > expected
        base = await self._read(request.id, expected) if is_outdated else None
        try:
            return await submit(attrs.evolve(request, base=base))
        except VersionConflict as conflict:
            if base is not None:
                raise
            refusal = conflict
        base = None if is_outdated else await self._read(request.id, expected)
        if base is None:
            raise self._no_base(expected, refusal)
        return await submit(attrs.evolve(request, base=base))

    async def _read(self, note_id: str, version: int) -> bytes | None:
        history = self._history
        if history is None or not 0 < version <= _LARGEST:
            return None
        return await self._reading.run(lambda: history.content(note_id, version))

    def _no_base(self, expected: int, refusal: VersionConflict) -> VersionConflict:
        current = refusal.extras["current_version"]
        reason = f"version {expected} is not in the history"
        if self._history is None:
            reason = "the history is disabled (history.enabled is off)"
        return VersionConflict(
            f"The note is at version {current}, not {expected}, and cannot be merged: {reason}. "
            "Nothing was written. Read the note again, combine both changes and retry with "
            f"expected_version {current}.",
            **refusal.extras,
        )


@frozen
class MergedFile:
    """The bytes to write, or None if the file does not need to change.

    `is_merged` means that the bytes were combined from both sides.

    If no merge was necessary, the bytes are those of `mine`.
    """

    data: bytes | None
    is_merged: bool = False


def merge_files(
    base: bytes,
    mine: bytes,
    theirs: LoadedNote,
    entry: Entry,
    style: VaultStyle,
    *,
    refused: str,
    with_contributors: bool = False,
) -> MergedFile:
    """Return new bytes for a note's file: `theirs`, with the changes from `base` to `mine`. Blocks.

    With `with_contributors`, the contributors that `mine` adds are added too. Raises `VersionConflict` with
    the `conflicts` and the message `refused`, and `StorageFailed` for files that are not notes.
    """
    modified = from_nanoseconds(theirs.source.state.mtime_ns)
    if base == theirs.source.data:
        return MergedFile(None if mine == base else mine)
    try:
        # For missing values, all three documents use the same path and time, so these values never differ.
        before, wanted, now = (
            parse_document(data, entry.path, modified, entry.note.id, style)
            for data in (base, mine, theirs.source.data)
        )
        if says(wanted) == says(now):
            return MergedFile(None)
        if says(before) == says(now) and _differ_in_stamps(base, now, theirs.source.data, entry, style):
            return MergedFile(mine)
        merged = merge_documents(before, wanted, now)
        if merged.result is None:
            raise VersionConflict(
                refused,
                **current_of(theirs.document.note),
                warnings=[],
                conflicts=[conflict.to_row() for conflict in merged.conflicts],
            )
        if says(merged.result) == says(now):
            return MergedFile(None)
        document = merged.result
        if with_contributors:
            sides = (each.note.contributors for each in (before, wanted, now))
            note = attrs.evolve(document.note, contributors=tuple(merge_items(*sides)))
            document = attrs.evolve(document, note=note)
        data = rewrite_document(
            theirs.source.data,
            entry.path,
            modified,
            document,
            replace_body=document.content != now.content,
            stand_in=entry.stand_in,
            style=style,
        )
    except UnreadableNote as problem:
        raise StorageFailed(
            f"The versions of {entry.path} cannot be merged: {problem.reason}. Nothing was changed."
        ) from problem
    return MergedFile(data, is_merged=True)


def _differ_in_stamps(base: bytes, now: Document, current: bytes, entry: Entry, style: VaultStyle) -> bool:
    """Return whether `current` differs from `base` only in values that every write sets.

    `now` is the parsed form of `current`.

    If a person rearranged the file or added comments, the result is False, and the file keeps its layout.
    """
    try:
        keys = given_keys(base, style) & {"id", "version", "updated_at", "contributors"}
        values = {key: getattr(now.note, key) for key in keys}
        return amend_document(base, entry.path, now.note.updated_at, values, entry.note.id, style) == current
    except UnreadableNote:
        return False


def says(document: Document) -> tuple[Any, str]:
    """Return the values and the text of a note, without the values that every write sets."""
    note = attrs.evolve(
        document.note,
        version=0,
        updated_at=document.note.created_at,
        contributors=(),
        inline_tags=(),
        has_conflict_markers=False,
    )
    return note, document.content
