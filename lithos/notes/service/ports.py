"""Interfaces that the notes need from later packages. `lithos.kernel.parts` provides them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.model.note import Document
from lithos.notes.model.versions import VersionRow
from lithos.notes.writing.messages import WriteOutcome
from lithos.text.words.similarity import Match


@frozen
class KeptNote:
    """A note in one version. `current_version` is `None` if the note is deleted."""

    entry: Entry
    document: Document
    row: VersionRow
    data: bytes
    current_version: int | None


class EarlierVersions(Protocol):
    """The kept versions of notes. Each method raises `HistoryDisabled` if no versions are kept."""

    async def read(
        self, note_id: str | None, path: str | None, version: int | None, as_of: datetime | None
    ) -> KeptNote:
        """Return a note in a version or at a time, even if it was deleted.

        Raises `VersionNotFound`, `DocNotFound`.
        """

    async def resolve(self, note_id: str | None, path: str | None) -> str | None:
        """Return the id of a note by id or path, or of a deleted note by its former path.

        Return None if neither is given. Raises `DocNotFound` for a path that no note has or had.
        """

    async def way_back(self, note_id: str) -> str:
        """Return a sentence for people and agents on whether and how a deleted note can be restored."""


class TextMatches(Protocol):
    """Finds notes by a full-text query."""

    async def match_text(self, query: str) -> tuple[list[Entry], str]:
        """Return all matching notes, best first. If the query cannot be parsed, return the reason.

        Raises `SearchBackendFailed`.
        """


@frozen
class Similar:
    """A note that may have the same content, and its similarity."""

    entry: Entry
    match: Match


@frozen
class NewNote:
    """The text and author of a note that is being created."""

    title: str
    content: str
    agent: str


class SimilarNotes(Protocol):
    """Finds notes with content similar to a new note."""

    async def beside(
        self, new: NewNote, write: Callable[[], Awaitable[WriteOutcome]]
    ) -> tuple[WriteOutcome, Sequence[Similar]]:
        """Return the outcome of a write, and some similar notes, most similar first.

        Raises the errors of the write.
        """


class OtherFiles(Protocol):
    """Files of the vault that are not notes but are read and listed like notes."""

    @property
    def is_enabled(self) -> bool:
        """Return whether the configuration enables these files."""

    def is_meant(self, file_id: str | None, path: str | None) -> bool:
        """Return whether the arguments of a read name such a file rather than a note."""

    async def read_row(
        self, file_id: str | None, path: str | None, place: str | None, offset: int, max_length: int | None
    ) -> Mapping[str, Any]:
        """Return the answer of a read. Raises `DocNotFound` and `InvalidInput`."""

    def list_rows(
        self,
        path_prefix: str | None,
        name_contains: str | None,
        since: datetime | None,
        offset: int,
        limit: int,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return a page of the files that pass the filters, by path, and their total number."""
