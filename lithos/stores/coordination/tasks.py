"""Repository of tasks, claims, findings, task edges and lessons in `coordination.db`, row by row.

`TaskRows` works on any connection: the writer's in a transaction, the reader's for queries. A lesson is
what a completed task teaches: `LessonRows` is their queue (an outbox), written in the transaction of the
completion; a lesson is deleted when `edges.db` and `stats.db` have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final

import apsw

from lithos.core.tasks.commands import Lesson
from lithos.core.tasks.graph import TaskGraph
from lithos.core.tasks.model import (
    BLOCKING_TYPES,
    PARENT_CHILD,
    Claim,
    Finding,
    Task,
    TaskEdge,
    aspect_key,
)
from lithos.core.times import format_optional, format_time
from lithos.stores.coordination.impact_rows import ImpactRows
from lithos.stores.coordination.ready_rows import ReadyRows
from lithos.stores.database import read_time, stored_time
from lithos.stores.sqlite import load_object, load_texts

#: Bound of the lesson queue, which grows only while a database refuses writes.
KEPT: Final = 10_000


class LessonRows:
    """The rows as one connection sees them; writing needs an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, lesson: Lesson) -> None:
        """Enqueue a lesson; beyond `KEPT` the oldest are dropped."""
        self._connection.execute("INSERT INTO lessons VALUES(?,?)", (lesson.id, lesson.text))
        self._connection.execute(
            "DELETE FROM lessons WHERE rowid<=(SELECT MAX(rowid) FROM lessons)-?", (KEPT,)
        )

    def all(self) -> list[Lesson]:
        """The queued lessons, oldest first."""
        rows = self._connection.execute("SELECT id,lesson FROM lessons ORDER BY rowid")
        return [Lesson(*row) for row in rows]

    def drop(self, lesson_id: str) -> None:
        """Delete a lesson; idempotent."""
        self._connection.execute("DELETE FROM lessons WHERE id=?", (lesson_id,))


_TASK_COLUMNS: Final = (
    "id,title,description,status,task_type,created_by,created_at,tags,outcome,resolved_at,metadata"
)
_CLAIM_COLUMNS: Final = "task_id,agent,aspect,expires_at,fence"
_FINDING_COLUMNS: Final = "id,task_id,agent,summary,knowledge_id,created_at"
_EDGE_COLUMNS: Final = "from_task_id,to_task_id,type,metadata,created_by,created_at"
#: How the aspect with the key ?2 of the task ?1 is written.
_SPELLING: Final = "(SELECT aspect FROM claim_ends WHERE task_id=?1 AND aspect_key=?2)"
#: SQLite's limit on bound values is far above; this keeps statements short.
_AT_ONCE: Final = 500


class TaskRows:
    """Tasks and what belongs to them, as plain CRUD; the callers check the task rules."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @property
    def connection(self) -> apsw.Connection:
        """What rows of any table are merged over."""
        return self._connection

    @property
    def lessons(self) -> LessonRows:
        return LessonRows(self._connection)

    @property
    def ready(self) -> ReadyRows:
        return ReadyRows(self._connection)

    @property
    def impact(self) -> ImpactRows:
        return ImpactRows(self._connection)

    def snapshot(self) -> AbstractContextManager[object]:
        """Read transaction: all queries inside see one consistent snapshot."""
        return self._connection

    # -- tasks ---------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task | None:
        """One task."""
        rows = self._connection.execute(f"SELECT {_TASK_COLUMNS} FROM tasks WHERE id=?", (task_id,))  # noqa: S608
        return next((_task(row) for row in rows), None)

    def tasks(self, *, status: str | None = None, created_by: str | None = None) -> list[Task]:
        """Tasks newest first."""
        rows = self._connection.execute(
            f"SELECT {_TASK_COLUMNS} FROM tasks"  # noqa: S608 - a constant
            " WHERE (?1 IS NULL OR status=?1) AND (?2 IS NULL OR created_by=?2)"
            " ORDER BY created_at DESC, rowid DESC",
            (status, created_by),
        )
        return [_task(row) for row in rows]

    def titles(self, task_ids: Sequence[str]) -> dict[str, str]:
        """The titles of tasks that exist, by id."""
        found: dict[str, str] = {}
        for part in _slices(task_ids):
            rows = self._connection.execute(
                f"SELECT id,title FROM tasks WHERE id IN ({_marks(part)})",  # noqa: S608
                tuple(part),
            )
            found |= {str(task_id): str(title) for task_id, title in rows}
        return found

    def put_task(self, task: Task) -> None:
        """Insert or replace a task; one that is closed is ready no more, a timer gate is armed."""
        values = (
            task.id, task.title, task.description, task.status, task.task_type, task.created_by,
            format_time(task.created_at), _dump(list(task.tags)), task.outcome,
            format_optional(task.resolved_at), _dump(dict(task.metadata)),
        )  # fmt: skip
        self._connection.execute(
            f"INSERT INTO tasks({_TASK_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?)"
            " ON CONFLICT(id) DO UPDATE SET title=excluded.title, description=excluded.description,"
            " status=excluded.status, task_type=excluded.task_type, tags=excluded.tags,"
            " outcome=excluded.outcome, resolved_at=excluded.resolved_at, metadata=excluded.metadata",
            values,
        )
        self.ready.arm(task)

    # -- claims --------------------------------------------------------------------------------

    def claim(self, task_id: str, aspect: str) -> Claim | None:
        """The claim on an aspect, also an expired one."""
        rows = self._connection.execute(
            f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE task_id=?1 AND aspect={_SPELLING}",  # noqa: S608
            (task_id, aspect_key(aspect)),
        )
        return next((_claim(row) for row in rows), None)

    def claims_of(self, task_id: str, now: datetime) -> list[Claim]:
        """The unexpired claims of a task, in the order they were first made."""
        rows = self._connection.execute(
            f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE task_id=? AND expires_at>? ORDER BY rowid",  # noqa: S608
            (task_id, format_time(now)),
        )
        return [_claim(row) for row in rows]

    def active_claims(self, now: datetime, task_id: str | None = None) -> dict[str, list[Claim]]:
        """Unexpired claims (of one task) by task, in the order they were first made."""
        found: dict[str, list[Claim]] = {}
        for row in self._connection.execute(
            f"SELECT {_CLAIM_COLUMNS} FROM claims"  # noqa: S608 - a constant
            " WHERE expires_at>?1 AND (?2 IS NULL OR task_id=?2) ORDER BY rowid",
            (format_time(now), task_id),
        ):
            claim = _claim(row)
            found.setdefault(claim.task_id, []).append(claim)
        return found

    def aspects(self, task_id: str) -> int:
        """How many aspects of a task have a claim, ended ones included."""
        rows: list[Any] = self._connection.execute(
            "SELECT COUNT(*) FROM claims WHERE task_id=?", (task_id,)
        ).fetchall()
        return int(rows[0][0])

    def put_claim(self, claim: Claim, now: datetime) -> None:
        """Upsert the claim on an aspect, whose expiry is yet to be told."""
        values = (
            claim.task_id, aspect_key(claim.aspect), claim.aspect, claim.agent, format_time(now),
            format_time(claim.expires_at), claim.fence,
        )  # fmt: skip
        # Of an older file: a claim spelled as this one, of which another holds the aspect now.
        self._connection.execute(
            "DELETE FROM claims WHERE task_id=?1 AND aspect=?2 AND EXISTS (SELECT 1 FROM claim_ends"
            " WHERE task_id=?1 AND aspect_key=?3 AND aspect<>?2)",
            (claim.task_id, claim.aspect, aspect_key(claim.aspect)),
        )
        self._connection.execute(
            "UPDATE claims SET aspect=?3, agent=?4, claimed_at=?5, expires_at=?6, fence=?7"  # noqa: S608
            f" WHERE task_id=?1 AND aspect={_SPELLING}",
            values,
        )
        if self._connection.changes() == 0:
            self._connection.execute(
                "INSERT INTO claims(task_id,aspect,agent,claimed_at,expires_at,fence) VALUES(?,?,?,?,?,?)",
                (values[0], *values[2:]),
            )
        self.ready.follow(claim)

    def extend_claim(self, claim: Claim) -> None:
        """Store the new expiry of a claim, which is yet to be told."""
        self._connection.execute(
            "UPDATE claims SET expires_at=? WHERE task_id=? AND aspect=?",
            (format_time(claim.expires_at), claim.task_id, claim.aspect),
        )
        self.ready.follow(claim)

    def drop_claim(self, task_id: str, aspect: str) -> None:
        """Remove one claim."""
        self._connection.execute(
            f"DELETE FROM claims WHERE task_id=?1 AND aspect={_SPELLING}",  # noqa: S608 - a constant
            (task_id, aspect_key(aspect)),
        )

    def drop_claims(self, task_id: str) -> None:
        """Remove all claims of a task."""
        self._connection.execute("DELETE FROM claims WHERE task_id=?", (task_id,))

    def take_fence(self) -> int:
        """Increment the global counter of fencing tokens; returns the new value."""
        rows = self._connection.execute(
            "INSERT INTO counters VALUES('fence', 1)"
            " ON CONFLICT(name) DO UPDATE SET value=value+1 RETURNING value"
        ).fetchall()
        return int(str(rows[0][0]))

    # -- findings ------------------------------------------------------------------------------

    def findings(self, task_id: str) -> list[Finding]:
        """A task's findings, oldest first."""
        rows = self._connection.execute(
            f"SELECT {_FINDING_COLUMNS} FROM findings"  # noqa: S608 - a constant
            " WHERE task_id=? ORDER BY created_at, rowid",
            (task_id,),
        )
        return [
            Finding(
                id=row[0],
                task_id=row[1],
                agent=row[2],
                summary=row[3],
                knowledge_id=row[4],
                created_at=stored_time(row[5]),
            )
            for row in _texts(rows)
        ]

    def add_finding(self, finding: Finding) -> None:
        """Append a finding."""
        self._connection.execute(
            f"INSERT INTO findings({_FINDING_COLUMNS}) VALUES(?,?,?,?,?,?)",
            (
                finding.id, finding.task_id, finding.agent, finding.summary, finding.knowledge_id,
                format_time(finding.created_at),
            ),
        )  # fmt: skip

    # -- edges ---------------------------------------------------------------------------------

    def edges_from(self, task_id: str, types: Sequence[str] = ()) -> list[TaskEdge]:
        """Edges that leave a task, oldest first."""
        return self._edges("from_task_id=?", task_id, types)

    def edges_to(self, task_id: str, types: Sequence[str] = ()) -> list[TaskEdge]:
        """Edges that arrive at a task, oldest first."""
        return self._edges("to_task_id=?", task_id, types)

    def put_edge(self, edge: TaskEdge) -> None:
        """Insert an edge; an existing one gets the new metadata only."""
        self._connection.execute(
            f"INSERT INTO task_edges({_EDGE_COLUMNS}) VALUES(?,?,?,?,?,?)"
            " ON CONFLICT(from_task_id,to_task_id,type) DO UPDATE SET metadata=excluded.metadata",
            (
                edge.source, edge.target, edge.type, _dump(dict(edge.metadata)), edge.created_by,
                format_time(edge.created_at),
            ),
        )  # fmt: skip

    def successors(self, task_id: str, types: Sequence[str]) -> list[str]:
        """Ids of the tasks at the far end of a task's outgoing edges."""
        rows = self._connection.execute(
            "SELECT to_task_id FROM task_edges JOIN tasks ON tasks.id=to_task_id"  # noqa: S608 - placeholders
            f" WHERE from_task_id=? AND type IN ({_marks(types)}) ORDER BY task_edges.rowid",
            (task_id, *types),
        )
        return [row[0] for row in _texts(rows)]

    def children(self, task_id: str) -> list[Task]:
        """The tasks below a parent, oldest first."""
        columns = ",".join(f"tasks.{name}" for name in _TASK_COLUMNS.split(","))
        rows = self._connection.execute(
            f"SELECT {columns} FROM task_edges JOIN tasks ON tasks.id=to_task_id"  # noqa: S608 - constants
            " WHERE from_task_id=? AND type=? ORDER BY tasks.created_at, tasks.rowid",
            (task_id, PARENT_CHILD),
        )
        return [_task(row) for row in rows]

    def graph_before(self, task_ids: Iterable[str], *, transitively: bool = False) -> TaskGraph:
        """The tasks, what they wait for (`transitively`: all that waits for in turn), and the edges."""
        waits: dict[str, list[tuple[str, str]]] = {}
        found = list(dict.fromkeys(task_ids))
        frontier = found
        while frontier:
            waits.update({task_id: [] for task_id in frontier})
            reached: dict[str, None] = {}
            for source, target, kind in self._blocking_edges_to(frontier):
                waits[target].append((source, kind))
                if source not in waits:
                    reached[source] = None
            found += reached
            frontier = list(reached) if transitively else []
        return TaskGraph(self.tasks_by_id(found), waits)

    def _blocking_edges_to(self, task_ids: Sequence[str]) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for part in _slices(task_ids):
            rows = self._connection.execute(
                "SELECT from_task_id,to_task_id,type FROM task_edges"  # noqa: S608 - placeholders only
                " JOIN tasks ON tasks.id=from_task_id"
                f" WHERE to_task_id IN ({_marks(part)}) AND type IN ({_marks(BLOCKING_TYPES)})"
                " ORDER BY task_edges.rowid",
                (*part, *BLOCKING_TYPES),
            )
            found += [(row[0], row[1], row[2]) for row in _texts(rows)]
        return found

    def tasks_by_id(self, task_ids: Sequence[str]) -> dict[str, Task]:
        """Those of these tasks that there are."""
        found: dict[str, Task] = {}
        for part in _slices(task_ids):
            rows = self._connection.execute(
                f"SELECT {_TASK_COLUMNS} FROM tasks WHERE id IN ({_marks(part)})",  # noqa: S608
                tuple(part),
            )
            found |= {task.id: task for task in map(_task, rows)}
        return found

    def _edges(self, condition: str, task_id: str, types: Sequence[str]) -> list[TaskEdge]:
        among = f" AND type IN ({_marks(types)})" if types else ""
        rows = self._connection.execute(
            f"SELECT {_EDGE_COLUMNS} FROM task_edges WHERE {condition}{among} ORDER BY rowid",  # noqa: S608
            (task_id, *types),
        )
        return [
            TaskEdge(
                source=row[0],
                target=row[1],
                type=row[2],
                metadata=load_object(row[3]),
                created_by=row[4],
                created_at=stored_time(row[5]),
            )
            for row in _texts(rows)
        ]


def _task(row: Sequence[Any]) -> Task:
    return Task(
        id=row[0],
        title=row[1],
        description=row[2],
        status=row[3],
        task_type=row[4],
        created_by=row[5],
        created_at=stored_time(row[6]),
        tags=load_texts(row[7]),
        outcome=row[8],
        resolved_at=read_time(row[9]),
        metadata=load_object(row[10]),
    )


def _claim(row: Sequence[Any]) -> Claim:
    return Claim(
        task_id=row[0], agent=row[1], aspect=row[2], expires_at=stored_time(row[3]), fence=int(row[4] or 0)
    )


def _texts(rows: Iterable[Sequence[Any]]) -> Iterable[Sequence[Any]]:
    """Rows whose columns the schema types; SQLite's own typing cannot say so."""
    return rows


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))


def _slices(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE))
