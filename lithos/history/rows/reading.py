"""Queries of `history.db` for services and for upkeep.

Any number of threads may call the reader. The reads run one after another, each in its own transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

import apsw

from lithos.history.rows.schema import (
    COLUMNS,
    DELETION,
    JOINED,
    TABLES,
    Contents,
    DamagedContent,
    NewestVersion,
    PendingVersion,
    failed,
    passed_on,
    read_row,
    upgrade,
)
from lithos.kernel.databases.database import SET_ASIDE, DatabaseLayout, LearningDatabase
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.databases.table import matching
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import from_microseconds, to_microseconds
from lithos.notes.model.plan import RecordedPath
from lithos.notes.model.versions import HistoryFailed, KeptVersion, NewVersion, VersionRow

#: Query for the content numbers of a note's versions. The newest version is first.
CONTENTS: Final = (
    "SELECT v.content FROM versions v JOIN notes n ON n.number=v.note"
    " WHERE n.id=? AND v.content IS NOT NULL GROUP BY v.content ORDER BY MAX(v.place) DESC LIMIT ?"
)


class HistoryReading(LearningDatabase):
    """Reads version rows and their bytes. Every method blocks and may raise `HistoryFailed`."""

    layout = DatabaseLayout(TABLES, upgrade, set_aside=SET_ASIDE, has_references=True)
    log = get_logger("lithos.history")

    def __init__(self, path: Path, now: datetime) -> None:
        super().__init__(path, now)
        self._reading = Lock()

    # -- queries for services ----------------------------------------------------------------------

    def row(self, note_id: str, version: int) -> VersionRow | None:
        """Return a version. Return None if it is unknown or was pruned."""
        return self._first("n.id=? AND v.version=? ORDER BY v.place DESC", note_id, version)

    def row_numbered(self, note_id: str, row: int) -> VersionRow | None:
        """Return the row of a note with this number. Return None if the row is unknown or was pruned."""
        return self._first("n.id=? AND v.place=?", note_id, row)

    def row_before(self, note_id: str, row: int) -> VersionRow | None:
        """Return the row of a note that was recorded just before the row with this number."""
        return self._first("n.id=? AND v.place<? ORDER BY v.place DESC", note_id, row)

    def content_of(self, row: VersionRow) -> bytes | None:
        """Return the exact file bytes of a row. Return None if the row was pruned."""
        with self._snapshot() as connection:
            found: Any = connection.execute(
                "SELECT v.content FROM versions v JOIN notes n ON n.number=v.note WHERE n.id=? AND v.place=?",
                (row.note_id, row.row),
            ).fetchone()
            return None if found is None else Contents(connection).get(int(found[0]))

    def content(self, note_id: str, version: int) -> bytes | None:
        """Return the exact file bytes of a version. Return None if they are not kept."""
        with self._snapshot() as connection:
            row: Any = connection.execute(
                "SELECT v.content FROM versions v JOIN notes n ON n.number=v.note"
                " WHERE n.id=? AND v.version=? ORDER BY v.place DESC LIMIT 1",
                (note_id, version),
            ).fetchone()
            return None if row is None else Contents(connection).get(int(row[0]))

    def contents(self, note_id: str, most: int) -> Iterator[bytes]:
        """Yield the distinct bytes of a note's versions one by one, newest first.

        At most `most` distinct contents are yielded.
        """
        for content in self._ask(CONTENTS, note_id, most):
            with self._snapshot() as connection:
                data = Contents(connection).get(int(content[0]))
            yield data  # The consumer may read another note meanwhile.

    def carried(self, note_id: str, most: int) -> tuple[list[NewVersion], int]:
        """Return the kept versions of a note with their bytes, to be copied to another vault.

        The versions are in recording order.

        Only the newest versions are returned, with at most `most` bytes in total. The number is that of the
        versions left out, including damaged ones.
        """
        sql = f"SELECT v.content,{COLUMNS} FROM {JOINED} WHERE n.id=? ORDER BY v.place DESC"  # noqa: S608
        carried: list[NewVersion] = []
        with self._snapshot() as connection:
            contents, rows = Contents(connection), connection.execute(sql, (note_id,)).fetchall()
            for content, *row in rows:
                version = read_row(tuple(row))
                most -= version.size
                if most < 0:
                    break
                data = contents.try_get(int(str(content)))
                if data is not None:
                    carried.append(passed_on(version, data))
        carried.reverse()
        return carried, len(rows) - len(carried)

    def current_at(self, note_id: str, at: datetime) -> VersionRow | None:
        """Return the version that was current at a time. It is the newest version that was not made later."""
        return self._first("n.id=? AND v.at<=? ORDER BY v.place DESC", note_id, to_microseconds(at))

    def knows(self, note_id: str, mark: str) -> bool:
        """Return whether a version of the note has a manifest hash that begins with `mark` (hex)."""
        where = "n.id=? AND substr(lower(hex(c.mark)),1,?)=?"
        return self._first(where, note_id, len(mark), mark) is not None

    def starting(self, prefix: str, most: int) -> list[str]:
        """Return at most `most` ids of notes with versions that begin with a text, in order."""
        sql = "SELECT id FROM notes WHERE id>=?1 AND id<?1||char(1114111) ORDER BY id LIMIT ?2"
        return [str(row[0]) for row in self._ask(sql, prefix, most)]

    def oldest(self, note_id: str) -> int | None:
        """Return the number of the oldest kept version. If no version is kept, return None."""
        sql = "SELECT MIN(v.version) FROM versions v JOIN notes n ON n.number=v.note WHERE n.id=?"
        found: int | None = self._ask(sql, note_id)[0][0]
        return found

    def rows(self, note_id: str, limit: int, before: int | None = None) -> tuple[Sequence[VersionRow], int]:
        """Return the newest versions of a note (below `before`), newest first.

        The second value of the result is the number of all kept versions.
        """
        sql = (
            f"SELECT {COLUMNS} FROM {JOINED} WHERE n.id=?1 AND (?2 IS NULL OR v.version<?2)"  # noqa: S608
            " ORDER BY v.version DESC, v.place DESC LIMIT ?3"
        )
        total = "SELECT COUNT(*) FROM versions v JOIN notes n ON n.number=v.note WHERE n.id=?"
        return self._page(sql, (note_id, before, limit), total, (note_id,))

    def recent(
        self,
        *,
        agent: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        is_deleted: bool = False,
        as_recorded: bool = False,
        limit: int,
        before: int | None = None,
    ) -> tuple[Sequence[VersionRow], int]:
        """Return versions of all notes, newest first.

        With `is_deleted`, return only the deletion versions of deleted notes.

        Filters: made by `agent`, from `since` up to before `until`, with a `version` below `before`. The
        number is that of all matching versions. `as_recorded` sorts by recording order, which clock changes
        do not affect.
        """
        where, values = matching(
            {
                "v.agent=?": agent,
                "v.at>=?": None if since is None else to_microseconds(since),
                "v.at<?": None if until is None else to_microseconds(until),
                "v.version<?": before,
            }
        )
        if is_deleted:
            where += (
                f" AND v.op={DELETION} AND NOT EXISTS("  # noqa: S608 - a number
                "SELECT 1 FROM versions w WHERE w.note=v.note AND w.place>v.place)"
            )
        order = "v.place DESC" if as_recorded else "v.at DESC, v.place DESC"
        sql = f"SELECT {COLUMNS} FROM {JOINED} WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        return self._page(sql, (*values, limit), f"SELECT COUNT(*) FROM versions v WHERE {where}", values)  # noqa: S608

    # -- queries for upkeep ------------------------------------------------------------------------

    def pending(self) -> list[PendingVersion]:
        """Return the pending rows in recording order."""
        found = self._ask(
            f"SELECT v.place,v.pending,c.mark,"  # noqa: S608 - our own words
            " (SELECT hex(d.mark) FROM versions w JOIN contents d ON d.number=w.content"
            "  WHERE w.note=v.note AND w.place<v.place AND w.pending<2 ORDER BY w.place DESC LIMIT 1),"
            " NOT EXISTS(SELECT 1 FROM versions w WHERE w.note=v.note AND w.place>v.place),"
            f"{COLUMNS} FROM {JOINED} WHERE v.pending ORDER BY v.place"
        )
        return [
            PendingVersion(
                place,
                read_row(tuple(row)),
                mark.hex(),
                former and former.lower(),
                bool(is_newest),
                pending > 1,
            )
            for place, pending, mark, former, is_newest, *row in found
        ]

    def newest(self, after: int, most: int) -> list[NewestVersion]:
        """Return the last recorded version of each note with a number above `after`.

        At most `most` notes are returned, ordered by number.
        """
        found = self._ask(
            "SELECT n.number,n.id,v.place,v.version,v.path,v.title,c.mark,v.op,v.pending FROM notes n"
            " JOIN versions v ON v.note=n.number"
            " AND v.place=(SELECT MAX(place) FROM versions WHERE note=n.number)"
            " JOIN contents c ON c.number=v.content WHERE n.number>? ORDER BY n.number LIMIT ?",
            after,
            most,
        )
        return [
            NewestVersion(
                number, note_id, place, version, path, title, mark.hex(), op == DELETION, bool(pending)
            )
            for number, note_id, place, version, path, title, mark, op, pending in found
        ]

    def places(self, ids: Collection[str]) -> dict[str, RecordedPath]:
        """Return the last known path of each note. Unknown and deleted notes are left out."""
        with self._snapshot() as connection:
            return read_places(connection, ids)

    def crowded(self, *, more_than: int, older_than: datetime | None) -> list[int]:
        """Return the numbers of the notes whose versions must be checked for deletion.

        A note is returned if it has more than `more_than` versions, a version before `older_than`, or a
        deletion.
        """
        least = -(2**63) if older_than is None else to_microseconds(older_than)
        sql = (
            "SELECT note FROM versions GROUP BY note"  # noqa: S608 - a number
            f" HAVING COUNT(*)>? OR MIN(at)<? OR SUM(op={DELETION})"
        )
        return [row[0] for row in self._ask(sql, more_than, least)]

    def versions_of(self, note: int) -> list[KeptVersion]:
        """Return all versions of the note with this number, in recording order."""
        found = self._ask("SELECT place,at,op FROM versions WHERE note=? ORDER BY place", note)
        return [KeptVersion(place, from_microseconds(at), op == DELETION) for place, at, op in found]

    def first_since(self, moment: datetime, until: datetime) -> int | None:
        """Return the row position of the first version that was recorded from `moment` to `until`."""
        sql = "SELECT MIN(place) FROM versions WHERE at BETWEEN ? AND ?"
        place = self._ask(sql, to_microseconds(moment), to_microseconds(until))[0][0]
        return None if place is None else int(place)

    def size(self) -> tuple[int, int]:
        """Return the number of versions and the size of the file in bytes."""
        statements = "SELECT COUNT(*) FROM versions", "PRAGMA page_count", "PRAGMA page_size"
        with self._snapshot() as connection:
            rows, pages, each = (int(str(connection.execute(sql).fetchall()[0][0])) for sql in statements)
        return rows, pages * each

    def _first(self, condition: str, *values: str | int) -> VersionRow | None:
        found = self._ask(f"SELECT {COLUMNS} FROM {JOINED} WHERE {condition} LIMIT 1", *values)  # noqa: S608
        return read_row(found[0]) if found else None

    def _ask(self, sql: str, *values: str | int) -> list[Any]:
        with self._snapshot() as connection:
            return connection.execute(sql, values).fetchall()

    def _page(
        self, sql: str, values: Sequence[Any], count: str, counted: Sequence[Any]
    ) -> tuple[Sequence[VersionRow], int]:
        """Return a page of versions and the total number of versions."""
        with self._snapshot() as connection:
            found = [read_row(row) for row in connection.execute(sql, values)]
            total: Any = connection.execute(count, counted).fetchall()[0][0]
        return found, int(total)

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        """Open a read transaction. Rows that are pruned meanwhile stay readable in it."""
        with self._reading, self._refusing(), self.noticing_damage():
            if self._connections is None:
                raise HistoryFailed(
                    "history.db is not open, because a new file could not be created. Check "
                    "/health for the reason."
                )
            connection = self._reader
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (DatabaseFailed, OSError) as failure:
            raise failed(failure) from failure
        except DamagedContent as damage:
            self.log.error("damaged version found", reason=str(damage))
            raise HistoryFailed(
                f"This version cannot be read: {damage}. Run lithos doctor, and restore history.db from a "
                "backup."
            ) from damage


def read_places(connection: apsw.Connection, ids: Collection[str]) -> dict[str, RecordedPath]:
    """Run the query of `HistoryReading.places` on the connection of the caller."""
    found: dict[str, RecordedPath] = {}
    for note_id in ids:
        row: Any = connection.execute(
            f"SELECT v.path,c.mark,v.op FROM {JOINED}"  # noqa: S608 - our own words
            " WHERE n.id=? ORDER BY v.place DESC LIMIT 1",
            (note_id,),
        ).fetchone()
        if row is not None and row[2] != DELETION:
            found[note_id] = row[0], row[1].hex()
    return found


def read_contents(connection: apsw.Connection, note_id: str, most: int) -> list[bytes]:
    """Run the query of `HistoryReading.contents` on the connection of the caller. Raises `DamagedContent`."""
    numbers: list[Any] = connection.execute(CONTENTS, (note_id, most)).fetchall()
    return [Contents(connection).get(int(number[0])) for number in numbers]
