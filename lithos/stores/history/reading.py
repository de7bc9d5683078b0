"""Reading `history.db`: what services ask for, and what upkeep does.

Any number of threads read, one at a time, each in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import apsw

from lithos.core.history.versions import KeptVersion, VersionRow
from lithos.core.plan import Place
from lithos.stores.database import SET_ASIDE, Keeper, Layout, LearningDatabase
from lithos.stores.history.contents import Contents, DamagedContent
from lithos.stores.history.schema import (
    COLUMNS,
    DELETION,
    JOINED,
    TABLES,
    read_row,
    read_time_number,
    to_number,
    upgrade,
)
from lithos.stores.history.values import HistoryFailed, NewestVersion, PendingVersion, failed
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

T = TypeVar("T")


class HistoryReading(LearningDatabase):
    """Reads version rows and the bytes they stand for. Every method blocks, and raises `HistoryFailed`."""

    layout = Layout(TABLES, upgrade, set_aside=SET_ASIDE, has_references=True)
    log = get_logger("lithos.history")

    def __init__(self, path: Path, now: datetime) -> None:
        super().__init__(path, now)
        self._reading = Lock()

    def _put_back(self, keeper: Keeper) -> None:
        with self._reading:
            super()._put_back(keeper)

    # -- reading, for services -------------------------------------------------------------------

    def row(self, note_id: str, version: int) -> VersionRow | None:
        """One version, or None when it is unknown or was pruned."""
        return self._first("n.id=? AND v.version=? ORDER BY v.place DESC", (note_id, version))

    def content(self, note_id: str, version: int) -> bytes | None:
        """The exact bytes of the file in that version, or None."""

        def read(connection: apsw.Connection) -> bytes | None:
            row: Any = connection.execute(
                "SELECT v.content FROM versions v JOIN notes n ON n.number=v.note"
                " WHERE n.id=? AND v.version=? ORDER BY v.place DESC LIMIT 1",
                (note_id, version),
            ).fetchone()
            return None if row is None else Contents(connection).get(int(row[0]))

        return self._read(read)

    def current_at(self, note_id: str, at: datetime) -> VersionRow | None:
        """The version that was current at a time: the newest one made no later."""
        return self._first("n.id=? AND v.at<=? ORDER BY v.place DESC", (note_id, to_number(at)))

    def knows(self, note_id: str, mark: str) -> bool:
        """Whether a version of the note has bytes whose hash in the manifest begins so (hex)."""

        def read(connection: apsw.Connection) -> bool:
            found = connection.execute(
                f"SELECT 1 FROM {JOINED}"  # noqa: S608 - our own words
                " WHERE n.id=? AND substr(lower(hex(c.mark)),1,?)=? LIMIT 1",
                (note_id, len(mark), mark),
            ).fetchall()
            return bool(found)

        return self._read(read)

    def oldest(self, note_id: str) -> int | None:
        """The oldest version that is kept, None when none is."""

        def read(connection: apsw.Connection) -> int | None:
            ((oldest,),) = connection.execute(
                "SELECT MIN(v.version) FROM versions v JOIN notes n ON n.number=v.note WHERE n.id=?",
                (note_id,),
            ).fetchall()
            return oldest if isinstance(oldest, int) else None

        return self._read(read)

    def rows(self, note_id: str, limit: int, before: int | None = None) -> tuple[Sequence[VersionRow], int]:
        """The newest versions of a note (below `before`), newest first; and how many are kept in all."""

        def read(connection: apsw.Connection) -> tuple[Sequence[VersionRow], int]:
            below = "" if before is None else " AND v.version<?"
            found: Any = connection.execute(
                f"SELECT {COLUMNS} FROM {JOINED} WHERE n.id=?{below}"  # noqa: S608 - our own words
                " ORDER BY v.version DESC, v.place DESC LIMIT ?",
                (note_id, limit) if before is None else (note_id, before, limit),
            ).fetchall()
            total: Any
            ((total,),) = connection.execute(
                "SELECT COUNT(*) FROM versions v JOIN notes n ON n.number=v.note WHERE n.id=?", (note_id,)
            ).fetchall()
            return [read_row(row) for row in found], int(total)

        return self._read(read)

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
        """Versions of all notes, newest first (of a deleted note its deletion only, where `is_deleted`).

        Only those by `agent`, made from `since` up to before `until`, with a `version` below `before`; and
        how many there are in all. `as_recorded`: in the order of recording, whatever the clock did meanwhile.
        """
        conditions: list[str] = []
        values: list[Any] = []
        for condition, value in (
            ("v.agent=?", agent),
            ("v.at>=?", None if since is None else to_number(since)),
            ("v.at<?", None if until is None else to_number(until)),
            ("v.version<?", before),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        if is_deleted:
            conditions.append(
                f"v.op={DELETION} AND NOT EXISTS("  # noqa: S608 - a number
                "SELECT 1 FROM versions w WHERE w.note=v.note AND w.place>v.place)"
            )
        where = " AND ".join(conditions) or "1"
        order = "v.place DESC" if as_recorded else "v.at DESC, v.place DESC"

        def read(connection: apsw.Connection) -> tuple[Sequence[VersionRow], int]:
            found: Any = connection.execute(
                f"SELECT {COLUMNS} FROM {JOINED} WHERE {where}"  # noqa: S608 - our own words
                f" ORDER BY {order} LIMIT ?",
                (*values, limit),
            ).fetchall()
            total: Any
            ((total,),) = connection.execute(
                f"SELECT COUNT(*) FROM versions v WHERE {where}",  # noqa: S608 - our own words
                values,
            ).fetchall()
            return [read_row(row) for row in found], int(total)

        return self._read(read)

    # -- reading, for upkeep -------------------------------------------------------------------

    def pending(self) -> list[PendingVersion]:
        """The rows that are pending, in the order of recording."""

        def read(connection: apsw.Connection) -> list[PendingVersion]:
            found: Any = connection.execute(
                f"SELECT v.place,c.mark,"  # noqa: S608 - our own words
                " (SELECT hex(d.mark) FROM versions w JOIN contents d ON d.number=w.content"
                "  WHERE w.note=v.note AND w.place<v.place ORDER BY w.place DESC LIMIT 1),"
                " NOT EXISTS(SELECT 1 FROM versions w WHERE w.note=v.note AND w.place>v.place),"
                f"{COLUMNS} FROM {JOINED} WHERE v.pending ORDER BY v.place"
            ).fetchall()
            return [
                PendingVersion(
                    place, read_row(tuple(row)), mark.hex(), former and former.lower(), bool(is_newest)
                )
                for place, mark, former, is_newest, *row in found
            ]

        return self._read(read)

    def newest(self, after: int, most: int) -> list[NewestVersion]:
        """The last recorded version of at most so many notes with a number above `after`, by number."""

        def read(connection: apsw.Connection) -> list[NewestVersion]:
            found: Any = connection.execute(
                "SELECT n.number,n.id,v.place,v.version,v.path,v.title,c.mark,v.op,v.pending FROM notes n"
                " JOIN versions v ON v.note=n.number"
                " AND v.place=(SELECT MAX(place) FROM versions WHERE note=n.number)"
                " JOIN contents c ON c.number=v.content WHERE n.number>? ORDER BY n.number LIMIT ?",
                (after, most),
            ).fetchall()
            return [
                NewestVersion(
                    number, note_id, place, version, path, title, mark.hex(), op == DELETION, bool(pending)
                )
                for number, note_id, place, version, path, title, mark, op, pending in found
            ]

        return self._read(read)

    def places(self, ids: Collection[str]) -> dict[str, Place]:
        """Where these notes were last, of those that are known and not deleted."""
        return self._read(lambda connection: read_places(connection, ids))

    def crowded(self, *, more_than: int, older_than: datetime | None) -> list[int]:
        """Numbers of notes with more than so many versions, one older than a time, or a deletion."""
        least = -(2**63) if older_than is None else to_number(older_than)
        return self._read(
            lambda connection: [
                int(str(row[0]))
                for row in connection.execute(
                    "SELECT note FROM versions GROUP BY note"  # noqa: S608 - a number
                    f" HAVING COUNT(*)>? OR MIN(at)<? OR SUM(op={DELETION})",
                    (more_than, least),
                )
            ]
        )

    def versions_of(self, note: int) -> list[KeptVersion]:
        """All versions of a note, by its number, in the order of recording."""

        def read(connection: apsw.Connection) -> list[KeptVersion]:
            found: Any = connection.execute(
                "SELECT place,at,op FROM versions WHERE note=? ORDER BY place", (note,)
            ).fetchall()
            return [KeptVersion(place, read_time_number(at), op == DELETION) for place, at, op in found]

        return self._read(read)

    def size(self) -> tuple[int, int]:
        """How many versions there are, and the bytes of the file."""

        def read(connection: apsw.Connection) -> tuple[int, int]:
            rows, pages, each = (
                int(str(connection.execute(statement).fetchall()[0][0]))
                for statement in ("SELECT COUNT(*) FROM versions", "PRAGMA page_count", "PRAGMA page_size")
            )
            return rows, pages * each

        return self._read(read)

    def _first(self, condition: str, values: Sequence[Any]) -> VersionRow | None:
        def read(connection: apsw.Connection) -> VersionRow | None:
            row: Any = connection.execute(
                f"SELECT {COLUMNS} FROM {JOINED} WHERE {condition} LIMIT 1",  # noqa: S608 - our own words
                values,
            ).fetchone()
            return None if row is None else read_row(row)

        return self._read(read)

    def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        """Read in one transaction, so that what is pruned meanwhile is still there."""
        with self._reading, self._refusing(), self.noticing_damage():
            if self._connections is None:
                raise HistoryFailed("history.db is not open, since it could not be made anew. See /health.")
            connection = self._reader
            connection.execute("BEGIN")
            try:
                return read(connection)
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
            self.log.error("a kept version is damaged", reason=str(damage))
            raise HistoryFailed(
                f"This version cannot be read: {damage}. Run lithos doctor, and restore history.db from a "
                "backup."
            ) from damage


def read_places(connection: apsw.Connection, ids: Collection[str]) -> dict[str, Place]:
    """`HistoryReading.places`, by a connection of one's own."""
    found: dict[str, Place] = {}
    for note_id in ids:
        row: Any = connection.execute(
            f"SELECT v.path,c.mark,v.op FROM {JOINED}"  # noqa: S608 - our own words
            " WHERE n.id=? ORDER BY v.place DESC LIMIT 1",
            (note_id,),
        ).fetchone()
        if row is not None and row[2] != DELETION:
            found[note_id] = row[0], row[1].hex()
    return found
