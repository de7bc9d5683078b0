"""Deletion of sessions: of missing transcripts, of removed folders, and of sessions that a person removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from lithos.kernel.values.times import to_microseconds
from lithos.sessions.rows.blocks import serial_of
from lithos.sessions.rows.reading import SessionReading
from lithos.sessions.rows.words import TurnWords

#: Maximum number of ids of sessions that are never indexed again.
MOST_FORGOTTEN: Final = 100_000


class SessionRemoval(SessionReading):
    """Deletes sessions with their text, words, vectors and projects. Each call is one transaction."""

    def _all(self, sql: str, given: Sequence[Any] = ()) -> list[Any]:
        return self._writer.execute(sql, given).fetchall()

    def _first(self, sql: str, given: Sequence[Any] = ()) -> Any:
        return self._writer.execute(sql, given).fetchone()

    def is_forgotten(self, session: str) -> bool:
        """Return whether a person removed this session from the index."""
        if not self.is_there:
            return False
        return self._first("SELECT 1 FROM forgotten WHERE id=?", (session,)) is not None

    def mark_gone(self, paths: Iterable[str], now: datetime) -> None:
        """Note that transcripts are missing. Their sessions are kept until `delete_gone`."""
        with self.transaction():
            for path in paths:
                self._writer.execute("DELETE FROM transcripts WHERE path=?", (path,))
                self._writer.execute("DELETE FROM forgotten WHERE path=?", (path,))
                self._writer.execute(
                    "UPDATE sessions SET gone=? WHERE path=? AND gone IS NULL", (to_microseconds(now), path)
                )

    def delete_gone(self, before: datetime, most: int) -> int:
        """Delete up to `most` sessions whose transcripts were missing before a time. Return their number."""
        if not self.is_there:
            return 0
        return self._delete("gone<=? ORDER BY gone", (to_microseconds(before),), most)

    def delete_oldest(self, kept: int, most: int) -> int:
        """Delete up to `most` of the oldest sessions beyond `kept`. Their transcripts are not read again."""
        if not self.is_there:
            return 0
        ((count,),) = self._all("SELECT COUNT(*) FROM sessions")
        return self._delete(
            "1 ORDER BY ended, number", (), min(most, max(0, int(count) - kept)), forgets=True
        )

    def delete_folder(self, folder: str, most: int) -> int:
        """Delete up to `most` sessions and the progress of a folder that was removed."""
        if not self.is_there:
            return 0
        deleted = self._delete("folder=?", (folder,), most)
        if not deleted:
            with self.transaction():
                self._writer.execute("DELETE FROM transcripts WHERE folder=?", (folder,))
        return deleted

    def forget(self, session: str) -> bool:
        """Delete a session, and never index its transcript again. Return whether it existed."""
        if not self.is_there:
            return False
        return self._delete("id=?", (session,), 1, forgets=True) > 0

    def _delete(self, where: str, given: Sequence[Any], most: int, *, forgets: bool = False) -> int:
        if most <= 0:
            return 0
        rows = self._all(
            f"SELECT number,id,path,gone FROM sessions WHERE {where} LIMIT ?",  # noqa: S608 - our conditions
            (*given, most),
        )
        if not rows:
            return 0
        with self.transaction():
            numbers = [row[0] for row in rows]
            self._delete_blocks(numbers)
            self._writer.executemany("DELETE FROM sessions WHERE number=?", [(each,) for each in numbers])
            self._writer.executemany(
                "UPDATE transcripts SET session=NULL WHERE session=?", [(each,) for each in numbers]
            )
            if forgets:
                self._writer.executemany(
                    "INSERT OR REPLACE INTO forgotten(id,path) VALUES(?,?)",
                    [(id_, path) for _, id_, path, gone in rows if gone is None],
                )
                self._writer.execute(
                    "DELETE FROM forgotten WHERE id IN (SELECT id FROM forgotten LIMIT"
                    " MAX(0,(SELECT COUNT(*) FROM forgotten)-?))",
                    (MOST_FORGOTTEN,),
                )
            self._writer.execute("DELETE FROM projects WHERE number NOT IN (SELECT project FROM sessions)")
        return len(rows)

    def _delete_blocks(self, sessions: Sequence[int]) -> None:
        words = TurnWords(self._writer)
        for session in sessions:
            rows = self._all("SELECT number,turns FROM blocks WHERE session=?", (session,))
            for number, turns in rows:
                words.remove(serial_of(number, place) for place in range(turns))
            self._writer.execute("DELETE FROM blocks WHERE session=?", (session,))
