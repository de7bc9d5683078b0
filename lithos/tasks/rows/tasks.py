"""Repository for tasks, claims, findings, task edges and lessons in `coordination.db`.

`TaskRows` uses the writer's connection in a transaction, or the reader's connection for queries. A lesson is
the feedback from a completed task. Lessons wait in an outbox that is written in the transaction of the
completion. A lesson is deleted when `edges.db` and `stats.db` have stored its effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.events.rows.old_rows import before_us
from lithos.kernel.databases.table import MOMENT, OBJECT, TEXTS, TIME, Rows, Table, listed
from lithos.kernel.values.ids import MOST_CANDIDATES, is_id, one_of_prefix, prefix_of
from lithos.kernel.values.times import format_time
from lithos.tasks.model.graph import TaskGraph
from lithos.tasks.model.task import BLOCKING_TYPES, PARENT_CHILD, Claim, Finding, Task, TaskEdge, aspect_key
from lithos.tasks.model.task_commands import Lesson
from lithos.tasks.rows.board_rows import ImpactRows
from lithos.tasks.rows.ready_rows import CLAIMS, ReadyRows

#: Maximum number of waiting lessons. Lessons accumulate only while a database refuses writes.
KEPT: Final = 10_000

_TASKS: Final = Table(
    "tasks", Task, "id", kept=("created_by", "created_at"), created_at=TIME, resolved_at=MOMENT, tags=TEXTS,
    metadata=OBJECT,
)  # fmt: skip
_FINDINGS: Final = Table("findings", Finding, created_at=TIME)
_EDGES: Final = Table(
    "task_edges", TaskEdge, "from_task_id,to_task_id,type", kept=("created_by", "created_at"),
    names={"source": "from_task_id", "target": "to_task_id"}, metadata=OBJECT, created_at=TIME,
)  # fmt: skip
#: Stored spelling of the aspect with key ?2 on task ?1.
_SPELLING: Final = "(SELECT aspect FROM claim_ends WHERE task_id=?1 AND aspect_key=?2)"
_CLAIM: Final = f"{CLAIMS.select} WHERE task_id=?1 AND aspect={_SPELLING}"
_RUNNING: Final = f"{CLAIMS.select} WHERE task_id=? AND expires_at>? ORDER BY rowid"
_REGRANT: Final = (
    "UPDATE claims SET aspect=?3, agent=?4, claimed_at=?5, expires_at=?6, fence=?7"  # noqa: S608
    f" WHERE task_id=?1 AND aspect={_SPELLING}"
)
#: Tasks whose ids are in a range, by the index of the primary key. `_AFTER` sorts after every id character.
_STARTING: Final = "SELECT id, title FROM tasks WHERE id>=? AND id<? ORDER BY id LIMIT ?"
_AFTER: Final = "\U0010ffff"
_TYPES: Final = "('" + "','".join(BLOCKING_TYPES) + "')"
#: All tasks below the given tasks, and all parents above the given tasks. Neither relation has cycles.
_BELOW: Final = (
    "WITH RECURSIVE down(id) AS (SELECT value FROM json_each(?1) UNION SELECT to_task_id FROM down"  # noqa: S608
    f" JOIN task_edges ON from_task_id=down.id AND type='{PARENT_CHILD}') SELECT id FROM down"
)
_ABOVE: Final = (
    "WITH RECURSIVE up(id) AS (SELECT value FROM json_each(?1) UNION SELECT from_task_id FROM up"  # noqa: S608
    f" JOIN task_edges ON to_task_id=up.id AND type='{PARENT_CHILD}')"
    " SELECT id FROM up WHERE id NOT IN (SELECT value FROM json_each(?1))"
)
#: All direct and indirect predecessors of a task through blocking edges.
_BEFORE: Final = (
    "WITH RECURSIVE before(id) AS (SELECT ?1 UNION SELECT from_task_id FROM before"  # noqa: S608
    f" JOIN task_edges ON to_task_id=before.id AND type IN {_TYPES}) SELECT id FROM before"
)
#: Blocking edges to the given tasks and to their open parents. Direct edges of a task come first.
_BLOCKING: Final = (
    "WITH RECURSIVE up(task,id,depth) AS (SELECT value,value,0 FROM json_each(?1) UNION"  # noqa: S608
    " SELECT task,from_task_id,depth+1 FROM up JOIN task_edges ON to_task_id=up.id"
    f" AND type='{PARENT_CHILD}' JOIN tasks ON tasks.id=from_task_id AND tasks.status='open')"
    " SELECT from_task_id,tasks.status,up.task,up.id,type FROM up CROSS JOIN task_edges ON to_task_id=up.id"
    f" AND type IN {_TYPES} JOIN tasks ON tasks.id=from_task_id ORDER BY depth,task_edges.rowid"
)
#: Maximum number of bound values per statement. SQLite allows far more, but shorter statements are enough.
_AT_ONCE: Final = 500


@frozen
class BlockingEdge:
    """The task `source` with its status. The task `target` waits for it.

    `holder` is the task that has the edge. It is `target` or one of its parents.
    """

    source: str
    status: str
    target: str
    holder: str
    type: str


class TaskRows(Rows):
    """CRUD operations on tasks and their related rows. Callers check the task rules."""

    @property
    def ready(self) -> ReadyRows:
        return ReadyRows(self.connection)

    @property
    def impact(self) -> ImpactRows:
        return ImpactRows(self.connection)

    def snapshot(self) -> AbstractContextManager[object]:
        """Return a read transaction. All queries in it see the same consistent snapshot."""
        return self.connection

    # -- tasks ---------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task | None:
        """Return a task, or None if it does not exist."""
        return next(iter(self._find(_TASKS, "WHERE id=?", task_id)), None)

    def identify(self, text: str) -> str:
        """Return the id of the task that this text names: its id, or the beginning of its id.

        If there is no such task, return the text. Raises `AmbiguousIdPrefix`.
        """
        prefix = None if is_id(text) else prefix_of(text)
        if prefix is None or self._first("SELECT 1 FROM tasks WHERE id=?", text) is not None:
            return text
        found = dict(self._all(_STARTING, prefix, prefix + _AFTER, MOST_CANDIDATES + 1))
        return one_of_prefix(prefix, "task", found) or text

    def tasks(self, *, status: str | None = None, created_by: str | None = None) -> list[Task]:
        """Return tasks, newest first."""
        where = "WHERE (?1 IS NULL OR status=?1) AND (?2 IS NULL OR created_by=?2)"
        return self._find(_TASKS, f"{where} ORDER BY created_at DESC, rowid DESC", status, created_by)

    def some(self, task_ids: Sequence[str]) -> list[Task]:
        """Return the existing tasks with these ids."""
        return [
            task
            for part in _slices(task_ids)
            for task in self._find(_TASKS, f"WHERE id IN ({_marks(part)})", *part)
        ]

    def titles(self, task_ids: Sequence[str]) -> dict[str, str]:
        """Return the titles of existing tasks by id."""
        found: dict[str, str] = {}
        for part in _slices(task_ids):
            found |= dict(self._all(f"SELECT id,title FROM tasks WHERE id IN ({_marks(part)})", *part))  # noqa: S608
        return found

    def put_task(self, task: Task) -> None:
        """Insert or replace a task. A closed task is no longer ready, and a timer gate is scheduled."""
        self.connection.execute(_TASKS.upsert, _TASKS.row(task))
        self.ready.arm(task)

    # -- claims --------------------------------------------------------------------------------

    def claim(self, task_id: str, aspect: str) -> Claim | None:
        """Return the claim on an aspect, even if it has expired."""
        row = self.connection.execute(_CLAIM, (task_id, aspect_key(aspect))).fetchone()
        return None if row is None else CLAIMS.read(row)

    def claims_of(self, task_id: str, now: datetime) -> list[Claim]:
        """Return the unexpired claims on a task, ordered by first grant."""
        return list(map(CLAIMS.read, self.connection.execute(_RUNNING, (task_id, format_time(now)))))

    def active_claims(self, now: datetime, task_id: str | None = None) -> dict[str, list[Claim]]:
        """Return the unexpired claims by task, ordered by first grant.

        With `task_id`, only the claims on that task are returned.
        """
        found: dict[str, list[Claim]] = {}
        where = "WHERE expires_at>?1 AND (?2 IS NULL OR task_id=?2) ORDER BY rowid"
        for claim in self._find(CLAIMS, where, format_time(now), task_id):
            found.setdefault(claim.task_id, []).append(claim)
        return found

    def aspects(self, task_id: str) -> int:
        """Return the number of aspects of a task that have a claim. Expired claims count too."""
        return int(self._first("SELECT COUNT(*) FROM claims WHERE task_id=?", task_id)[0])

    def put_claim(self, claim: Claim, now: datetime) -> None:
        """Insert or replace the claim on an aspect. Its expiry then counts as unannounced."""
        values = (
            claim.task_id, aspect_key(claim.aspect), claim.aspect, claim.agent, format_time(now),
            format_time(claim.expires_at), claim.fence,
        )  # fmt: skip
        # Delete an old claim with this spelling, if another claim now holds the aspect.
        self.connection.execute(
            "DELETE FROM claims WHERE task_id=?1 AND aspect=?3 AND EXISTS (SELECT 1 FROM claim_ends"
            " WHERE task_id=?1 AND aspect_key=?2 AND aspect<>?3)",
            values[:3],
        )
        self.connection.execute(_REGRANT, values)
        if self.connection.changes() == 0:
            self.connection.execute(
                "INSERT INTO claims(task_id,aspect,agent,claimed_at,expires_at,fence) VALUES(?,?,?,?,?,?)",
                (values[0], *values[2:]),
            )
        self.ready.follow(claim)

    def extend_claim(self, claim: Claim) -> None:
        """Store the new expiry of a claim. The expiry then counts as unannounced."""
        self.connection.execute(
            "UPDATE claims SET expires_at=? WHERE task_id=? AND aspect=?",
            (format_time(claim.expires_at), claim.task_id, claim.aspect),
        )
        self.ready.follow(claim)

    def drop_claim(self, task_id: str, aspect: str) -> None:
        """Delete one claim."""
        self._run(f"DELETE FROM claims WHERE task_id=?1 AND aspect={_SPELLING}", task_id, aspect_key(aspect))  # noqa: S608

    def drop_claims(self, task_id: str) -> None:
        """Delete all claims on a task."""
        self._run("DELETE FROM claims WHERE task_id=?", task_id)

    def drop_ended_claims(self, before: datetime, most: int) -> int:
        """Delete at most `most` claims that ended before a time. Return the number of deleted claims.

        Claims that an upstream Lithos wrote are not deleted.
        """
        return self._run(
            "DELETE FROM claims WHERE rowid IN (SELECT rowid FROM claims WHERE expires_at<?"  # noqa: S608
            f" AND rowid>{before_us('old_claims')} LIMIT ?)",
            format_time(before),
            most,
        )

    def take_fence(self) -> int:
        """Increment the global counter of fencing tokens and return its new value."""
        ((fence,),) = self._all(
            "INSERT INTO counters VALUES('fence', 1)"
            " ON CONFLICT(name) DO UPDATE SET value=value+1 RETURNING value"
        )
        return int(fence)

    # -- findings ------------------------------------------------------------------------------

    def findings(self, task_id: str) -> list[Finding]:
        """Return a task's findings, oldest first."""
        return self._find(_FINDINGS, "WHERE task_id=? ORDER BY created_at, rowid", task_id)

    def add_finding(self, finding: Finding) -> None:
        """Append a finding."""
        self.connection.execute(_FINDINGS.insert, _FINDINGS.row(finding))

    def namesakes(self, task: Task, most: int) -> list[Task]:
        """Return other open tasks with the same title as `task`, newest first."""
        where = "WHERE title=? AND status='open' AND id<>? ORDER BY created_at DESC LIMIT ?"
        return self._find(_TASKS, where, task.title, task.id, most)

    def repeated(self, finding_id: str, most: int) -> list[Finding]:
        """Return other findings by the same agent on the same task with the same text, newest first."""
        where = (
            "WHERE (task_id,agent,summary)=(SELECT task_id,agent,summary FROM findings WHERE id=?1)"
            " AND id<>?1 ORDER BY created_at DESC LIMIT ?2"
        )
        return self._find(_FINDINGS, where, finding_id, most)

    def has_finding(self, finding_id: str) -> bool:
        """Return whether a finding with this id exists."""
        return self._first("SELECT 1 FROM findings WHERE id=?", finding_id) is not None

    # -- lessons -------------------------------------------------------------------------------

    def add_lesson(self, lesson: Lesson) -> None:
        """Enqueue a lesson. If there are more than `KEPT` lessons, delete the oldest."""
        self._run("INSERT INTO lessons VALUES(?,?)", lesson.id, lesson.text)
        self._run("DELETE FROM lessons WHERE rowid<=(SELECT MAX(rowid) FROM lessons)-?", KEPT)

    def lessons(self) -> list[Lesson]:
        """Return the queued lessons, oldest first."""
        return [Lesson(*row) for row in self._all("SELECT id,lesson FROM lessons ORDER BY rowid")]

    def drop_lesson(self, lesson_id: str) -> None:
        """Delete a lesson. A second deletion is harmless."""
        self._run("DELETE FROM lessons WHERE id=?", lesson_id)

    # -- edges ---------------------------------------------------------------------------------

    def edges_from(self, task_id: str, types: Sequence[str] = ()) -> list[TaskEdge]:
        """Return edges that start at a task, oldest first."""
        return self._edges("from_task_id=?", task_id, types)

    def edges_to(self, task_id: str, types: Sequence[str] = ()) -> list[TaskEdge]:
        """Return edges that end at a task, oldest first."""
        return self._edges("to_task_id=?", task_id, types)

    def put_edge(self, edge: TaskEdge) -> None:
        """Insert an edge. If the edge exists, replace only its metadata."""
        self.connection.execute(_EDGES.upsert, _EDGES.row(edge))

    def drop_edge(self, source: str, target: str, kind: str) -> bool:
        """Delete exactly one edge. Return whether it existed."""
        sql = "DELETE FROM task_edges WHERE from_task_id=? AND to_task_id=? AND type=?"
        return self._run(sql, source, target, kind) > 0

    def successors(self, task_id: str, types: Sequence[str]) -> list[str]:
        """Return the ids of the tasks at which the outgoing edges of a task end."""
        return self._texts(
            "SELECT to_task_id FROM task_edges JOIN tasks ON tasks.id=to_task_id"  # noqa: S608 - placeholders
            f" WHERE from_task_id=? AND type IN ({_marks(types)}) ORDER BY task_edges.rowid",
            task_id,
            *types,
        )

    def children(self, task_id: str) -> list[Task]:
        """Return the child tasks of a parent, oldest first."""
        columns = ",".join(f"tasks.{name}" for name in _TASKS.columns.split(","))
        rows = self._all(
            f"SELECT {columns} FROM task_edges JOIN tasks ON tasks.id=to_task_id"  # noqa: S608 - constants
            " WHERE from_task_id=? AND type=? ORDER BY tasks.created_at, tasks.rowid",
            task_id,
            PARENT_CHILD,
        )
        return list(map(_TASKS.read, rows))

    def below(self, task_ids: Sequence[str]) -> list[str]:
        """Return the ids of all descendants of these parents. The parents are not included."""
        return [task_id for task_id in self._texts(_BELOW, listed(task_ids)) if task_id not in set(task_ids)]

    def dependents(self, task_id: str) -> list[str]:
        """Return the ids of the tasks that an open task blocks: its successors and all tasks below them.

        A parent may wait for one of its own tasks. Such an edge blocks the parent, but no other task below
        the parent. A task also does not inherit a blocker that waits for this task.
        """
        direct = self.successors(task_id, BLOCKING_TYPES)
        if not direct:
            return []
        parents = set(self._texts(_ABOVE, listed([task_id])))
        inherited = self.below([one for one in direct if one not in parents])
        before = set(self.before(task_id)) if inherited else set()
        return list(dict.fromkeys((*direct, *(one for one in inherited if one not in before))))

    def before(self, task_id: str) -> list[str]:
        """Return the ids of a task and of its direct and indirect predecessors.

        Only blocking edges of the tasks themselves count.
        """
        return self._texts(_BEFORE, task_id)

    def predecessors_above(self, task_id: str) -> list[str]:
        """Return the ids of the predecessors of this task and of all its parents, whatever their status."""
        chain = [task_id, *self._texts(_ABOVE, listed([task_id]))]
        return list(
            dict.fromkeys(edge.source for one in chain for edge in self.edges_to(one, BLOCKING_TYPES))
        )

    def graph_before(self, task_ids: Iterable[str], *, transitively: bool = False) -> TaskGraph:
        """Return a graph of the tasks with their predecessors and the edges between them.

        With `transitively`, the graph also contains all indirect predecessors. A task waits for the
        predecessors of its open parents, too. `dependents` is the inverse relation.
        """
        waits: dict[str, list[tuple[str, str]]] = {}
        through: dict[tuple[str, str], str] = {}
        found = list(dict.fromkeys(task_ids))
        frontier = found
        while frontier:
            waits.update({task_id: [] for task_id in frontier})
            reached: dict[str, None] = {}
            for each in self.blocking_edges(frontier):
                waits[each.target].append((each.source, each.type))
                if each.holder != each.target:
                    through[each.target, each.source] = each.holder
                if each.source not in waits:
                    reached[each.source] = None
            found += reached
            frontier = list(reached) if transitively else []
        return TaskGraph(self.tasks_by_id([*found, *through.values()]), waits, through)

    def blocking_edges(self, task_ids: Sequence[str]) -> Iterator[BlockingEdge]:
        """Return the blocking edges of these tasks.

        Each predecessor occurs once, even if both a task and its parent have the edge.
        """
        known = set[tuple[str, str]]()
        above: dict[str, set[str]] = {}
        before: dict[str, set[str]] = {}
        for row in self._all(_BLOCKING, listed(task_ids)):
            edge = BlockingEdge(*row)
            if edge.holder != edge.target:
                if edge.source not in above:
                    above[edge.source] = {edge.source, *self._texts(_ABOVE, listed([edge.source]))}
                    before[edge.source] = set(self.before(edge.source))
                is_void = edge.holder in above[edge.source] or edge.target in before[edge.source]
                if is_void or (edge.source, edge.target) in known:
                    continue
            known.add((edge.source, edge.target))
            yield edge

    def tasks_by_id(self, task_ids: Sequence[str]) -> dict[str, Task]:
        """Return the existing tasks by id."""
        found: dict[str, Task] = {}
        for part in _slices(task_ids):
            tasks = self._find(_TASKS, f"WHERE id IN ({_marks(part)})", *part)
            found |= {task.id: task for task in tasks}
        return found

    def _edges(self, condition: str, task_id: str, types: Sequence[str]) -> list[TaskEdge]:
        among = f" AND type IN ({_marks(types)})" if types else ""
        return self._find(_EDGES, f"WHERE {condition}{among} ORDER BY rowid", task_id, *types)


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))


def _slices(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[begin : begin + _AT_ONCE] for begin in range(0, len(values), _AT_ONCE))
