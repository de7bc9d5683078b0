"""Tables and values of `history.db`: versions to record, rows for upkeep, and their bytes.

The table `notes` assigns a number to each note. `contents` stores bytes by their hash. `versions` has one row
per recorded state. Rows are numbered in recording order (`place`). Several rows may have the same version,
because a rename does not change the version. The last recorded of these rows then represents the version.

Bytes are stored once under their SHA-256. They are compressed. If a delta to the previous version is smaller,
the delta is stored instead. A delta is a Zstandard frame with the previous bytes as raw dictionary (like
`zstd --patch-from`). A chain has at most `CHAIN` deltas on a whole content, so reading a version decompresses
at most `CHAIN` + 1 frames.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import datetime
from typing import Any, Final

import apsw
from attrs import frozen

from lithos.kernel.databases.database import DatabaseLost, add_missing_columns
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import from_microseconds
from lithos.notes.files.values import digest_of
from lithos.notes.model.versions import (
    COPY,
    CREATED,
    DELETED,
    OUTSIDE,
    RENAMED,
    RESTORED,
    UPDATED,
    HistoryFailed,
    NewVersion,
    VersionRow,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

log = get_logger("lithos.history")

#: Maximum number of deltas on a whole content. Every 50th version of a note is stored whole.
CHAIN: Final = 49
#: Zstandard compression level. Compressing a note of 2 kB takes about 50 microseconds.
_LEVEL: Final = 3
#: Size in bytes above which low compression levels do not search far enough in the previous version.
_LARGE: Final = 128 * 1024

#: Maximum window of a frame, as a power of two (128 MiB).
_WIDEST: Final = 27
#: Minimum number of bytes of a dictionary, because Zstandard ignores shorter dictionaries.
_SHORTEST: Final = 8
#: Frames have no size, checksum or dictionary id, because the rows have these values.
_BARE: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.content_size_flag: 0,
    zstd.CompressionParameter.checksum_flag: 0,
    zstd.CompressionParameter.dict_id_flag: 0,
}
#: Compression ratio that cannot be reached without a dictionary.
_SURELY_SMALL: Final = 8


class DamagedContent(Exception):
    """The error raised if stored bytes cannot be read or are not the bytes that were stored."""


class Contents:
    """Reads and writes the table `contents` on one connection. Writing requires an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def find(self, digest: bytes) -> int | None:
        """Return the number of the content with this SHA-256."""
        row = self._connection.execute("SELECT number FROM contents WHERE digest=?", (digest,)).fetchone()
        return None if row is None else int(row[0])

    def put(self, data: bytes, base: int | None = None, base_data: bytes | None = None) -> int:
        """Store bytes unless they exist already. Return the content number.

        `base` is a content that is probably similar, such as the previous version. Its bytes are read from
        the database unless `base_data` is given.
        """
        digest = hashlib.sha256(data).digest()
        known = self.find(digest)
        if known is not None:
            return known
        depth, packed, of = 0, b"", None
        if base is not None:
            row = self._connection.execute("SELECT depth FROM contents WHERE number=?", (base,)).fetchone()
            if row is not None and row[0] < CHAIN:
                former = self.try_get(base) if base_data is None else base_data
                if former is not None:
                    depth, packed, of = int(row[0]) + 1, _pack(data, former), base
        if of is None or len(packed) * _SURELY_SMALL > len(data):
            whole = _pack(data, None)
            if of is None or len(whole) <= len(packed):
                depth, packed, of = 0, whole, None
        self._connection.execute(
            "INSERT INTO contents(digest,mark,size,base,depth,data) VALUES(?,?,?,?,?,?)",
            (digest, bytes.fromhex(digest_of(data)), len(data), of, depth, packed),
        )
        return self._connection.last_insert_rowid()

    def get(self, number: int) -> bytes:
        """Return the bytes of a content. Raises `DamagedContent`."""
        rows = self._connection.execute(
            "WITH RECURSIVE chain(number,base,data,digest,size) AS ("
            " SELECT number,base,data,digest,size FROM contents WHERE number=?1"
            " UNION ALL SELECT c.number,c.base,c.data,c.digest,c.size FROM chain"
            " JOIN contents c ON c.number=chain.base)"
            " SELECT base,data,digest,size FROM chain",
            (number,),
        ).fetchall()
        if not rows or rows[-1][0] is not None:
            raise DamagedContent(
                f"content {number} is missing, or the base of its stored difference is missing"
            )
        data: bytes | None = None
        try:
            for _, packed, _, size in reversed(rows):
                data = _unpack(packed, data, size)
        except (zstd.ZstdError, MemoryError) as failure:
            raise DamagedContent(f"content {number} cannot be decompressed: {failure}") from failure
        assert data is not None
        if hashlib.sha256(data).digest() != rows[0][2]:
            raise DamagedContent(f"content {number} has different bytes than were stored")
        return data

    def try_get(self, number: int) -> bytes | None:
        """Return the bytes of a content. Return None if they are damaged."""
        try:
            return self.get(number)
        except DamagedContent as damage:  # The new content is stored whole, so the damage has no effect.
            log.error("damaged version found", reason=str(damage))
            return None

    def drop_unused(self, numbers: list[int]) -> int:
        """Delete the contents that no version and no delta uses, and bases that are then unused.

        Returns the number of deleted contents.
        """
        dropped, waiting = 0, list(numbers)
        while waiting:
            number = waiting.pop()
            row = self._connection.execute(
                "SELECT base FROM contents WHERE number=?1"
                " AND NOT EXISTS(SELECT 1 FROM versions WHERE content=?1)"
                " AND NOT EXISTS(SELECT 1 FROM contents WHERE base=?1)",
                (number,),
            ).fetchone()
            if row is None:
                continue
            self._connection.execute("DELETE FROM contents WHERE number=?", (number,))
            dropped += 1
            if row[0] is not None:
                waiting.append(int(row[0]))
        return dropped


def _pack(data: bytes, former: bytes | None) -> bytes:
    options: dict[int, int] = dict(_BARE)
    size = len(former or b"") + len(data)
    if former and size > _LARGE:
        # The window must include both the dictionary and the content.
        options[zstd.CompressionParameter.window_log] = min(_WIDEST, size.bit_length())
        options[zstd.CompressionParameter.enable_long_distance_matching] = 1
    return zstd.compress(data, options=options, zstd_dict=_dictionary(former))


def _unpack(packed: bytes, former: bytes | None, size: int) -> bytes:
    if not size:
        return b""
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WIDEST}
    return zstd.ZstdDecompressor(_dictionary(former), options).decompress(packed, size)


def _dictionary(former: bytes | None) -> zstd.ZstdDict | None:
    if former is None or len(former) < _SHORTEST:
        return None
    return zstd.ZstdDict(former, is_raw=True)


def passed_on(row: VersionRow, data: bytes) -> NewVersion:
    """Convert a kept version for the history of another vault.

    The version is copied to the other vault before the note is moved.
    """
    return NewVersion(
        note_id=row.note_id,
        version=row.version,
        at=row.at,
        agent=row.agent,
        op=row.op,
        path=row.path,
        title=row.title,
        data=data,
        changed=row.changed,
        is_undo=row.is_undo,
        approved_by=row.approved_by,
        is_passed=True,
    )


@frozen
class PendingVersion:
    """A row whose bytes may not yet be in the file.

    `former` is the manifest hash of the version before the change, or None for the first version.
    """

    place: int
    row: VersionRow
    mark: str
    former: str | None
    is_newest: bool
    #: True for an intermediate version, whose bytes are never written to the file (see `NewVersion`).
    is_passed: bool = False


@frozen
class NewestVersion:
    """The last recorded version of a note. `mark` is the manifest hash of its bytes."""

    number: int
    note_id: str
    place: int
    version: int
    path: str
    title: str
    mark: str
    is_deletion: bool
    is_pending: bool


def failed(failure: Exception) -> HistoryFailed:
    """Return the error for a failure of SQLite or the operating system."""
    if isinstance(failure, DatabaseLost):
        return HistoryFailed(f"{failure}.")
    return HistoryFailed(
        f"history.db does not answer: {failure}. Check free space, free inodes and permissions, then retry."
    )


#: Version of the database format. When the meaning of a row changes, raise the number and migrate older files
#: in `upgrade`.
FORMAT: Final = 1

#: `contents.base` is the content from which a delta was computed. It is NULL for a whole content. `depth` is
#: the number of deltas between a content and its whole content. `mark` is the hash of the file in the
#: manifest (BLAKE2b). `versions.pending` is 1 until the file is known to have the bytes. It is 2 for the
#: bytes of an intermediate version. `versions.undo` marks versions that undo changes.
TABLES: Final = """
CREATE TABLE IF NOT EXISTS notes(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS contents(
    number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, mark BLOB NOT NULL, size INTEGER NOT NULL,
    base INTEGER REFERENCES contents(number), depth INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS contents_base ON contents(base) WHERE base IS NOT NULL;
CREATE TABLE IF NOT EXISTS versions(
    place INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes(number), version INTEGER NOT NULL,
    at INTEGER NOT NULL, agent TEXT NOT NULL, op INTEGER NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents(number), changed TEXT NOT NULL, pending INTEGER NOT NULL,
    undo INTEGER NOT NULL DEFAULT 0, approved_by TEXT);
CREATE INDEX IF NOT EXISTS versions_note ON versions(note);
CREATE INDEX IF NOT EXISTS versions_version ON versions(note, version);
CREATE INDEX IF NOT EXISTS versions_at ON versions(at);
CREATE INDEX IF NOT EXISTS versions_content ON versions(content);
CREATE INDEX IF NOT EXISTS versions_deleted ON versions(op) WHERE op=4;
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

#: The numbers of the operations in the database. They must never change.
CODES: Final = {CREATED: 1, UPDATED: 2, RENAMED: 3, DELETED: 4, RESTORED: 5, OUTSIDE: 6, COPY: 7}
DELETION: Final = CODES[DELETED]
NAMES: Final = {code: name for name, code in CODES.items()}

#: The columns that `read_row` reads, from `versions v`, `notes n` and `contents c`.
COLUMNS: Final = (
    "n.id,v.version,v.at,v.agent,v.op,v.path,v.title,c.digest,c.size,v.changed,v.undo,v.approved_by,v.place"
)
JOINED: Final = "versions v JOIN notes n ON n.number=v.note JOIN contents c ON c.number=v.content"


def upgrade(connection: apsw.Connection, _: datetime) -> None:
    """Record the format in a new file. Add missing columns to an older file."""
    added = {"undo": "INTEGER NOT NULL DEFAULT 0", "approved_by": "TEXT"}
    add_missing_columns(connection, {"versions": added})
    connection.execute("INSERT OR IGNORE INTO meta VALUES('format',?)", (FORMAT,))


def read_row(row: tuple[Any, ...]) -> VersionRow:
    """Convert a row with the columns in `COLUMNS` to a version row."""
    note_id, version, at, agent, op, path, title, digest, size, changed, undo, approved_by, place = row
    return VersionRow(
        note_id=note_id,
        version=version,
        at=from_microseconds(at),
        agent=agent,
        op=NAMES[op],
        path=path,
        title=title,
        digest=digest.hex(),
        size=size,
        changed=tuple(changed.split("\n")) if changed else (),
        is_undo=bool(undo),
        approved_by=approved_by,
        row=place,
    )
