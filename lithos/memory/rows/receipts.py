"""The rows of retrieval receipts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
from attrs import frozen

from lithos.kernel.databases.database import stored_time
from lithos.kernel.databases.sqlite import load_json, load_texts, texts_of
from lithos.kernel.databases.table import COUNT, FLAG, TEXTS, TIME, ColumnCodec, Rows, Table, dump, or_else
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.times import format_time
from lithos.memory.model.memory import FinalNode, Receipt, RetrievalRecord, SurfacedConflict
from lithos.memory.model.questions import digest_question

_ASKED: Final = (
    "SELECT rowid,ts,agent_id,query,task_id,final_nodes,tokens,is_followup,terrace_reached FROM receipts"
    " WHERE rowid>? ORDER BY rowid LIMIT ?"
)
#: Position after every other row.
_LAST: Final = (1 << 63) - 1


@frozen
class ReceiptSummary:
    """A receipt in the form that lists show."""

    id: str
    ts: datetime
    query: str
    agent_id: str | None
    task_id: str | None
    results: int


@frozen
class OldReceipt:
    """Data about a receipt for the retention. `place` is its position in insertion order."""

    place: int
    id: str
    task_id: str | None


#: Maximum number of receipts to scan for a note per page. A scan is needed because note ids are only in the
#: texts of rows.
SCANNED: Final = 5_000


@frozen(kw_only=True)
class ReceiptFilter:
    """A filter for receipts. All given conditions must be met. `note_id` is a returned note."""

    agent_id: str | None = None
    task_id: str | None = None
    note_id: str | None = None


@frozen
class ReceiptPage:
    """A page of receipts, newest first.

    The next page starts at `before`, which is None after the oldest receipt.

    A page about a note may be short or empty even if there are further pages, because only `SCANNED` receipts
    are scanned.
    """

    receipts: Sequence[Receipt]
    before: int | None


def _dump_nodes(nodes: Iterable[FinalNode]) -> str:
    return dump([{"id": node.id, "reasons": node.reasons, "scouts": node.scouts} for node in nodes])


def _read_nodes(text: str | None) -> tuple[FinalNode, ...]:
    return tuple(
        FinalNode(node["id"], texts_of(node.get("reasons")), texts_of(node.get("scouts")))
        for node in _objects(text, "id")
    )


def _read_conflicts(text: str | None) -> tuple[SurfacedConflict, ...]:
    found = _objects(text, "edge_id", "from_id", "to_id")
    return tuple(
        SurfacedConflict(each["edge_id"], each["from_id"], each["to_id"], each.get("conflict_state"))
        for each in found
    )


def _objects(text: str | None, *keys: str) -> list[dict[str, Any]]:
    """Return the objects in a JSON list that have a text for each of these keys."""
    value = load_json(text)
    items = value if isinstance(value, list) else []
    return [
        item
        for item in items
        if isinstance(item, dict) and all(isinstance(item.get(key), str) for key in keys)
    ]


_RECEIPTS: Final = Table(
    "receipts", Receipt, names={"limit": '"limit"'}, ts=TIME, limit=COUNT,
    namespace_filter=ColumnCodec(
        lambda namespaces: None if namespaces is None else dump(list(namespaces)),
        lambda text: None if text is None else load_texts(text),
    ),
    scouts_fired=TEXTS, candidates_considered=COUNT, final_nodes=ColumnCodec(_dump_nodes, _read_nodes),
    conflicts_surfaced=ColumnCodec(
        lambda edges: dump([attrs.asdict(edge) for edge in edges]), _read_conflicts
    ),
    surface_conflicts=FLAG, temperature=or_else(0.0), terrace_reached=COUNT, is_followup=FLAG,
)  # fmt: skip


class ReceiptRows(Rows):
    """The receipts on one connection. Writes need an open transaction."""

    def add(self, receipt: Receipt) -> None:
        """Insert a receipt."""
        self.connection.execute(_RECEIPTS.insert, _RECEIPTS.row(receipt))

    def get(self, receipt_id: str) -> Receipt | None:
        """Return a receipt, or None if it does not exist."""
        return next(iter(self._find(_RECEIPTS, "WHERE id=?", receipt_id)), None)

    def newest(self, task_id: str, agent_id: str) -> Receipt | None:
        """Return the latest receipt for this task and agent."""
        where = "WHERE task_id=? AND agent_id=? ORDER BY ts DESC, rowid DESC LIMIT 1"
        return next(iter(self._find(_RECEIPTS, where, task_id, agent_id)), None)

    def of_task(self, task_id: str, most: int) -> list[ReceiptSummary]:
        """Return the latest receipts of a task, newest first."""
        return self._summaries("task_id=?1 ORDER BY rowid DESC LIMIT ?2", task_id, most)

    def of_agent(self, agent_id: str, before: datetime, most: int) -> list[ReceiptSummary]:
        """Return the latest receipts of an agent before a time, newest first."""
        where = "agent_id=?1 AND ts<?2 ORDER BY rowid DESC LIMIT ?3"
        return self._summaries(where, agent_id, format_time(before), most)

    def _summaries(self, where: str, *given: str | int) -> list[ReceiptSummary]:
        rows = self._all(
            "SELECT id,ts,query,agent_id,task_id,"  # noqa: S608 - constants
            " CASE WHEN json_valid(final_nodes) THEN json_array_length(final_nodes) ELSE 0 END"
            f" FROM receipts WHERE {where}",
            *given,
        )
        return [ReceiptSummary(row[0], stored_time(row[1]), row[2] or "", *row[3:]) for row in rows]

    def count(self) -> int:
        """Return the number of receipts."""
        return int(self._first("SELECT COUNT(*) FROM receipts")[0])

    def oldest(self, after: int, most: int) -> list[OldReceipt]:
        """Return at most `most` receipts after a position, in insertion order."""
        sql = "SELECT rowid,id,task_id FROM receipts WHERE rowid>? ORDER BY rowid LIMIT ?"
        return [OldReceipt(*row) for row in self._all(sql, after, most)]

    def page(self, wanted: ReceiptFilter, before: int | None, most: int) -> ReceiptPage:
        """Return at most `most` receipts that were inserted before a position, newest first."""
        given = {"agent_id": wanted.agent_id, "task_id": wanted.task_id}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        where = " AND ".join(["rowid<:before", *(f"{name}=:{name}" for name in values)])
        values |= {"before": before if before is not None else _LAST, "most": most + 1}
        source: str = "receipts"
        floor: Any = None
        if wanted.note_id is not None:
            values |= {"node": f'{{"id": {dump(wanted.note_id)},', "scanned": SCANNED}
            source = f"(SELECT rowid,* FROM receipts WHERE {where} ORDER BY rowid DESC LIMIT :scanned)"  # noqa: S608
            looked = f"SELECT COUNT(*),MIN(rowid) FROM {source}"  # noqa: S608 - constants
            ((count, lowest),) = self.connection.execute(looked, values)
            floor = lowest if count == SCANNED else None
            where = "instr(final_nodes,:node)>0"
        found: list[Any] = self.connection.execute(
            f"SELECT rowid,{_RECEIPTS.columns} FROM {source} WHERE {where} ORDER BY rowid DESC LIMIT :most",  # noqa: S608
            values,
        ).fetchall()
        after = found[most - 1][0] if len(found) > most else floor
        return ReceiptPage([_RECEIPTS.read(row[1:]) for row in found[:most]], after)

    def asked(self, after: int, most: int) -> tuple[list[RetrievalRecord], int]:
        """Return the questions of at most `most` receipts after a position.

        Also return the position of the last receipt.

        Failed retrievals are left out, because they have no answer.
        """
        rows = self._all(_ASKED, after, most)
        found = [
            RetrievalRecord(
                stored_time(at),
                agent or UNKNOWN_AGENT,
                digest_question(query or ""),
                task_id,
                tuple(node.id for node in _read_nodes(nodes)),
                tokens,
                is_followup=bool(is_followup),
            )
            for _, at, agent, query, task_id, nodes, tokens, is_followup, terrace in rows
            if terrace != 0
        ]
        return found, rows[-1][0] if rows else after

    def drop(self, ids: Iterable[str]) -> int:
        """Delete receipts and return the number of deleted receipts."""
        return self._drop_from("receipts", "id", ids)
