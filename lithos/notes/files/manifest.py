"""The manifest: a cache of the catalogue's entries and file states after the last indexing.

The manifest makes each later start incremental. Files with unchanged size and mtime are not read, because the
manifest contains all their data that the catalogue needs. The manifest can be rebuilt: without it, the next
start reads all files. Commits are not synced. After a power failure, the start scan restores missing rows.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from sys import intern
from typing import Any, Final

import apsw
from attrs import fields, frozen

from lithos.kernel.databases.database import Connections, Database, DatabaseLayout
from lithos.kernel.databases.sqlite import Durability
from lithos.kernel.log import get_logger
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.times import format_time, parse_time
from lithos.notes.files.values import FileState
from lithos.notes.model.note import AssignedVersion, Note
from lithos.notes.model.paths import namespace_of, slug_of
from lithos.notes.model.plan import IdClaim

#: Increase this number if the meaning of a row changes. Older manifests are then dropped and rebuilt.
FORMAT = 3
#: Increase this number if the rules for finding links change. The notes of older manifests are then read once
#: again.
LINKS = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files(
    path TEXT PRIMARY KEY, serial INTEGER NOT NULL UNIQUE, id TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL,
    identified INTEGER NOT NULL, note TEXT NOT NULL, links TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS reading(rules TEXT NOT NULL);
"""
_UPSERT = "INSERT OR REPLACE INTO files VALUES(?,?,?,?,?,?,?,?,?)"
#: Maximum size of a property value that several notes can share in memory, in bytes of `marshal`. Longer
#: values are not compared.
_LONGEST_SHARED = 400
#: Number of rows that are read at once.
_AT_ONCE = 1_000
_DEFAULTS = {attribute.name: attribute.default for attribute in fields(Note)}


@frozen
class Entry:
    """A note as a value, with its serial number in the indexes, its file state and its parsed frontmatter.

    `digest` is the hash of the file's bytes. `identified` means that the file contains its own id. `links`
    are the link targets in the properties and the body. `note.version` is the effective version.
    """

    serial: int
    path: str
    note: Note
    digest: str
    state: FileState
    identified: bool
    links: tuple[str, ...] = ()

    @cached_property
    def stamp(self) -> int:
        """A 63-bit hash of the path and the bytes.

        The stamp changes with any data of the note that an index contains.
        """
        content = hashlib.blake2b(f"{self.path}\0{self.digest}".encode(), digest_size=8)
        return int.from_bytes(content.digest()) >> 1

    @cached_property
    def slug(self) -> str:
        """The slug of the note's title."""
        return slug_of(self.note.title, self.note.id)

    @property
    def claim(self) -> IdClaim:
        """The claim of this file to its note id, for the choice between several files."""
        return IdClaim(self.path, self.digest, self.state.mtime_ns)

    @property
    def may_name_id(self) -> bool:
        """Whether the file may contain an id. Also true if the frontmatter cannot be read."""
        return self.identified or self.note.frontmatter_error is not None

    @property
    def stand_in(self) -> str | None:
        """The assigned id if the file does not contain an id, otherwise None."""
        return None if self.identified else self.note.id

    @property
    def standing(self) -> AssignedVersion:
        """The note's effective version, and the hash of the bytes that have this version."""
        return AssignedVersion(self.note.version, self.digest)

    @cached_property
    def namespace(self) -> str:
        """The explicit namespace of the note. Without one, this is the namespace of its folder."""
        return namespace_of(self.path, self.note.namespace)


def _drop_other_format(connection: apsw.Connection, _: datetime) -> None:
    if _get(connection, "format") != FORMAT:
        connection.execute("DELETE FROM files")
        connection.execute("DELETE FROM meta")
        _set(connection, "format", FORMAT)


class Manifest(Database):
    """The database `.lithos/manifest.db`. Methods block and are not thread-safe."""

    layout = DatabaseLayout(
        _SCHEMA, _drop_other_format, Durability.OFF, has_reader=False, set_aside="damaged manifest set aside"
    )
    log = get_logger("lithos.manifest")

    def __init__(self, path: Path, connections: Connections | None = None) -> None:
        super().__init__(path, connections)
        #: True for a first scan, that is, if no usable manifest exists.
        self.is_new = connections is None or self._is_empty()
        #: Former note ids by path. The file's `id` now counts as a property that a person wrote. Data about
        #: the note is still stored under the former id.
        self.former_ids: Mapping[str, str] = {}

    def _connect(self, now: datetime) -> None:
        super()._connect(now)
        self.is_new = self._is_empty()

    @classmethod
    def view(cls, connection: apsw.Connection | None, reading: str = "") -> Manifest:
        """Return the manifest for a read-only connection.

        The manifest is empty if the connection or the tables are missing, or if its format is not the current
        one.

        The manifest also counts as empty if its notes were read by rules other than `reading`.
        """
        if connection is not None:
            try:
                if _get(connection, "format") == FORMAT and _rules(connection) == reading:
                    return cls(Path(connection.filename), (connection, connection))
            except apsw.SQLError:
                cls.log.warning("manifest ignored", reason="tables missing")
        empty = apsw.Connection(":memory:")
        empty.execute(_SCHEMA)
        return cls(Path(), (empty, empty))

    def load(self) -> list[Entry]:
        """Return all rows, sorted by path. Equal values of several notes are one object."""
        cursor = self._writer.execute(
            "SELECT path,serial,size,mtime_ns,digest,identified,note,links FROM files ORDER BY path"
        )
        loaded: list[Entry] = []
        shared: dict[str, str] = {}  # one string object for a title and all links with this text
        extras: dict[bytes, dict[str, Any]] = {}
        while rows := list(islice(cursor, _AT_ONCE)):
            notes = _load_all([row[6] for row in rows])
            links = _load_all([row[7] or "[]" for row in rows])
            for (path, serial, size, mtime, digest, known, _, _), note, targets in zip(
                rows, notes, links, strict=True
            ):
                note["title"] = shared.setdefault(note["title"], note["title"])
                if "extra" in note:
                    note["extra"] = _share(note["extra"], extras)
                written = tuple([shared.setdefault(each, each) for each in targets]) if targets else ()
                state = FileState(size, mtime)
                row = Entry(serial, path, _make_note(note), digest, state, bool(known), written)
                loaded.append(row)
        return loaded

    def store_scan(self, rows: Iterable[Entry], removed: Iterable[str], seq: int | None) -> None:
        """Store the result of a complete scan. The current rules found the links of the notes."""
        with self.transaction():
            self._put(rows, removed, seq)
            _set(self._writer, "links", LINKS)

    def store(self, rows: Iterable[Entry], removed: Iterable[str] = (), seq: int | None = None) -> None:
        """Store rows and delete the rows of removed paths.

        `seq` is the journal position of this state and is stored with the rows.
        """
        with self.transaction():
            self._put(rows, removed, seq)

    def _put(self, rows: Iterable[Entry], removed: Iterable[str], seq: int | None) -> None:
        self._writer.executemany("DELETE FROM files WHERE path=?", [(path,) for path in removed])
        self._writer.executemany(_UPSERT, [_dump(row) for row in rows])
        if seq is not None:
            _set(self._writer, "seq", seq)

    @property
    def reading(self) -> str:
        """Return the rules by which the notes were read, in the form of `VaultStyle.reading`."""
        return _rules(self._writer)

    def read_by(self, reading: str) -> None:
        """Delete all data that was read by rules other than `reading`. Only `former_ids` is not deleted."""
        if self.reading == reading:
            return
        rows = self._writer.execute("SELECT path,id FROM files WHERE identified=1").fetchall()
        with self.transaction():
            self._writer.execute("DELETE FROM files")
            self._writer.execute("DELETE FROM meta WHERE name='seq'")
            self._writer.execute("DELETE FROM reading")
            self._writer.execute("INSERT INTO reading VALUES(?)", (reading,))
        self.is_new = self._is_empty()
        self.former_ids = {str(path): str(note_id) for path, note_id in rows if not is_id(str(note_id))}

    @property
    def has_old_links(self) -> bool:
        """Return whether older rules found the links of the notes."""
        return _get(self._writer, "links") != LINKS and not self._is_empty()

    @property
    def seq(self) -> int | None:
        """The journal position at the last `store`, or None before the first `store`."""
        return _get(self._writer, "seq")

    def _is_empty(self) -> bool:
        # The file alone does not prove that a manifest exists: a start that was killed before its first
        # `store` left an empty file.
        return self.seq is None and not self._writer.execute("SELECT 1 FROM files LIMIT 1").fetchall()


def _get(connection: apsw.Connection, name: str) -> int | None:
    row = connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
    return None if row is None else int(row[0])


def _rules(connection: apsw.Connection) -> str:
    row = connection.execute("SELECT rules FROM reading").fetchone()
    return "" if row is None else str(row[0])


def _set(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (name, value))


def _dump(row: Entry) -> Sequence[Any]:
    return (
        row.path, row.serial, row.note.id, row.state.size, row.state.mtime_ns, row.digest,
        int(row.identified), _dump_note(row.note), json.dumps(row.links) if row.links else "",
    )  # fmt: skip


def _dump_note(note: Note) -> str:
    """Return a note as JSON. Values that equal the defaults are left out.

    Without defaults, the JSON has a third of the size and loads twice as fast.
    """
    content: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        value = getattr(note, name)
        if value == default or (name == "extra" and not value):
            continue
        content[name] = format_time(value) if isinstance(value, datetime) else value
    return json.dumps(content)


def _load_all(texts: Sequence[str]) -> list[Any]:
    """Parse many JSON texts at once, which takes half the time of parsing each text alone."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    return values


def _share(extra: dict[str, Any], known: dict[bytes, dict[str, Any]]) -> Mapping[str, Any]:
    """Return the equal mapping of another note if one exists, otherwise this mapping.

    Sharing saves memory, because even a small dict takes 500 bytes.
    """
    key = marshal.dumps(extra, 2)  # this key distinguishes 1 from 1.0 and True, and the order of keys
    return known.setdefault(key, extra) if len(key) <= _LONGEST_SHARED else extra


def _make_note(content: dict[str, Any]) -> Note:
    created, updated = content.get("created_at"), content.get("updated_at")
    if updated == created is not None:
        del content["updated_at"]
    for name, value in content.items():
        read = _READING.get(name)
        if read is not None:
            content[name] = read(value)
    if updated == created is not None:
        content["updated_at"] = content["created_at"]  # both are one object, because most notes never change
    return Note(**content)


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is UTC else parse_time(text)


def _interned(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(intern, texts))


def _intern(text: str | None) -> str | None:
    return None if text is None else intern(text)


#: Converters from the values of `_dump_note` to values of a note. Texts that many notes contain are interned.
_READING: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("created_at", "updated_at"), _time),
    "expires_at": parse_time,
    **dict.fromkeys(("tags", "contributors", "inline_tags"), _interned),
    **dict.fromkeys(("aliases", "derived_from_ids", "entities"), tuple),
    **dict.fromkeys(("author", "note_type", "status", "access_scope", "namespace"), _intern),
}
