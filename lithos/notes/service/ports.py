"""Interfaces through which the note services use packages above them.

`lithos.kernel.parts` provides the implementations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.model.earlier_turns import EarlierTurn
from lithos.notes.model.note import Document
from lithos.notes.model.versions import VersionRow
from lithos.notes.writing.messages import WriteOutcome
from lithos.text.words.similarity import Match


@frozen
class KeptNote:
    """A version of a note. `current_version` is `None` if the note is deleted."""

    entry: Entry
    document: Document
    row: VersionRow
    data: bytes
    current_version: int | None


class EarlierVersions(Protocol):
    """The kept versions of notes. Methods raise `HistoryDisabled` if the history is disabled."""

    async def read(
        self, note_id: str | None, path: str | None, version: int | None, as_of: datetime | None
    ) -> KeptNote:
        """Return a version of a note, by version number or time, even if the note was deleted.

        Raises `VersionNotFound` or `DocNotFound`.
        """

    async def identify(self, text: str) -> str:
        """Return the id of the note, which may be deleted, whose id begins with a text, else the text.

        Does not raise `HistoryDisabled`. Raises `AmbiguousIdPrefix`.
        """

    async def resolve(self, note_id: str | None, path: str | None) -> str | None:
        """Return the id of the note with this id or path. A former path of a deleted note is accepted too.

        If neither argument is given, the result is None. Raises `DocNotFound` if no note has or had the path.
        """

    async def way_back(self, note_id: str) -> str:
        """Return a sentence that explains whether and how a deleted note can be restored."""


class TextMatches(Protocol):
    """Interface of the full-text search for notes."""

    async def match_text(self, query: str) -> tuple[list[Entry], str]:
        """Return all matching notes, best first, and a message.

        The message explains why a query cannot be parsed.

        Raises `SearchBackendFailed` if the search fails.
        """


@frozen
class Similar:
    """A note that may have the same content as another note, and the similarity of the two notes."""

    entry: Entry
    match: Match


@frozen
class NewNote:
    """The text and the author of a note that is being created."""

    title: str
    content: str
    agent: str


class SimilarNotes(Protocol):
    """Interface that finds existing notes with content similar to a new note."""

    async def beside(
        self, new: NewNote, write: Callable[[], Awaitable[WriteOutcome]]
    ) -> tuple[WriteOutcome, Sequence[Similar]]:
        """Perform a write. Return the outcome, and some notes similar to the new note, most similar first.

        Raises the errors of the write.
        """


class OtherFiles(Protocol):
    """Interface to vault files that are not notes, but can be read and listed like notes."""

    @property
    def is_enabled(self) -> bool:
        """Return whether such files are enabled in the configuration."""

    def is_meant(self, file_id: str | None, path: str | None) -> bool:
        """Return whether the arguments of a read refer to such a file rather than a note."""

    async def read_row(
        self, file_id: str | None, path: str | None, place: str | None, offset: int, max_length: int | None
    ) -> Mapping[str, Any]:
        """Return the answer to a read of such a file. Raises `DocNotFound` or `InvalidInput`."""

    def list_rows(
        self,
        path_prefix: str | None,
        name_contains: str | None,
        since: datetime | None,
        project: ProjectFilter | None,
        offset: int,
        limit: int,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return a page of the files that pass the filters, sorted by path, and the total number of files."""


class PastSessions(Protocol):
    """Interface to past sessions with AI clients, which can be searched and read next to the notes.

    `agent` is the name that the caller gives itself. Callers see only sessions within their reach.
    """

    @property
    def is_enabled(self) -> bool:
        """Return whether transcripts are added. Then there may be sessions."""

    async def search_rows(
        self, query: str, project: ProjectFilter | None, offset: int, limit: int, agent: str | None
    ) -> list[dict[str, Any]]:
        """Return the rows of the turns that match, best first. Raises `SearchBackendFailed`."""

    async def read_row(
        self, given: str, turn: int | None, offset: int, max_length: int | None, agent: str | None
    ) -> Mapping[str, Any]:
        """Return the answer to a read of a session. Raises `DocNotFound` and `InvalidInput`."""

    async def earlier(
        self, query: str, project: ProjectFilter | None, agent: str | None
    ) -> Sequence[EarlierTurn]:
        """Return the strong matches for a briefing, best first.

        The result is empty if the sessions cannot be searched now.
        """

    async def origin(self, agent: str) -> str | None:
        """Return the source of a note that an agent writes now: the session in which it works, if known."""
