"""What rests on a note in `coordination.db`: tasks that found or cited it, its readers, its re-verification.

Every query goes over an index by the note. `citations`: which completed task cited which note, written with
the completion; the journal drops its events, and a lesson goes once it is learned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.core.tasks.model import READ
from lithos.core.times import format_time, parse_time
from lithos.stores.database import stored_time
from lithos.stores.table import Rows, listed

CITATION_TABLE: Final = """
CREATE TABLE IF NOT EXISTS citations(
    note_id TEXT NOT NULL, task_id TEXT NOT NULL, cited_at TEXT NOT NULL,
    PRIMARY KEY(note_id, task_id)) WITHOUT ROWID;
"""
#: The note that a task of a re-verification is about; metadata of older files may be no JSON.
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
_JOURNALLED: Final = "SELECT payload, timestamp FROM events WHERE type='task.completed' ORDER BY seq"


@frozen
class RestingTask:
    """A task that rests on a note: a `finding` names it, or its completion `cited` it; `at` is the newest."""

    task_id: str
    title: str
    status: str
    how: str
    at: datetime


@frozen
class Reader:
    """An agent that read a note, and how often as far as the access log goes back."""

    agent: str
    last_read_at: datetime
    reads: int


class ImpactRows(Rows):
    """What rests on notes."""

    def cite(self, task_id: str, note_ids: Iterable[str], now: datetime) -> None:
        """The completion of a task cited these notes; again moves the time."""
        moment = format_time(now)
        rows = [(note_id, task_id, moment) for note_id in dict.fromkeys(note_ids)]
        self._run_all("INSERT OR REPLACE INTO citations VALUES(?,?,?)", rows)

    def cite_journalled(self) -> None:
        """Take over the citations of completions that are still in the journal."""
        for payload, at in self._all(_JOURNALLED):
            task_id, cited = _read_completion(payload)
            if task_id is not None:
                self.cite(task_id, cited, parse_time(at))

    def tasks(self, note_id: str, most: int) -> list[RestingTask]:
        """At most so many tasks, the newest finding or citation first; a finding counts more."""
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
        """At most so many agents, who read it last first."""
        rows = self._all(_READERS, note_id, most)
        return [Reader(agent, stored_time(at), reads) for agent, at, reads in rows]

    def reverification(self, note_id: str) -> list[str]:
        """The ids of the open tasks and epics that say they are of the re-verification, oldest first."""
        return self._texts(_REVERIFICATION, note_id)


def _read_completion(payload: str) -> tuple[str | None, list[str]]:
    """The task and the cited notes of a `task.completed` event; None where it does not tell."""
    try:
        told = json.loads(payload)
        cited = json.loads(told["cited_nodes"])
        task_id = told["task_id"]
    except (ValueError, KeyError, TypeError):
        return None, []
    if not isinstance(task_id, str) or not isinstance(cited, list):
        return None, []
    return task_id, [note_id for note_id in cited if isinstance(note_id, str)]
