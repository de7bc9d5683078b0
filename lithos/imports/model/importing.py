"""Values that an import reads: records (each becomes one note), attachments, and unreadable items.

Sources are read as streams, so that a file of any size needs little memory (docs/spec/integration.md §1).

Rows are imported only from upstream databases (`lithos.events.model.imported_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import field, frozen

from lithos.events.model.imported_rows import ACCESSES, AGENTS, CarriedTable, TableRow
from lithos.memory.model.imported_tables import LEARNED
from lithos.tasks.model.imported_tables import CARRIED

#: Tables in the order in which they are imported.
TABLES: Final[Mapping[str, CarriedTable]] = {
    **{table.name: table for table in (AGENTS, *CARRIED, ACCESSES)},
    **LEARNED,
}


@frozen
class RowBatch:
    """Some rows of one table. `source` distinguishes access logs.

    If `is_look` is set, nothing is written: the rows only show which keys are taken.
    """

    table: CarriedTable
    rows: tuple[TableRow, ...] = field(repr=False)
    source: str = ""
    is_look: bool = False


#: Maximum bytes of a note's text, the default of `storage.max_content_size_bytes`.
MOST_CONTENT: Final = 1_000_000


@frozen
class RecordEdge:
    """Typed edge from a record to another record. `target` is the other record's `id` or title."""

    relation: str
    target: str


@frozen
class Record:
    """One item of a source that becomes one note.

    `id` is unique in its source and stays the same in later readings. `hash` (hex) changes exactly when
    imported data of the record changed. `position` names the record's place for a person (`line 12`,
    `conversations[3]`, `folder/note.md`). `path` is the requested path, with `.md`, below the target folder;
    if it is None, the file is named after the title. `content` is Markdown without frontmatter. `properties`
    are further frontmatter keys, kept unchanged. Times have a zone, or are None if unknown. If the source is
    Markdown with its own frontmatter, `text` is the whole file, which is kept byte for byte except for keys
    that the import adds.
    """

    id: str
    hash: str
    position: str
    title: str
    content: str
    path: str | None = None
    tags: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    source_url: str | None = None
    note_type: str | None = None
    namespace: str | None = None
    author: str | None = None
    properties: Mapping[str, Any] = field(factory=dict)
    edges: tuple[RecordEdge, ...] = ()
    #: Number of wiki-links and Markdown links to notes in `content`, for the report.
    links: int = 0
    text: bytes | None = None
    #: Other names by which the source links to the record, such as a permalink.
    aliases: tuple[str, ...] = ()
    #: True if the frontmatter of `text` must contain the title, because it differs from the file's title.
    is_titled: bool = False
    #: Links, as written in the source, that lead to no note and cannot become links here.
    dead: tuple[str, ...] = ()


@frozen
class ImportedAttachment:
    """File that is not a note and is copied into the notes folder.

    `path` is the relative target path, `file` is the path on disk.
    """

    path: str
    file: Path
    size: int


@frozen
class Malformed:
    """Unreadable item, which is skipped and reported with its place and the reason."""

    position: str
    reason: str


@frozen
class Degraded:
    """Item that was imported only in part and is reported with its place and the reason."""

    position: str
    reason: str


Item = Record | ImportedAttachment | Malformed | Degraded | RowBatch


class Source(Protocol):
    """One kind of source. `kind` is its name on the command line."""

    kind: str

    def recognises(self, path: Path) -> bool:
        """Return whether a file or folder looks like this kind, after reading at most a few kilobytes."""

    def read(self, path: Path) -> Iterator[Item]:
        """Yield one item after another. Runs in a worker thread and pauses between items.

        Raises `ImportRefused` if nothing can be read, for example because the file is of another kind.
        """


class ImportRefused(Exception):
    """Error for a source that cannot be imported. The message says what failed, why, and what to do next."""
