"""Ports through which the journal uses packages that it may not import."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, Protocol


class KnownNote(Protocol):
    """A note with its title and its authors."""

    @property
    def title(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def contributors(self) -> Collection[str]: ...


class KnownEntry(Protocol):
    """An entry of the note catalogue."""

    @property
    def note(self) -> KnownNote: ...


class KnownNotes(Protocol):
    """The existing notes.

    The retention keeps the authors of existing notes, and the access log shows the titles of existing notes.
    """

    def __contains__(self, note_id: str) -> bool: ...
    def __iter__(self) -> Iterator[KnownEntry]: ...
    def get(self, note_id: str) -> KnownEntry | None: ...


class ExtraRowsBatch(Protocol):
    """Rows of another package that are stored with the next commit. The batch is falsy if it has no rows."""

    def __bool__(self) -> bool: ...
    def store(self, connection: Any) -> None: ...


class ExtraRows:
    """Source of rows from another package that are committed together with the journal.

    The base class `ExtraRows` never has rows.
    """

    #: Callable that requests a commit of all unsaved rows. It returns a callable that waits for this commit.
    #: The coordinator sets it.
    commit: Callable[[], Awaitable[Callable[[], Awaitable[object]]]] | None = None

    @property
    def has_unsaved(self) -> bool:
        """True if some rows were not taken for a commit yet."""
        return False

    def take_unsaved(self) -> ExtraRowsBatch:
        """Return the rows to commit. Afterwards call `saved`, or `put_back` if the commit fails."""
        return _Nothing()

    def put_back(self, rows: Any) -> None:
        """Accept the rows of a failed commit again. If newer rows exist, they win."""

    def saved(self, rows: Any) -> None:
        """Mark rows as committed."""


class _Nothing:
    def __bool__(self) -> bool:
        return False

    def store(self, connection: Any) -> None:
        """Store nothing."""
