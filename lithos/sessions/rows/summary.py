"""A summary of `sessions.db` for commands and checks, which read the file next to a running server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from lithos.kernel.databases.sqlite import snapshot
from lithos.sessions.rows.schema import FORMAT, PROGRESS_COLUMNS, SESSIONS, Progress, read_progress


@frozen(kw_only=True)
class StoredSummary:
    """The number of sessions by folder, the number of turns, and the transcripts with problems."""

    sessions: Mapping[str, int] = field(factory=dict)
    turns: int = 0
    troubled: tuple[Progress, ...] = ()


def read_summary(private: Path, *, is_live: bool) -> StoredSummary:
    """Return the summary of the database in a folder. Nothing is changed.

    `is_live` means that a server uses the database. Raises `CorruptDatabase`, `DatabaseFailed` and `OSError`.
    """
    with snapshot(private / SESSIONS, is_live=is_live) as connection:
        if connection is None:
            return StoredSummary()
        found: Any = connection.execute("SELECT value FROM meta WHERE name='format'").fetchone()
        if found is None or found[0] != FORMAT:
            return StoredSummary()
        rows: list[Any] = connection.execute(
            "SELECT folder,COUNT(*),SUM(turns) FROM sessions GROUP BY folder"
        ).fetchall()
        progress: list[Any] = connection.execute(
            f"SELECT {PROGRESS_COLUMNS} FROM transcripts ORDER BY path"  # noqa: S608 - our names
        ).fetchall()
    return StoredSummary(
        sessions={str(folder): int(count) for folder, count, _ in rows},
        turns=sum(int(turns) for _, _, turns in rows),
        troubled=tuple(each for each in map(read_progress, progress) if each.notices()),
    )
