"""Rows for the console pages about tasks and agents: board, claims with start times, and journal.

The journal has no index by task or agent. A query scans at most its newest `SCANNED` events in SQLite, which
takes about 30 ms.

`ImpactRows` finds everything that depends on a note: tasks with findings about it, tasks with citations of
it, its readers, and its re-verification. Each query uses an index by note. `citations` records which
completed task cited which note. `completions` records the completing agent. Both are written with the
completion, because the journal drops old events, and a lesson is deleted after it was applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from lithos.events.model.agents import READ
from lithos.kernel.databases.database import read_time, stored_time
from lithos.kernel.databases.sqlite import load_object, load_texts
from lithos.kernel.databases.table import Rows, dump, listed
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.times import format_time, parse_time
from lithos.tasks.model.task import BLOCKING_TYPES, PARENT_CHILD, Citation, Claim
from lithos.tasks.model.task_project import is_of_project, name_in
from lithos.tasks.rows.ready_rows import CLAIMS, METADATA_LIKE, TAGS_LIKE, tag_needle
from lithos.text.words.list_filters import has_tag

# kept rows: citations, completions: at most 1,000 for each completed task
CITATION_TABLE: Final = """
CREATE TABLE IF NOT EXISTS citations(
    note_id TEXT NOT NULL, task_id TEXT NOT NULL, cited_at TEXT NOT NULL,
    PRIMARY KEY(note_id, task_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS completions(task_id TEXT PRIMARY KEY, agent TEXT NOT NULL) WITHOUT ROWID;
"""
#: Id of the note that a re-verification task is about. In older files, the metadata may be invalid JSON.
_IMPACT_OF: Final = "CASE WHEN json_valid(metadata) THEN json_extract(metadata,'$.impact_of') END"
_IS_REVERIFICATION: Final = "status='open' AND instr(metadata,'\"impact_of\"')>0"
IMPACT_INDEXES: Final = f"""
CREATE INDEX IF NOT EXISTS citations_age ON citations(note_id, cited_at);
CREATE INDEX IF NOT EXISTS findings_note ON findings(knowledge_id, task_id, created_at)
    WHERE knowledge_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_impact ON tasks({_IMPACT_OF}) WHERE {_IS_REVERIFICATION};
"""
_FOUND: Final = (
    "SELECT task_id, MAX(created_at) AS at FROM findings WHERE knowledge_id=?"
    " GROUP BY task_id ORDER BY at DESC, task_id LIMIT ?"
)
_CITED: Final = (
    "SELECT task_id, cited_at FROM citations WHERE note_id=? ORDER BY cited_at DESC, task_id LIMIT ?"
)
_TASKS: Final = "SELECT id,title,status FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
_READERS: Final = (
    "SELECT agent_id, MAX(timestamp) AS at, COUNT(*) FROM access_log"  # noqa: S608 - a constant
    f" WHERE doc_id=? AND operation='{READ}' GROUP BY agent_id ORDER BY at DESC, agent_id LIMIT ?"
)
_REVERIFICATION: Final = (
    "SELECT id FROM tasks INDEXED BY tasks_impact"  # noqa: S608 - constants
    f" WHERE {_IS_REVERIFICATION} AND {_IMPACT_OF}=? ORDER BY created_at, rowid"
)
_JOURNALLED: Final = "SELECT payload, agent, timestamp FROM events WHERE type='task.completed' ORDER BY seq"
_CITATIONS: Final = (
    "SELECT citations.task_id, note_id, agent, cited_at FROM citations LEFT JOIN completions USING(task_id)"
    " WHERE (note_id, citations.task_id)>(?,?) ORDER BY note_id, citations.task_id LIMIT ?"
)
_POSTED: Final = (
    "SELECT knowledge_id, agent, MIN(created_at) FROM findings WHERE knowledge_id IS NOT NULL"
    " AND knowledge_id IN (SELECT value FROM json_each(?)) GROUP BY 1,2"
)


@frozen
class RestingTask:
    """A task that depends on a note, because of a `finding` or because its completion `cited` the note.

    `at` is the time of the latest finding or citation.
    """

    task_id: str
    title: str
    status: str
    how: str
    at: datetime


@frozen
class Reader:
    """An agent that read a note, and the number of reads in the access log."""

    agent: str
    last_read_at: datetime
    reads: int


class ImpactRows(Rows):
    """Queries for everything that depends on a note."""

    def cite(self, task_id: str, agent: str, note_ids: Iterable[str], now: datetime) -> None:
        """Record that the completion of a task by an agent cited these notes.

        If a citation is repeated, its time is updated.
        """
        moment = format_time(now)
        rows = [(note_id, task_id, moment) for note_id in dict.fromkeys(note_ids)]
        if rows:
            self._run_all("INSERT OR REPLACE INTO citations VALUES(?,?,?)", rows)
            self._run("INSERT OR REPLACE INTO completions VALUES(?,?)", task_id, agent)

    def cite_journalled(self) -> None:
        """Import citations from completions that are still in the journal."""
        for payload, agent, at in self._all(_JOURNALLED):
            task_id, cited = _read_completion(payload)
            if task_id is not None:
                self.cite(task_id, agent, cited, parse_time(at))

    def citations(self, after: tuple[str, str], most: int) -> tuple[list[Citation], tuple[str, str]]:
        """Return at most `most` citations after a position (note, task).

        Also return the position of the last one.
        """
        rows = self._all(_CITATIONS, *after, most)
        found = [
            Citation(task_id, note_id, agent or UNKNOWN_AGENT, stored_time(at))
            for task_id, note_id, agent, at in rows
        ]
        return found, (rows[-1][1], rows[-1][0]) if rows else after

    def cited_since(self, moment: datetime) -> set[str]:
        """Return the ids of notes cited at or after `moment`."""
        return set(
            self._texts("SELECT DISTINCT note_id FROM citations WHERE cited_at>=?", format_time(moment))
        )

    def posters(self, note_ids: Iterable[str]) -> dict[str, dict[str, datetime]]:
        """Return the agents that posted findings about each note.

        Each agent has the time of its first finding.
        """
        found: dict[str, dict[str, datetime]] = {}
        for note_id, agent, at in self._all(_POSTED, listed(note_ids)):
            found.setdefault(note_id, {})[agent] = stored_time(at)
        return found

    def tasks(self, note_id: str, most: int) -> list[RestingTask]:
        """Return at most `most` tasks, starting with the newest finding or citation.

        A task with both findings and citations is returned as a `finding`.
        """
        cited: dict[str, str] = dict(self._all(_CITED, note_id, most))
        found: dict[str, str] = dict(self._all(_FOUND, note_id, most))
        newest = {task: max(found.get(task) or "", cited.get(task) or "") for task in (*found, *cited)}
        chosen = sorted(sorted(newest), key=newest.__getitem__, reverse=True)[:most]
        told = {task: (title, status) for task, title, status in self._all(_TASKS, listed(chosen))}
        return [
            RestingTask(task, *told[task], "finding" if task in found else "cited", stored_time(newest[task]))
            for task in chosen
            if task in told
        ]

    def readers(self, note_id: str, most: int) -> list[Reader]:
        """Return at most `most` agents that read the note, starting with the latest reader."""
        rows = self._all(_READERS, note_id, most)
        return [Reader(agent, stored_time(at), reads) for agent, at, reads in rows]

    def reverification(self, note_id: str) -> list[str]:
        """Return the ids of the open re-verification tasks and epics of a note, oldest first."""
        return self._texts(_REVERIFICATION, note_id)


def _read_completion(payload: str) -> tuple[str | None, list[str]]:
    """Return the task and the cited notes in a `task.completed` event.

    If the task or the notes are missing, return None and no notes.
    """
    try:
        told = json.loads(payload)
        cited = json.loads(told["cited_nodes"])
        task_id = told["task_id"]
    except (ValueError, KeyError, TypeError):
        return None, []
    if not isinstance(task_id, str) or not isinstance(cited, list):
        return None, []
    return task_id, [note_id for note_id in cited if isinstance(note_id, str)]


#: Maximum number of newest journal events to scan for a task or an agent.
SCANNED: Final = 50_000
#: Number of newest accesses, and of newest events, to scan for the counts of all agents.
COUNTED: Final = 30_000
_BLOCKING: Final = "('" + "','".join(BLOCKING_TYPES) + "')"
_NEWEST: Final = (
    "(SELECT seq,type,agent,payload,timestamp FROM events WHERE timestamp>=?1 ORDER BY seq DESC"  # noqa: S608
    f" LIMIT {SCANNED})"
)
#: Value that sorts before every stored time.
_FIRST: Final = "0"


@frozen
class LightTask:
    """The fields of a task that determine its board column."""

    id: str
    task_type: str
    created_by: str
    tags: str
    metadata: str

    def has_tag(self, tag: str) -> bool:
        """Return whether the task has this tag or a tag below this tag."""
        return has_tag(load_texts(self.tags), tag)

    def is_of(self, project: str) -> bool:
        """Return whether the task belongs to the project."""
        return is_of_project(load_object(self.metadata), project)


@frozen
class HeldClaim:
    """An unexpired claim with the time of its grant.

    The time is None if an older version did not store it.
    """

    claim: Claim
    claimed_at: datetime | None


@frozen
class JournalledEvent:
    """An event as it is stored in the journal."""

    seq: int
    type: str
    agent: str
    payload: Mapping[str, Any]
    at: datetime


class BoardRows(Rows):
    """Queries on tasks, claims and agents for the console."""

    # -- board ---------------------------------------------------------------------------------

    def open_kinds(self) -> list[tuple[str, str]]:
        """Return the id and type of all open tasks, epics and gates, newest first."""
        return self._all(
            "SELECT id,task_type FROM tasks WHERE status='open' ORDER BY created_at DESC, rowid DESC"
        )

    def tasks_like(
        self, project: str | None, tag: str | None, agent: str | None, *, is_open: bool
    ) -> list[LightTask]:
        """Return tasks that may match the filters: open tasks (newest first) or closed tasks (latest first).

        The query searches the stored text, so the caller must check the results.
        """
        order = "created_at" if is_open else "resolved_at"
        rows = self._all(
            "SELECT id,task_type,created_by,tags,metadata FROM tasks"  # noqa: S608 - constants
            f" WHERE status{'=' if is_open else '<>'}'open'"
            f"{METADATA_LIKE.format('?1')}{TAGS_LIKE.format('?2')}"
            " AND (?3 IS NULL OR created_by=?3 OR id IN (SELECT task_id FROM claims WHERE agent=?3))"
            f" ORDER BY {order} DESC, rowid DESC",
            name_in(project) if project else None,
            tag_needle(tag) if tag else None,
            agent or None,
        )
        return [LightTask(*row) for row in rows]

    def closed_ids(self, limit: int, offset: int) -> tuple[list[str], int]:
        """Return one page of closed task ids, latest first, and the number of all closed tasks."""
        sql = (
            "SELECT id FROM tasks WHERE status<>'open' ORDER BY resolved_at DESC, rowid DESC LIMIT ? OFFSET ?"
        )
        total = self._first("SELECT COUNT(*) FROM tasks WHERE status<>'open'")[0]
        return self._texts(sql, limit, offset), int(total)

    def claims(self, now: datetime, task_id: str | None = None) -> dict[str, list[HeldClaim]]:
        """Return the unexpired claims by task, oldest first.

        With `task_id`, return only the claims on this task.
        """
        found: dict[str, list[HeldClaim]] = {}
        for begun, *row in self._all(
            f"SELECT claimed_at,{CLAIMS.columns} FROM claims"  # noqa: S608 - our names
            " WHERE expires_at>?1 AND (?2 IS NULL OR task_id=?2) ORDER BY rowid",
            format_time(now),
            task_id,
        ):
            claim = CLAIMS.read(row)
            found.setdefault(claim.task_id, []).append(HeldClaim(claim, read_time(begun)))
        return found

    def children(self, task_ids: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the number of children per status for each task."""
        found: dict[str, dict[str, int]] = {}
        for parent, status, count in self._all(
            "SELECT from_task_id,status,COUNT(*) FROM json_each(?) AS wanted"
            " CROSS JOIN task_edges ON from_task_id=wanted.value AND task_edges.type=?"
            " CROSS JOIN tasks ON tasks.id=to_task_id GROUP BY 1,2",
            listed(task_ids),
            PARENT_CHILD,
        ):
            found.setdefault(parent, {})[status] = int(count)
        return found

    def dependents(self, task_ids: Iterable[str]) -> dict[str, int]:
        """Return the number of open tasks that each task blocks through an edge."""
        rows = self._all(
            "SELECT from_task_id,COUNT(DISTINCT to_task_id) FROM json_each(?) AS wanted"  # noqa: S608
            f" CROSS JOIN task_edges ON from_task_id=wanted.value AND task_edges.type IN {_BLOCKING}"
            " CROSS JOIN tasks ON tasks.id=to_task_id WHERE status='open' GROUP BY 1",
            listed(task_ids),
        )
        return {row[0]: int(row[1]) for row in rows}

    # -- journal -------------------------------------------------------------------------------

    def events_of_task(self, task_id: str, created_at: datetime, most: int) -> list[JournalledEvent]:
        """Return the newest events about a task, newest first."""
        rows = self._all(
            f"SELECT seq,type,agent,payload,timestamp FROM {_NEWEST}"  # noqa: S608 - constants
            " WHERE instr(payload,?2) AND (type LIKE 'task.%' OR type LIKE 'finding.%') LIMIT ?3",
            format_time(created_at),
            dump(task_id),
            most,
        )
        return [event for event in _told(rows) if event.payload.get("task_id") == task_id]

    def events_of_agent(
        self, agent: str, types: Sequence[str], before: datetime, most: int
    ) -> list[JournalledEvent]:
        """Return the newest events of an agent before a time, newest first.

        Only events of the given types are returned.
        """
        rows = self._all(
            f"SELECT seq,type,agent,payload,timestamp FROM {_NEWEST}"  # noqa: S608 - constants
            " WHERE agent=?2 AND timestamp<?3 AND type IN (SELECT value FROM json_each(?4)) LIMIT ?5",
            _FIRST,
            agent,
            format_time(before),
            listed(types),
            most,
        )
        return list(_told(rows))

    def activity(self, since: datetime) -> dict[str, dict[str, int]]:
        """Return the numbers of reads, found notes and note changes of each agent since a time.

        Only the newest `COUNTED` accesses and events are counted.
        """
        moment, found = format_time(since), dict[str, dict[str, int]]()
        accesses = self._all(
            "SELECT agent_id,operation,COUNT(*) FROM (SELECT agent_id,operation"  # noqa: S608 - constants
            f" ,timestamp FROM access_log ORDER BY id DESC LIMIT {COUNTED}) WHERE timestamp>=? GROUP BY 1,2",
            moment,
        )
        writes = self._all(
            "SELECT agent,'write',COUNT(*) FROM (SELECT agent,type,timestamp FROM events"  # noqa: S608
            f" ORDER BY seq DESC LIMIT {COUNTED}) WHERE timestamp>=? AND type LIKE 'note.%' GROUP BY 1",
            moment,
        )
        for agent, kind, count in (*accesses, *writes):
            found.setdefault(agent, {})[kind] = int(count)
        return found


def _told(rows: Iterable[Sequence[Any]]) -> Iterator[JournalledEvent]:
    for seq, kind, agent, payload, at in rows:
        yield JournalledEvent(int(seq), kind, agent, load_object(payload), parse_time(at))
