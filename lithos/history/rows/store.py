"""The database `.lithos/history.db`: every kept state of every note. The methods block.

Only one caller may write at a time. A row is *pending* from its commit until `confirm`. The row may be
committed before the file is changed, and the file may never be changed. The next start determines whether the
bytes of a pending row ever reached the file. If damage is found when the database file is opened or written,
the file is quarantined and a new file is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw
import attrs

from lithos.history.rows.reading import HistoryReading
from lithos.history.rows.schema import CODES, DELETION, Contents, NewestVersion, PendingVersion, failed
from lithos.kernel.databases.database import SET_ASIDE
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed, quarantine
from lithos.kernel.values.times import to_microseconds
from lithos.notes.model.versions import BODY, PATH, RENAMED, HistoryFailed, NewVersion, have_same_body

__all__ = ["HISTORY", "HistoryFailed", "HistoryStore", "NewVersion", "NewestVersion", "PendingVersion"]

#: Name of the database file in `.lithos`.
HISTORY: Final = "history.db"

#: Version, content number, operation, place and path.
_Newest = tuple[int, int, int, int, str]


class HistoryStore(HistoryReading):
    """The writing methods of the history store. The reading methods are inherited."""

    is_made_at_once = True

    # -- writing -------------------------------------------------------------------------------

    def add(
        self,
        versions: Sequence[NewVersion],
        confirmed: Iterable[int] = (),
        refused: Iterable[int] = (),
        *,
        is_pending: bool = True,
    ) -> list[int]:
        """Record versions in one durable commit. Return their row positions. Raises `HistoryFailed`.

        The same commit confirms the rows in `confirmed` and deletes the rows in `refused`. A version that
        equals the newest version is not recorded again, unless `is_pending` is True. If the database is
        damaged, it is replaced, and the versions are recorded in the new database.
        """
        done, undone = list(confirmed), list(refused)

        def write() -> list[int]:
            with self.transaction():
                self._confirm(done)
                self._drop(undone)
                known: dict[int, bytes] = {}
                return [self._add(each, is_pending, known) for each in versions]

        try:
            return write()
        except (apsw.CorruptError, apsw.NotADBError) as damage:
            self._replace(str(damage))
        except (DatabaseFailed, OSError) as failure:
            raise failed(failure) from failure
        done.clear()  # The confirmed and refused contents were stored only in the old file.
        undone.clear()
        try:
            return write()
        except (DatabaseFailed, OSError) as failure:
            raise failed(failure) from failure

    def add_lacking(self, versions: Iterable[tuple[NewVersion, int | None]]) -> int:
        """Record versions of notes that have no newer row.

        The result is the number of recorded versions. Raises `HistoryFailed`.

        Each version is paired with a row position: that of the note's newest row when the caller read the
        history.
        """
        added = 0
        with self._refusing(), self.transaction():
            for each, place in versions:
                newest = self._newest_row(self._note_number(each.note_id))
                if (None if newest is None else newest[3]) == place:
                    self._add(each, False, {})
                    added += 1
        return added

    def ensure(
        self, states: Iterable[NewVersion], confirmed: Iterable[int] = (), refused: Iterable[int] = ()
    ) -> None:
        """Record states unless the newest versions of the notes have the same bytes. Raises `HistoryFailed`.

        `confirmed` and `refused` have the same meaning as in `add`. A refused row never counts as the newest
        version.
        """
        with self._refusing(), self.transaction():
            self._confirm(confirmed)
            self._drop(refused)
            for state in states:
                note = self._note_number(state.note_id)
                self._add_before(note, state, self._newest_row(note))

    def probe(self, confirmed: Iterable[int] = (), refused: Iterable[int] = ()) -> None:
        """Commit a small row after a failure. If it succeeds, `failure` becomes None. Raises `HistoryFailed`.

        `confirmed` and `refused` have the same meaning as in `add`.
        """
        with self._refusing(), self.transaction():
            self._confirm(confirmed)
            self._drop(refused)
            self._writer.execute(
                "INSERT INTO meta VALUES('probes', 1) ON CONFLICT(name) DO UPDATE SET value=value+1"
            )

    def confirm(self, places: Iterable[int]) -> None:
        """Record that the bytes of these rows are in their files. Raises `HistoryFailed`."""
        with self._refusing(), self.transaction():
            self._confirm(places)

    def drop(self, places: Iterable[int]) -> int:
        """Delete rows and the bytes that no other row uses.

        The result is the number of deleted rows. Raises `HistoryFailed`.
        """
        with self._refusing(), self.transaction():
            return self._drop(places)

    def _drop(self, places: Iterable[int]) -> int:
        dropped = 0
        contents, notes = set[int](), set[int]()
        for place in places:
            row = self._writer.execute("SELECT note,content FROM versions WHERE place=?", (place,)).fetchone()
            if row is None:
                continue
            notes.add(row[0])
            contents.add(row[1])
            self._writer.execute("DELETE FROM versions WHERE place=?", (place,))
            dropped += 1
        Contents(self._writer).drop_unused(sorted(contents))
        for note in notes:
            self._writer.execute(
                "DELETE FROM notes WHERE number=?1 AND NOT EXISTS(SELECT 1 FROM versions WHERE note=?1)",
                (note,),
            )
        return dropped

    def _confirm(self, places: Iterable[int]) -> None:
        for place in places:
            self._writer.execute("UPDATE versions SET pending=0 WHERE place=?", (place,))

    def _add(self, new: NewVersion, is_pending: bool, known: dict[int, bytes]) -> int:
        """Record a version.

        `known` has the contents that this transaction stored. The content of the new version is added to it.
        """
        note = self._note_number(new.note_id)
        newest = self._newest_row(note)
        contents = Contents(self._writer)
        base, base_data = None if newest is None else newest[1], None
        if new.before is not None:
            base, base_data = self._add_before(note, new.before, newest), new.before.data
        changed = new.changed
        if new.data is None:
            content = contents.put(b"") if base is None else base
        else:
            if base is not None and base_data is None:
                base_data = known[base] if base in known else contents.try_get(base)
            content = contents.put(new.data, base, base_data)
            known.clear()  # The next recorded version of the note directly follows this version.
            known[content] = new.data
            # If the version came from another vault, the flag is already set.
            is_other = content != base and base_data is not None and BODY not in changed
            if is_other and not have_same_body(base_data or b"", new.data):
                changed = (BODY, *changed)
        if not is_pending and newest is not None:
            is_kept = (new.version, content, CODES[new.op] == DELETION) == (
                *newest[:2],
                newest[2] == DELETION,
            )
            if is_kept and newest[4] == new.path:
                return newest[3]
        return self._insert(note, attrs.evolve(new, changed=changed), content, is_pending=is_pending)

    def _add_before(self, note: int, state: NewVersion, newest: _Newest | None) -> int:
        """Record a state unless the newest version has the same bytes and path. Return the content number."""
        assert state.data is not None
        base = None if newest is None else newest[1]
        content = Contents(self._writer).put(state.data, base)
        if newest is None or content != base or newest[2] == DELETION:
            self._insert(note, state, content, is_pending=False)
        elif newest[4] != state.path:
            moved = attrs.evolve(state, op=RENAMED, changed=(PATH,))
            self._insert(note, moved, content, is_pending=False)
        return content

    def _insert(self, note: int, new: NewVersion, content: int, *, is_pending: bool) -> int:
        place: Any
        ((place,),) = self._writer.execute("SELECT IFNULL(MAX(place),0)+1 FROM versions").fetchall()
        self._writer.execute(
            "INSERT INTO versions(note,place,version,at,agent,op,path,title,content,changed,pending,undo,"
            "approved_by) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                note, place, new.version, to_microseconds(new.at), new.agent, CODES[new.op], new.path,
                new.title, content, "\n".join(new.changed), is_pending * (2 if new.is_passed else 1),
                int(new.is_undo), new.approved_by,
            ),
        )  # fmt: skip
        return int(place)

    def _note_number(self, note_id: str) -> int:
        row = self._writer.execute("SELECT number FROM notes WHERE id=?", (note_id,)).fetchone()
        if row is not None:
            return int(row[0])
        self._writer.execute("INSERT INTO notes(id) VALUES(?)", (note_id,))
        return self._writer.last_insert_rowid()

    def _newest_row(self, note: int) -> _Newest | None:
        """Return the last recorded row of a note."""
        row: Any = self._writer.execute(
            "SELECT version,content,op,place,path FROM versions WHERE note=? ORDER BY place DESC LIMIT 1",
            (note,),
        ).fetchone()
        return row  # type: ignore[no-any-return]

    def _replace(self, reason: str) -> None:
        """Quarantine the damaged file and create a new file. Raises `HistoryFailed`."""
        with self._reading:
            assert self._connections is not None
            writer, reader = self._connections
            self._connections = None
            reader.close(True)
            try:
                # Closing must not write the WAL to the database file, because the damaged bytes must stay
                # unchanged.
                writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            finally:
                writer.close(True)
            try:
                moved = quarantine(self._path, self._opened_at)
                self.log.warning(SET_ASIDE, path=str(moved), reason=reason)
                self._connect(self._opened_at)
            except (OSError, DatabaseFailed, CorruptDatabase) as failure:
                raise failed(failure) from failure
            self._mark.unlink(missing_ok=True)
            self.damage = self.failure = None
