"""Values of the version store: versions to record, rows as upkeep needs them, and the refusal."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from lithos.core.errors import StorageFailed
from lithos.core.history.versions import VersionRow


class HistoryFailed(StorageFailed):
    """`history.db` cannot be read or written now."""


@frozen(kw_only=True)
class NewVersion:
    """A version to record.

    `data` None: the bytes of the version before. `before` is the state that it was made from: it is recorded
    first unless the newest version that is kept has the same bytes.
    """

    note_id: str
    version: int
    at: datetime
    agent: str
    op: str
    path: str
    title: str
    data: bytes | None
    changed: tuple[str, ...] = ()
    is_undo: bool = False
    before: NewVersion | None = None


@frozen
class PendingVersion:
    """A row of which it is not known whether its bytes reached the file.

    `former` is the hash of the version before, as the manifest has it of files, None for the first.
    """

    place: int
    row: VersionRow
    mark: str
    former: str | None
    is_newest: bool


@frozen
class NewestVersion:
    """The last recorded version of a note; `mark` is the hash of its bytes as the manifest has it."""

    number: int
    note_id: str
    place: int
    version: int
    path: str
    title: str
    mark: str
    is_deletion: bool
    is_pending: bool


def failed(failure: Exception) -> HistoryFailed:
    """The refusal for what SQLite or the system raised."""
    return HistoryFailed(
        f"history.db does not answer: {failure}. Check free space and permissions, then retry."
    )
