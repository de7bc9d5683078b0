"""Ports of the journal to packages that it does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, Protocol


class KnownNote(Protocol):
    """A note: its title, and the agents that wrote it."""

    @property
    def title(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def contributors(self) -> Collection[str]: ...


class KnownEntry(Protocol):
    """An entry of the catalogue."""

    @property
    def note(self) -> KnownNote: ...


class KnownNotes(Protocol):
    """The notes that there are: the retention keeps their agents, the access log shows their titles."""

    def __contains__(self, note_id: str) -> bool: ...
    def __iter__(self) -> Iterator[KnownEntry]: ...
    def get(self, note_id: str) -> KnownEntry | None: ...


class ExtraRowsBatch(Protocol):
    """Rows of another package that are stored with whatever else is; none of them is false."""

    def __bool__(self) -> bool: ...
    def store(self, connection: Any) -> None: ...


class ExtraRows:
    """Commits rows of another package together with the journal; this one has no rows."""

    #: Commits everything unsaved; the callable it returns waits for that. The coordinator sets it.
    commit: Callable[[], Awaitable[Callable[[], Awaitable[object]]]] | None = None

    @property
    def has_unsaved(self) -> bool:
        """Whether there are rows that no commit has taken yet."""
        return False

    def take_unsaved(self) -> ExtraRowsBatch:
        """Take the rows for a commit; then `saved` is called, or `put_back` when the commit failed."""
        return _Nothing()

    def put_back(self, rows: Any) -> None:
        """Have rows again; newer ones win."""

    def saved(self, rows: Any) -> None:
        """Mark rows as committed."""


class _Nothing:
    def __bool__(self) -> bool:
        return False

    def store(self, connection: Any) -> None:
        """Store nothing."""
