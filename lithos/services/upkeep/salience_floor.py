"""What commands do to `stats.db`: they raise salience to the floor, list and forget remembered questions.

Specified in docs/spec/memory.md §2 and §8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from attrs import frozen

from lithos.core.learning.questions import QuestionFilter, RememberedQuestion
from lithos.core.learning.salience import lift
from lithos.stores.learning.questions import QuestionRows
from lithos.stores.learning.stats import NodeRows, StatsStore
from lithos.stores.sqlite import snapshot

_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE name='question_memory'"


def count_questions(path: Path, wanted: QuestionFilter, *, is_live: bool) -> int:
    """How many entries of `stats.db` these are; changes nothing. Blocks."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None or not connection.execute(_HAS_TABLE).fetchall():
            return 0  # a file from before
        return QuestionRows(connection).count(wanted)


def list_questions(path: Path, most: int, *, is_live: bool) -> list[RememberedQuestion]:
    """The newest entries of `stats.db`; changes nothing. Blocks."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None or not connection.execute(_HAS_TABLE).fetchall():
            return []
        return QuestionRows(connection).newest(most)


def forget_stored_questions(path: Path, wanted: QuestionFilter, now: datetime) -> int:
    """Drop these entries; how many. The caller owns the data directory. Blocks."""
    if not path.exists():
        return 0
    store = StatsStore.open(path, now)
    try:
        with store.transaction():
            return store.writing.questions.forget(wanted)
    finally:
        store.close()


#: Tenths from 0 to 1; the last one includes 1.
BUCKETS = 10


@frozen
class Recalibration:
    """Histograms of salience (tenths) before and after, and how many notes were raised."""

    floor: float
    dry_run: bool
    notes: int
    lifted: int
    before: Mapping[str, int]
    after: Mapping[str, int]


def preview_recalibration(path: Path, floor: float, *, is_live: bool) -> Recalibration:
    """What `recalibrate` would do to the statistics in `path`; changes nothing. Blocks."""
    with snapshot(path, is_live=is_live) as connection:
        return _recalibrate(None if connection is None else NodeRows(connection), floor, dry_run=True)


def recalibrate(path: Path, floor: float, now: datetime) -> Recalibration:
    """Lift salience below `floor` to it, where feedback did not put it there. Blocks.

    The caller owns the data directory. A missing database stays missing.
    """
    if not path.exists():
        return _recalibrate(None, floor, dry_run=False)
    store = StatsStore.open(path, now)
    try:
        with store.transaction():
            return _recalibrate(store.writing.nodes, floor, dry_run=False)
    finally:
        store.close()


def _recalibrate(rows: NodeRows | None, floor: float, *, dry_run: bool) -> Recalibration:
    stats = {each.node_id: each for each in rows.all()} if rows is not None else {}
    lifted = {each.node_id: new for each in stats.values() if (new := lift(each, floor)) is not None}
    if rows is not None and lifted and not dry_run:
        rows.put(lifted.values())
    before = _spread(each.salience for each in stats.values())
    after = _spread(each.salience for each in (stats | lifted).values())
    return Recalibration(floor, dry_run, len(stats), len(lifted), before, after)


def _spread(values: Iterable[float]) -> dict[str, int]:
    counts = Counter(min(BUCKETS - 1, max(0, int(value * BUCKETS + 1e-9))) for value in values)
    return {f"{tenth / BUCKETS:.1f}-{(tenth + 1) / BUCKETS:.1f}": counts[tenth] for tenth in range(BUCKETS)}
