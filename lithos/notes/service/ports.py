"""What the services and tools of notes need of later capabilities; `lithos.kernel.parts` finds them."""

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
    """A note as of a version; `current_version` is None when it is deleted."""

    entry: Entry
    document: Document
    row: VersionRow
    data: bytes
    current_version: int | None


class EarlierVersions(Protocol):
    """The versions of notes that are kept. Where none are, each question raises `HistoryDisabled`."""

    async def read(
        self, note_id: str | None, path: str | None, version: int | None, as_of: datetime | None
    ) -> KeptNote:
        """A note as of a version or a time, also a deleted one. Raises `VersionNotFound`, `DocNotFound`."""

    async def resolve(self, note_id: str | None, path: str | None) -> str | None:
        """The id of a note by id or path, also of a deleted one by the path it had; None without either.

        Raises `DocNotFound` for a path that no note has or had.
        """

    async def way_back(self, note_id: str) -> str:
        """How the note comes back when it is deleted, for people and agents; also that it does not."""


class TextMatches(Protocol):
    """Finds notes by a full-text query."""

    async def match_text(self, query: str) -> tuple[list[Entry], str]:
        """Every note that matches, best first; why none can, when it does not parse.

        Raises `SearchBackendFailed`.
        """


@frozen
class Similar:
    """A note that may say the same, and how surely."""

    entry: Entry
    match: Match


@frozen
class NewNote:
    """What is said of a note that is being made, and by whom."""

    title: str
    content: str
    agent: str


class SimilarNotes(Protocol):
    """Finds notes that say what a new one says."""

    async def beside(
        self, new: NewNote, write: Callable[[], Awaitable[WriteOutcome]]
    ) -> tuple[WriteOutcome, Sequence[Similar]]:
        """The outcome of a write, and some similar notes, the likeliest first.

        Raises what the write raises.
        """


class OtherFiles(Protocol):
    """Files of the vault that are no notes, and are read and listed like these."""

    @property
    def is_enabled(self) -> bool:
        """Whether the configuration has them read."""

    def is_meant(self, file_id: str | None, path: str | None) -> bool:
        """Whether a read is of a file, and not of a note."""

    async def read_row(
        self, file_id: str | None, path: str | None, place: str | None, offset: int, max_length: int | None
    ) -> Mapping[str, Any]:
        """The answer of a read. Raises `DocNotFound`, `InvalidInput`."""

    def list_rows(
        self,
        path_prefix: str | None,
        name_contains: str | None,
        since: datetime | None,
        offset: int,
        limit: int,
    ) -> tuple[list[dict[str, Any]], int]:
        """A page of the files that pass, by path, and how many there are."""
