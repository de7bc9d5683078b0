"""What completed tasks teach, kept in `coordination.db` until it has been learned.

A lesson is written in the transaction of its completion and dropped when `edges.db` and `stats.db` have it.
"""

from __future__ import annotations

import apsw

from lithos.core.task_commands import Lesson


class LessonRows:
    """The rows as one connection sees them; writing needs an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, lesson: Lesson) -> None:
        """Keep a lesson."""
        self._connection.execute("INSERT INTO lessons VALUES(?,?)", (lesson.id, lesson.text))

    def all(self) -> list[Lesson]:
        """What has not been dropped, in the order of its adding."""
        rows = self._connection.execute("SELECT id,lesson FROM lessons ORDER BY rowid")
        return [Lesson(*row) for row in rows]

    def drop(self, lesson_id: str) -> None:
        """Forget a lesson; one that is not there is forgotten already."""
        self._connection.execute("DELETE FROM lessons WHERE id=?", (lesson_id,))
