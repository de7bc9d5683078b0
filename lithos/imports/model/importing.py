"""The data that an import reads: records (one becomes one note), attachments, and unreadable items.

A source is read as a stream, so that a file of any size needs little memory (docs/spec/integration.md §1).

Of another Lithos's databases rows are carried over (`lithos.events.model.imported_rows`).
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

#: In the order in which they are carried.
TABLES: Final[Mapping[str, CarriedTable]] = {
    **{table.name: table for table in (AGENTS, *CARRIED, ACCESSES)},
    **LEARNED,
}


@frozen
class RowBatch:
    """Some rows of one table. `source` distinguishes logs of accesses.

    `is_look`: nothing is written, it is only looked at which of their keys are taken.
    """

    table: CarriedTable
    rows: tuple[TableRow, ...] = field(repr=False)
    source: str = ""
    is_look: bool = False


#: Bytes of the text of a note, as `storage.max_content_size_bytes` has it by default.
MOST_CONTENT: Final = 1_000_000


@frozen
class RecordEdge:
    """A typed edge from the record to another: `target` is the other's `id`, else its title."""

    relation: str
    target: str


@frozen
class Record:
    """One thing of a source that becomes one note.

    `id` is unique in its source and the same whenever the source is read again; `hash` (hex) changes exactly
    when something that is imported of the record changed. `position` names its place for a person (`line 12`,
    `conversations[3]`, `folder/note.md`). `path` is the requested path below the folder that is imported
    into, with `.md`; None leaves the file name to the title. `content` is Markdown without frontmatter.
    `properties` are further frontmatter keys, kept as they are. Times are aware; None when unknown. If the
    source is Markdown with frontmatter of its own, `text` is the whole file, which is then kept byte for byte
    but for what an import adds.
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
    #: Wiki-links and Markdown links to notes in `content`, counted for the report.
    links: int = 0
    text: bytes | None = None
    #: Further names by which the source links to it, such as a permalink.
    aliases: tuple[str, ...] = ()
    #: The frontmatter of `text` has to say the title, which is not that of the file.
    is_titled: bool = False
    #: Links that lead to no note and cannot become links here, as written in the source.
    dead: tuple[str, ...] = ()


@frozen
class ImportedAttachment:
    """A file that is not a note and is copied into the folder of the notes;

    `path` is relative, `file` is its path on disk.
    """

    path: str
    file: Path
    size: int


@frozen
class Malformed:
    """An unreadable item: it is skipped, and reported with its place and the reason."""

    position: str
    reason: str


@frozen
class Degraded:
    """An item that was read only in part: it is reported with its place and the reason."""

    position: str
    reason: str


Item = Record | ImportedAttachment | Malformed | Degraded | RowBatch


class Source(Protocol):
    """One kind of source. `kind` is its name on the command line."""

    kind: str

    def recognises(self, path: Path) -> bool:
        """Whether a file or folder looks like this kind; reads a few kilobytes at most."""

    def read(self, path: Path) -> Iterator[Item]:
        """Read item by item; called in a worker thread, pauses between items.

        Raises `ImportRefused` when nothing of it can be read (it is no such source at all).
        """


class ImportRefused(Exception):
    """The source cannot be imported: the message says what, why and what to do next."""
