"""What the journal asks of packages that it does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol


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
