"""Version rows: the kept states of a note, and what a store of them offers (docs/spec/history.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from attrs import frozen

#: What made a version.
CREATED: Final = "created"
UPDATED: Final = "updated"
RENAMED: Final = "renamed"
DELETED: Final = "deleted"
RESTORED: Final = "restored"
OUTSIDE: Final = "outside"
OPERATIONS: Final = (CREATED, UPDATED, RENAMED, DELETED, RESTORED, OUTSIDE)


@frozen(kw_only=True)
class VersionRow:
    """One state of a note.

    `digest` is the SHA-256 of the file's bytes in hex, `size` their number; `changed` names what differs from
    the version before ("body", "title", "tags" and other properties). A deletion has the bytes that were
    deleted, under the version they had plus one. `is_undo`: it takes back what an agent changed; older rows
    do not say it.
    """

    note_id: str
    version: int
    at: datetime
    agent: str
    op: str
    title: str
    path: str
    size: int
    digest: str
    changed: tuple[str, ...] = ()
    is_undo: bool = False


class VersionReader(Protocol):
    """Reads version rows and the bytes they stand for. Every method blocks: run it in a worker thread.

    Each raises `HistoryFailed` (a `lithos.core.errors.StorageFailed`) when the store cannot be read.
    """

    def row(self, note_id: str, version: int) -> VersionRow | None:
        """One version, or None when it is unknown or was pruned."""

    def content(self, note_id: str, version: int) -> bytes | None:
        """The exact bytes of the file in that version, or None."""

    def current_at(self, note_id: str, at: datetime) -> VersionRow | None:
        """The version that was current at a time: the newest one made no later."""

    def oldest(self, note_id: str) -> int | None:
        """The oldest version that is kept, None when none is."""

    def rows(self, note_id: str, limit: int, before: int | None = None) -> tuple[Sequence[VersionRow], int]:
        """The newest versions of a note (below `before`), newest first; and how many are kept in all."""

    def recent(
        self,
        *,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        is_deleted: bool = False,
        as_recorded: bool = False,
        limit: int,
        before: int | None = None,
    ) -> tuple[Sequence[VersionRow], int]:
        """Versions of all notes, newest first (of a deleted note its deletion only, where `is_deleted`).

        Only those by `agent`, made from `since` up to before `until`, with a `version` below `before`; and
        how many there are in all.
        """
