"""Node statistics and coactivation: how notes fare in retrieval, and which are found together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any, Final

import apsw

from lithos.core.memory import INITIAL_SALIENCE, NodeStats, SalienceSummary
from lithos.core.retention import Pair, PairsForgotten
from lithos.core.times import format_optional, format_time
from lithos.stores.database import read_time

_COLUMNS: Final = (
    "node_id,salience,retrieval_count,last_retrieved_at,last_used_at,ignored_count,misleading_count,"
    "decay_rate,spaced_rep_strength,cited_count,last_decay_applied_at"
)
#: All columns are given, since those of older files may have no defaults.
_PUT: Final = f"INSERT OR REPLACE INTO node_stats({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?)"
_RETRIEVED: Final = (
    f"INSERT INTO node_stats({_COLUMNS}) VALUES(?,{INITIAL_SALIENCE},1,?,NULL,0,0,0,0,0,NULL)"
    " ON CONFLICT(node_id) DO UPDATE SET retrieval_count=IFNULL(retrieval_count,0)+1,"
    " last_retrieved_at=excluded.last_retrieved_at"
)
_TOGETHER: Final = (
    "INSERT INTO coactivation(node_id_a,node_id_b,namespace,count,last_at) VALUES(?,?,?,1,?)"
    " ON CONFLICT(node_id_a,node_id_b,namespace) DO UPDATE SET count=IFNULL(count,0)+1,"
    " last_at=excluded.last_at"
)
_COMPANIONS: Final = """
SELECT other, SUM(count) FROM (
    SELECT node_id_b AS other, namespace, count FROM coactivation
        WHERE node_id_a IN (SELECT value FROM json_each(:seeds))
    UNION ALL
    SELECT node_id_a AS other, namespace, count FROM coactivation
        WHERE node_id_b IN (SELECT value FROM json_each(:seeds)))
WHERE other NOT IN (SELECT value FROM json_each(:seeds))
    AND (:namespaces IS NULL OR namespace IN (SELECT value FROM json_each(:namespaces)))
GROUP BY other
"""
_BEHIND: Final = "(node_id_a,node_id_b,namespace)>(?1,?2,?3)"
_LAST_OF_SLICE: Final = (
    f"SELECT node_id_a,node_id_b,namespace FROM coactivation WHERE {_BEHIND}"  # noqa: S608 - constants
    " ORDER BY node_id_a,node_id_b,namespace LIMIT 1 OFFSET ?4"
)
#: A time that cannot be read is no reason to drop anything.
_FORGET_BEHIND: Final = (
    f"DELETE FROM coactivation WHERE {_BEHIND}"  # noqa: S608 - constants
    " AND julianday(last_at)<julianday(?4)-?5*MAX(IFNULL(count,1),1)"
)
_FORGET_SLICE: Final = f"{_FORGET_BEHIND} AND (node_id_a,node_id_b,namespace)<=(?6,?7,?8)"


class NodeRows:
    """The rows as one connection sees them; writing needs an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def get(self, node_ids: Iterable[str]) -> dict[str, NodeStats]:
        """The stored rows among these notes."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM node_stats WHERE node_id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(list(node_ids)),),
        )
        return {row[0]: _stats(row) for row in rows}

    def all(self) -> list[NodeStats]:
        """Every row, by id."""
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM node_stats ORDER BY node_id")  # noqa: S608
        return [_stats(row) for row in rows]

    def below(self, salience: float) -> list[NodeStats]:
        """The rows with less salience."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM node_stats WHERE salience<? ORDER BY node_id",  # noqa: S608
            (salience,),
        )
        return [_stats(row) for row in rows]

    def ids(self, after: str, most: int) -> list[str]:
        """The ids of at most so many rows behind `after`, in order."""
        rows = self._connection.execute(
            "SELECT node_id FROM node_stats WHERE node_id>? ORDER BY node_id LIMIT ?", (after, most)
        )
        return [str(row[0]) for row in rows]

    def put(self, changed: Iterable[NodeStats]) -> None:
        """Insert or replace rows."""
        self._connection.executemany(_PUT, [_row(stats) for stats in changed])

    def count_retrieval(self, node_ids: Iterable[str], namespace: str, now: datetime) -> None:
        """One more retrieval of each note, and of each unordered pair of them."""
        moment, ordered = format_time(now), sorted(set(node_ids))
        self._connection.executemany(_RETRIEVED, [(node_id, moment) for node_id in ordered])
        pairs = [(first, second, namespace, moment) for first, second in combinations(ordered, 2)]
        self._connection.executemany(_TOGETHER, pairs)

    def companions(self, seeds: Sequence[str], namespaces: Sequence[str] | None) -> dict[str, int]:
        """How often other notes were retrieved together with any of the seeds; None is any namespace."""
        given = {
            "seeds": json.dumps(list(seeds)),
            "namespaces": None if namespaces is None else json.dumps(list(namespaces)),
        }
        rows: list[Any] = self._connection.execute(_COMPANIONS, given).fetchall()
        return dict(rows)

    def forget_pairs(self, after: Pair, most: int, days: float, now: datetime) -> PairsForgotten:
        """Drop pairs idle for more than `days` times their count, among `most` behind `after`."""
        ends: list[Any] = self._connection.execute(_LAST_OF_SLICE, (*after, most - 1)).fetchall()
        last: Pair | None = ends[0] if ends else None
        sql = _FORGET_SLICE if last else _FORGET_BEHIND
        self._connection.execute(sql, (*after, format_time(now), days, *(last or ())))
        return PairsForgotten(self._connection.changes(), last)

    def summarize(self, floor: float) -> SalienceSummary:
        """How all stored notes stand; `floor` is a salience."""
        ((notes, mean, below),) = self._connection.execute(
            "SELECT COUNT(*), AVG(salience), SUM(salience<?) FROM node_stats", (floor,)
        ).fetchall()
        ((pairs,),) = self._connection.execute("SELECT COUNT(*) FROM coactivation").fetchall()
        return SalienceSummary(
            notes=_number(notes), mean=INITIAL_SALIENCE if mean is None else float(str(mean)),
            below=_number(below), pairs=_number(pairs),
        )  # fmt: skip


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _stats(row: tuple[Any, ...]) -> NodeStats:
    """A row; a NULL, which older files may hold, reads as the default."""
    return NodeStats(
        node_id=row[0],
        salience=INITIAL_SALIENCE if row[1] is None else row[1],
        retrieval_count=row[2] or 0,
        last_retrieved_at=read_time(row[3]),
        last_used_at=read_time(row[4]),
        ignored_count=row[5] or 0,
        misleading_count=row[6] or 0,
        decay_rate=row[7] or 0.0,
        spaced_rep_strength=row[8] or 0.0,
        cited_count=row[9] or 0,
        last_decay_applied_at=read_time(row[10]),
    )


def _row(stats: NodeStats) -> tuple[Any, ...]:
    return (
        stats.node_id, stats.salience, stats.retrieval_count, format_optional(stats.last_retrieved_at),
        format_optional(stats.last_used_at), stats.ignored_count, stats.misleading_count, stats.decay_rate,
        stats.spaced_rep_strength, stats.cited_count, format_optional(stats.last_decay_applied_at),
    )  # fmt: skip
