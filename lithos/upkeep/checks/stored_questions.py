"""Commands that list and delete the remembered questions in `stats.db` (docs/spec/memory.md §8)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lithos.kernel.databases.sqlite import snapshot
from lithos.memory.model.questions import QuestionFilter, RememberedQuestion
from lithos.memory.rows.questions import QuestionRows
from lithos.memory.rows.stats import StatsStore

_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE name='question_memory'"


def count_questions(path: Path, wanted: QuestionFilter, *, is_live: bool) -> int:
    """Return the number of matching questions in `stats.db`. Blocks. Changes nothing."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None or not connection.execute(_HAS_TABLE).fetchall():
            return 0  # a file from an older version has no questions
        return QuestionRows(connection).count(wanted)


def list_questions(path: Path, most: int, *, is_live: bool) -> list[RememberedQuestion]:
    """Return the newest questions in `stats.db`, at most `most` questions. Blocks. Changes nothing."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None or not connection.execute(_HAS_TABLE).fetchall():
            return []
        return QuestionRows(connection).newest(most)


def forget_stored_questions(path: Path, wanted: QuestionFilter, now: datetime) -> int:
    """Delete the matching questions and return the number of deleted questions.

    The caller must own the data directory. Blocks.
    """
    if not path.exists():
        return 0
    store = StatsStore.open(path, now)
    try:
        with store.transaction():
            return store.writing.questions.forget(wanted)
    finally:
        store.close()
