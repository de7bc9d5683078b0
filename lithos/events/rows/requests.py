"""Rows in `coordination.db` for calls with a `request_id`. `MOST_KEPT` and `KEPT` limit them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lithos.events.model.requests import KEPT, MOST_KEPT, RecordedCall
from lithos.kernel.databases.table import Rows
from lithos.kernel.values.times import format_time, parse_time

REQUEST_TABLE: Final = """
CREATE TABLE IF NOT EXISTS requests(
    key TEXT PRIMARY KEY, begun_at TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT);
"""
REQUEST_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS requests_time ON requests(begun_at);
"""


class RequestRows(Rows):
    """The recorded calls as one connection sees them. Writes require an open transaction."""

    def begin(self, key: str, digest: str, now: datetime) -> RecordedCall:
        """Record a call, unless it is already recorded.

        Calls that are too old or exceed the maximum are deleted.
        """
        run = self.connection.execute
        run("DELETE FROM requests WHERE begun_at<?", (format_time(now - KEPT),))
        rows = run("SELECT begun_at,digest,answer FROM requests WHERE key=?", (key,)).fetchall()
        if rows:
            at, known, answer = rows[0]
            return RecordedCall(
                parse_time(str(at)), str(known), None if answer is None else str(answer), False
            )
        run("INSERT INTO requests VALUES(?,?,?,NULL)", (key, format_time(now), digest))
        run(
            "DELETE FROM requests WHERE key IN (SELECT key FROM requests ORDER BY begun_at DESC"
            " LIMIT -1 OFFSET ?)",
            (MOST_KEPT,),
        )
        return RecordedCall(now, digest, None, True)

    def end(self, key: str, answer: str | None) -> None:
        """Record the answer of a call, or delete the call if the answer is None."""
        if answer is None:
            self.connection.execute("DELETE FROM requests WHERE key=?", (key,))
        else:
            self.connection.execute("UPDATE requests SET answer=? WHERE key=?", (answer, key))
