"""Receipts of retrievals, and the working memory of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import apsw
import attrs
from attrs import frozen

from lithos.core.learning.memory import FinalNode, Receipt, SurfacedConflict, WorkingNode
from lithos.core.times import format_time
from lithos.stores.database import read_time
from lithos.stores.sqlite import load_json, load_texts

_COLUMNS: Final = (
    'id,ts,query,"limit",namespace_filter,scouts_fired,candidates_considered,final_nodes,'
    "conflicts_surfaced,surface_conflicts,temperature,terrace_reached,agent_id,task_id"
)
_ACTIVATE: Final = (
    "INSERT INTO working_memory(task_id,node_id,activation_count,first_seen_at,last_seen_at,last_receipt_id)"
    " VALUES(?1,?2,1,?3,?3,?4) ON CONFLICT(task_id,node_id) DO UPDATE SET"
    " activation_count=IFNULL(activation_count,0)+1, last_seen_at=excluded.last_seen_at,"
    " last_receipt_id=excluded.last_receipt_id"
)
#: Behind every place.
_LAST: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class ReceiptSummary:
    """A receipt as lists show it."""

    id: str
    ts: datetime
    query: str
    agent_id: str | None
    task_id: str | None
    results: int


@frozen
class OldReceipt:
    """A receipt as far as the retention needs it; `place` is its place in insertion order."""

    place: int
    id: str
    task_id: str | None


#: Receipts of one page that are looked at for a note: it stands in the texts of the rows.
SCANNED: Final = 5_000


@frozen(kw_only=True)
class ReceiptFilter:
    """Which receipts: all that is given holds. `note_id` is a note that was returned."""

    agent_id: str | None = None
    task_id: str | None = None
    note_id: str | None = None


@frozen
class ReceiptPage:
    """Receipts, newest first. `before` is where the next page begins; None behind the oldest.

    A page about a note may be short, or empty, and others follow: it looks at `SCANNED` receipts.
    """

    receipts: Sequence[Receipt]
    before: int | None


class ReceiptRows:
    """The rows as one connection sees them; writing needs an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, receipt: Receipt) -> None:
        """Insert a receipt."""
        self._connection.execute(
            f"INSERT INTO receipts({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            _receipt_row(receipt),
        )

    def get(self, receipt_id: str) -> Receipt | None:
        """One receipt."""
        return self._first("id=?", (receipt_id,))

    def newest(self, task_id: str, agent_id: str) -> Receipt | None:
        """The latest receipt of this task and agent."""
        return self._first("task_id=? AND agent_id=? ORDER BY ts DESC, rowid DESC", (task_id, agent_id))

    def of_task(self, task_id: str, most: int) -> list[ReceiptSummary]:
        """The latest receipts of a task, newest first."""
        return self._summaries("task_id=?1 ORDER BY rowid DESC LIMIT ?2", (task_id, most))

    def of_agent(self, agent_id: str, before: datetime, most: int) -> list[ReceiptSummary]:
        """The latest receipts of an agent from before a time, newest first."""
        return self._summaries(
            "agent_id=?1 AND ts<?2 ORDER BY rowid DESC LIMIT ?3", (agent_id, format_time(before), most)
        )

    def _summaries(self, where: str, given: tuple[str | int, ...]) -> list[ReceiptSummary]:
        rows: Iterable[Any] = self._connection.execute(
            "SELECT id,ts,query,agent_id,task_id,"  # noqa: S608 - constants
            " CASE WHEN json_valid(final_nodes) THEN json_array_length(final_nodes) ELSE 0 END"
            f" FROM receipts WHERE {where}",
            given,
        )
        return [
            ReceiptSummary(row[0], read_time(row[1]) or _EPOCH, row[2] or "", row[3], row[4], int(row[5]))
            for row in rows
        ]

    def count(self) -> int:
        """How many there are."""
        rows: list[Any] = self._connection.execute("SELECT COUNT(*) FROM receipts").fetchall()
        return int(rows[0][0])

    def oldest(self, after: int, most: int) -> list[OldReceipt]:
        """At most so many receipts behind a place, in the order in which they were added."""
        rows = self._connection.execute(
            "SELECT rowid,id,task_id FROM receipts WHERE rowid>? ORDER BY rowid LIMIT ?", (after, most)
        )
        return [OldReceipt(*row) for row in rows]

    def page(self, wanted: ReceiptFilter, before: int | None, most: int) -> ReceiptPage:
        """At most so many receipts added before a place, newest first."""
        given = {"agent_id": wanted.agent_id, "task_id": wanted.task_id}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        where = " AND ".join(["rowid<:before", *(f"{name}=:{name}" for name in values)])
        values |= {"before": before if before is not None else _LAST, "most": most + 1}
        source: str = "receipts"
        floor: Any = None
        if wanted.note_id is not None:
            values |= {"node": f'{{"id": {_dump(wanted.note_id)},', "scanned": SCANNED}
            source = f"(SELECT rowid,* FROM receipts WHERE {where} ORDER BY rowid DESC LIMIT :scanned)"  # noqa: S608
            looked = f"SELECT COUNT(*),MIN(rowid) FROM {source}"  # noqa: S608 - constants
            rows: list[Any] = self._connection.execute(looked, values).fetchall()
            floor = rows[0][1] if rows[0][0] == SCANNED else None
            where = "instr(final_nodes,:node)>0"
        found: list[Any] = self._connection.execute(
            f"SELECT rowid,{_COLUMNS} FROM {source} WHERE {where} ORDER BY rowid DESC LIMIT :most",  # noqa: S608
            values,
        ).fetchall()
        after = found[most - 1][0] if len(found) > most else floor
        return ReceiptPage([_receipt(row[1:]) for row in found[:most]], after)

    def drop(self, ids: Iterable[str]) -> int:
        """Drop receipts; how many there were."""
        self._connection.execute(
            "DELETE FROM receipts WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        )
        return self._connection.changes()

    def _first(self, where: str, given: tuple[str, ...]) -> Receipt | None:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM receipts WHERE {where} LIMIT 1",  # noqa: S608 - constants
            given,
        ).fetchall()
        return _receipt(rows[0]) if rows else None

    # -- working memory ------------------------------------------------------------------------

    def activate(self, task_id: str, node_ids: Iterable[str], receipt_id: str, now: datetime) -> None:
        """Count that a retrieval for the task returned these notes (upsert)."""
        moment = format_time(now)
        rows = [(task_id, node_id, moment, receipt_id) for node_id in node_ids]
        self._connection.executemany(_ACTIVATE, rows)

    def working_memory(self, task_id: str) -> list[WorkingNode]:
        """The notes in the working memory of a task, by id."""
        rows = self._connection.execute(
            "SELECT task_id,node_id,activation_count,first_seen_at,last_seen_at,last_receipt_id"
            " FROM working_memory WHERE task_id=? ORDER BY node_id",
            (task_id,),
        )
        return [_working_node(row) for row in rows]

    def working_tasks(self) -> list[str]:
        """The tasks that have working memory."""
        return [row[0] for row in self._connection.execute("SELECT DISTINCT task_id FROM working_memory")]

    def forget(self, tasks: Iterable[str], idle_before: datetime) -> int:
        """Delete the working memory of these tasks and rows last seen before; returns how many."""
        self._connection.execute(
            "DELETE FROM working_memory WHERE task_id IN (SELECT value FROM json_each(?))"
            " OR IFNULL(last_seen_at, first_seen_at) < ?",
            (json.dumps(list(tasks)), format_time(idle_before)),
        )
        return self._connection.changes()


def _working_node(row: tuple[Any, ...]) -> WorkingNode:
    first = read_time(row[3]) or _EPOCH
    return WorkingNode(row[0], row[1], row[2] or 0, first, read_time(row[4]) or first, row[5])


def _receipt_row(receipt: Receipt) -> tuple[Any, ...]:
    namespaces = receipt.namespace_filter
    nodes = [
        {"id": node.id, "reasons": list(node.reasons), "scouts": list(node.scouts)}
        for node in receipt.final_nodes
    ]
    conflicts = [attrs.asdict(edge) for edge in receipt.conflicts_surfaced]
    return (
        receipt.id, format_time(receipt.ts), receipt.query, receipt.limit,
        None if namespaces is None else _dump(list(namespaces)), _dump(list(receipt.scouts_fired)),
        receipt.candidates_considered, _dump(nodes), _dump(conflicts), int(receipt.surface_conflicts),
        receipt.temperature, receipt.terrace_reached, receipt.agent_id, receipt.task_id,
    )  # fmt: skip


def _receipt(row: tuple[Any, ...]) -> Receipt:
    return Receipt(
        id=row[0],
        ts=read_time(row[1]) or _EPOCH,
        query=row[2],
        limit=row[3] or 0,
        namespace_filter=None if row[4] is None else load_texts(row[4]),
        scouts_fired=load_texts(row[5]),
        candidates_considered=row[6] or 0,
        final_nodes=tuple(
            FinalNode(node["id"], _texts(node.get("reasons")), _texts(node.get("scouts")))
            for node in _objects(row[7], "id")
        ),
        conflicts_surfaced=tuple(
            SurfacedConflict(edge["edge_id"], edge["from_id"], edge["to_id"], edge.get("conflict_state"))
            for edge in _objects(row[8], "edge_id", "from_id", "to_id")
        ),
        surface_conflicts=bool(row[9]),
        temperature=row[10] or 0.0,
        terrace_reached=row[11] or 0,
        agent_id=row[12],
        task_id=row[13],
    )


def _objects(text: str | None, *keys: str) -> list[dict[str, Any]]:
    """The objects of a list that have these keys, as texts."""
    value = load_json(text)
    items = value if isinstance(value, list) else []
    return [
        item
        for item in items
        if isinstance(item, dict) and all(isinstance(item.get(key), str) for key in keys)
    ]


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
