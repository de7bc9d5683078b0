"""Items that an import reads: records (each becomes a note), attachments and unreadable items.

Sources are read as streams, so a file of any size needs little memory (docs/spec/integration.md §1).

Only upstream databases yield rows (`lithos.events.model.imported_rows`).
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

#: The tables, in the order of their import.
TABLES: Final[Mapping[str, CarriedTable]] = {
    **{table.name: table for table in (AGENTS, *CARRIED, ACCESSES)},
    **LEARNED,
}


@frozen
class RowBatch:
    """Several rows of one table. `source` identifies the access log to which the rows belong.

    If `is_look` is true, nothing is written. The rows are only used to find keys that are already used.
    """

    table: CarriedTable
    rows: tuple[TableRow, ...] = field(repr=False)
    source: str = ""
    is_look: bool = False


#: Maximum number of bytes in a note's text: the default of `storage.max_content_size_bytes`.
MOST_CONTENT: Final = 1_000_000


@frozen
class RecordEdge:
    """A typed edge from a record to another record. `target` is the `id` or title of the other record."""

    relation: str
    target: str


@frozen
class Record:
    """An item of a source that becomes one note.

    `id` is unique in its source and the same in every reading. `hash` (hex) changes if and only if imported
    data of the record changes. `position` names the record's place for a person (`line 12`,
    `conversations[3]`, `folder/note.md`). `path` is the requested path with `.md`, below the target folder.
    If it is None, the file is named after the title. `content` is Markdown without frontmatter. `properties`
    are additional frontmatter keys, which stay unchanged. Times have a zone, or are None if unknown. If the
    source is Markdown with its own frontmatter, `text` is the whole file, which is kept byte for byte except
    for keys that the import adds.
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
    #: Number of wiki-links and Markdown links to notes in `content`. The report shows it.
    links: int = 0
    text: bytes | None = None
    #: Other names that the source uses in links to the record, such as a permalink.
    aliases: tuple[str, ...] = ()
    #: True if the title must be added to the frontmatter of `text`, because it differs from the title in the
    #: file.
    is_titled: bool = False
    #: Links as written in the source that lead to no note, so they cannot become links here.
    dead: tuple[str, ...] = ()


@frozen
class ImportedAttachment:
    """A file that is not a note. The import copies it into the notes folder.

    `path` is the relative path of the copy. `file` is the path of the original on disk.
    """

    path: str
    file: Path
    size: int


@frozen
class Malformed:
    """An unreadable item. It is skipped, and the report shows its place and the reason."""

    position: str
    reason: str


@frozen
class Degraded:
    """An item that was only imported in part. The report shows its place and the reason."""

    position: str
    reason: str


Item = Record | ImportedAttachment | Malformed | Degraded | RowBatch


class Source(Protocol):
    """One kind of import source. `kind` is its name on the command line."""

    kind: str

    def recognises(self, path: Path) -> bool:
        """Return whether a file or folder looks like this kind. At most a few kilobytes are read."""

    def read(self, path: Path) -> Iterator[Item]:
        """Yield the items of the source. Runs in a worker thread, which pauses between items.

        Raises `ImportRefused` if no item can be read, for example because the file is of another kind.
        """


class ImportRefused(Exception):
    """Error: a source cannot be imported. The message says what failed, why, and what to do next."""
