"""The extracted texts of attachments (`.lithos/attachments.db`). The database is a cache that can be rebuilt.

Commits are not synced to disk. After a power failure, files may have to be read again. The new text of a
changed file is stored under a new number until it is complete, so searches find either the old or the new
text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import apsw
from attrs import frozen

from lithos.attachments.model.kinds import attachment_id
from lithos.attachments.model.parts import FilePart
from lithos.kernel.databases.database import Database, DatabaseLayout
from lithos.kernel.databases.sqlite import Durability
from lithos.kernel.log import get_logger
from lithos.notes.files.values import FileState

#: Increase this number if the same bytes would produce a different text. All files are then read again.
FORMAT: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files(
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    digest TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, parts INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parts(
    file INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, page INTEGER, text TEXT NOT NULL,
    PRIMARY KEY(file, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS parts_by_place ON parts(file, place);
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_FILE_COLUMNS: Final = "number,path,size,mtime_ns,digest,state,reason,parts"
#: Number of low bits in a serial that contain the part number. They allow more parts than a file may have.
PARTS_BITS: Final = 11

#: `whole` and `cut` files have text. `failed` files could not be read. `missing` files need a library that is
#: not installed. `left` files were not read, because the limit for all files together was reached.
ReadState = Literal["whole", "cut", "failed", "missing", "left"]


@frozen
class AttachedFile:
    """An attachment with the state of its text. `reason` explains missing or incomplete text.

    `digest` is the SHA-256 of the bytes that were read, or "" if no bytes were read. `parts` is the number of
    pages, cards, elements or passages with text.
    """

    number: int
    path: str
    file: FileState
    digest: str
    state: ReadState
    reason: str
    parts: int

    @property
    def id(self) -> str:
        """The id: `att_` and 12 hexadecimal digits of the path's digest."""
        return attachment_id(self.path)

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]

    def serials(self) -> range:
        """The index serials of the file's parts."""
        first = self.number << PARTS_BITS
        return range(first, first + self.parts)

    def stamps(self, projects: Sequence[str] = ()) -> dict[int, int]:
        """Return the stamps that the indexes should contain for this file, by serial.

        The stamps change with the path, the bytes and the projects of the file.
        """
        parts = (self.path, self.digest, self.number, *projects)
        known = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8)
        base = int.from_bytes(known.digest()) >> 2
        return {serial: base + place for place, serial in enumerate(self.serials())}


@frozen
class StoredPart:
    """A stored part with its serial."""

    serial: int
    part: FilePart


def number_of(serial: int) -> int:
    """Return the number of the file to which a serial belongs."""
    return serial >> PARTS_BITS


def _upgrade(connection: apsw.Connection, _: datetime) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name='format'").fetchone()
    if row is None or row[0] != FORMAT:
        connection.execute("DELETE FROM files")
        connection.execute("DELETE FROM parts")
        connection.execute("INSERT OR REPLACE INTO meta VALUES('format',?)", (FORMAT,))


class Shelf(Database):
    """The database `.lithos/attachments.db`.

    All methods block. One caller may write while another caller reads.
    """

    layout = DatabaseLayout(
        _SCHEMA, _upgrade, Durability.OFF, set_aside="damaged attachment database set aside"
    )
    log = get_logger("lithos.attachments")

    def load(self) -> list[AttachedFile]:
        """Return all complete files. Unfinished texts of an earlier process are deleted."""
        with self.transaction():
            self._writer.execute("DELETE FROM files WHERE path IS NULL")
            self._writer.execute("DELETE FROM parts WHERE file NOT IN (SELECT number FROM files)")
        rows = self._writer.execute(f"SELECT {_FILE_COLUMNS} FROM files ORDER BY path")  # noqa: S608 - our names
        return [
            AttachedFile(number, path, FileState(size, mtime), digest, state, reason, parts)
            for number, path, size, mtime, digest, state, reason, parts in rows
        ]

    def begin(self) -> int:
        """Return a new file number, under which parts can be added."""
        with self.transaction():
            self._writer.execute(
                "INSERT INTO files(path,size,mtime_ns,digest,state,reason,parts) VALUES(NULL,0,0,'','','',0)"
            )
            return self._writer.last_insert_rowid()

    def add(self, number: int, first: int, parts: Sequence[FilePart]) -> None:
        """Add parts to a file, numbered from `first`."""
        with self.transaction():
            self._writer.executemany(
                "INSERT INTO parts VALUES(?,?,?,?,?)",
                [
                    (number, first + place, part.place, part.page, part.text)
                    for place, part in enumerate(parts)
                ],
            )

    def finish(self, file: AttachedFile) -> None:
        """Mark a file as complete, and delete the earlier text of its path."""
        with self.transaction():
            self._remove("path=? AND number<>?", (file.path, file.number))
            self._writer.execute(
                f"INSERT OR REPLACE INTO files({_FILE_COLUMNS}) VALUES(?,?,?,?,?,?,?,?)",
                (
                    file.number,
                    file.path,
                    file.file.size,
                    file.file.mtime_ns,
                    file.digest,
                    file.state,
                    file.reason,
                    file.parts,
                ),
            )

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete files and their parts."""
        with self.transaction():
            for number in numbers:
                self._remove("number=?", (number,))

    def _remove(self, where: str, given: tuple[str | int, ...]) -> None:
        self._writer.execute(
            f"DELETE FROM parts WHERE file IN (SELECT number FROM files WHERE {where})",  # noqa: S608 - our names
            given,
        )
        self._writer.execute(f"DELETE FROM files WHERE {where}", given)  # noqa: S608 - our names

    def stored(self, number: int, first: int = 0, most: int = -1) -> list[StoredPart]:
        """Return up to `most` parts of a file in order. Only the writing thread may call this."""
        rows = self._writer.execute(
            "SELECT number,place,page,text FROM parts WHERE file=? AND number>=? ORDER BY number LIMIT ?",
            (number, first, most),
        )
        return [
            StoredPart((number << PARTS_BITS) + place, FilePart(name, text, page))
            for place, name, page, text in rows
        ]

    def parts(self, serials: Iterable[int]) -> Mapping[int, FilePart]:
        """Return parts by serial. Missing parts are left out. Any reader may call this."""
        found: dict[int, FilePart] = {}
        for serial in serials:
            row = self._reader.execute(
                "SELECT place,page,text FROM parts WHERE file=? AND number=?",
                (number_of(serial), serial - (number_of(serial) << PARTS_BITS)),
            ).fetchone()
            if row is not None:
                found[serial] = FilePart(row[0], row[2], row[1])
        return found

    def last_page(self, number: int) -> int:
        """Return the last page of a file with text, or 0 if no page has text. Any reader may call this."""
        row = self._reader.execute("SELECT MAX(page) FROM parts WHERE file=?", (number,)).fetchone()
        return (row and row[0]) or 0

    def text_of(self, number: int, place: str | None) -> list[FilePart]:
        """Return the part at a place of a file, or all parts in order. Any reader may call this."""
        where, given = ("file=?", (number,)) if place is None else ("file=? AND place=?", (number, place))
        rows = self._reader.execute(
            f"SELECT place,page,text FROM parts WHERE {where} ORDER BY number",  # noqa: S608 - our names
            given,
        )
        return [FilePart(name, text, page) for name, page, text in rows]
