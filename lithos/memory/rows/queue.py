"""Enrich queue with its attempts, and the idempotency ledgers that let each effect happen once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from lithos.kernel.databases.database import read_time
from lithos.kernel.databases.sqlite import load_texts
from lithos.kernel.databases.table import Rows, listed
from lithos.kernel.values.times import format_time
from lithos.memory.model.memory import EnrichJob, EnrichTrigger
from lithos.notes.model.entities import ExtractedEntities

_KEEP: Final = (
    "INSERT OR REPLACE INTO extracted_entities(node_id,digest,extractor,source,entities) VALUES(?,?,?,?,?)"
)
#: Columns id, trigger, note, attempts (including the current attempt) and time.
_CLAIMED: Final = "id,trigger_type,node_id,IFNULL(attempts,0)+1,triggered_at FROM enrich_queue"
#: Tables in which every row belongs to one note.
_OF_NOTES: Final = ("node_stats", "extracted_entities")  # kept rows: node_stats: deleted below
#: Condition for waiting rows. Task rows from earlier versions never count as waiting.
_WAITING: Final = "processed_at IS NULL AND node_id IS NOT NULL AND IFNULL(attempts,0)<?"


class QueueRows(Rows):
    """The queue on one connection. Writes need an open transaction."""

    def add(self, triggers: Iterable[EnrichTrigger], now: datetime) -> None:
        """Add triggers to the queue."""
        moment = format_time(now)
        self._run_all(
            "INSERT INTO enrich_queue(trigger_type,node_id,triggered_at,attempts) VALUES(?,?,?,0)",
            [(trigger.trigger_type, trigger.node_id, moment) for trigger in triggers],
        )

    def claim(self, max_attempts: int, after: int = 0, most: int | None = None) -> list[EnrichJob]:
        """Claim the due jobs and count an attempt for each. Return them grouped by note, oldest first.

        A note is claimed only if its first waiting row is among the `most` rows after `after`.
        """
        behind, groups = after, list[list[Any]]()
        while not groups:
            sql = f"SELECT {_CLAIMED} WHERE {_WAITING} AND id>? ORDER BY id LIMIT ?"
            window = self._all(sql, max_attempts, behind, -1 if most is None else most)
            if not window:
                return []
            behind = window[-1][0]
            groups = [group for group in self._groups_of(window, max_attempts) if group[0][0] > after]
        self._run(
            "UPDATE enrich_queue SET attempts=IFNULL(attempts,0)+1"
            " WHERE id IN (SELECT value FROM json_each(?))",
            listed(row[0] for group in groups for row in group),
        )
        return [_job(group) for group in groups]

    def _groups_of(self, window: list[Any], max_attempts: int) -> list[list[Any]]:
        """Return all waiting rows of the notes in the window."""
        rows = self._all(
            f"SELECT {_CLAIMED} WHERE {_WAITING} AND node_id IN"  # noqa: S608 - constants
            " (SELECT value FROM json_each(?)) ORDER BY id",
            max_attempts,
            listed({row[2] for row in window}),
        )
        groups: dict[str, list[Any]] = {}
        for row in rows:
            groups.setdefault(row[2], []).append(row)
        return list(groups.values())

    def finish(self, rows: Iterable[int], now: datetime) -> None:
        """Mark rows as processed."""
        sql = "UPDATE enrich_queue SET processed_at=? WHERE id IN (SELECT value FROM json_each(?))"
        self._run(sql, format_time(now), listed(rows))

    def drop_processed(self, before: datetime) -> None:
        """Delete rows that were processed before `before`."""
        self._run("DELETE FROM enrich_queue WHERE processed_at<?", format_time(before))

    def drop_given_up(self, before: datetime, most: int) -> int:
        """Delete rows that were queued before `before` and have used up their attempts.

        Return their number.
        """
        old = "SELECT id FROM enrich_queue WHERE triggered_at<? LIMIT ?"
        return self._run(f"DELETE FROM enrich_queue WHERE id IN ({old})", format_time(before), most)  # noqa: S608

    def length(self) -> int:
        """Return the number of unprocessed rows."""
        sql = "SELECT COUNT(*) FROM enrich_queue WHERE processed_at IS NULL AND node_id IS NOT NULL"
        return int(self._first(sql)[0])


def _job(rows: list[Any]) -> EnrichJob:
    return EnrichJob(
        rows=tuple(row[0] for row in rows),
        triggers=frozenset(row[1] for row in rows),
        node_id=rows[0][2],
        attempts=max(row[3] for row in rows),
        waiting_since=min(filter(None, (read_time(row[4]) for row in rows)), default=None),
    )


class LessonLedger(Rows):
    """A ledger of the lessons that a database has applied. With it, each lesson takes effect once."""

    def note_lesson(self, lesson_id: str) -> bool:
        """Record a lesson as applied. Return False if it was already recorded."""
        return self._run("INSERT OR IGNORE INTO applied_lessons VALUES(?)", lesson_id) > 0

    def lessons(self) -> list[str]:
        """Return the ids of recorded lessons."""
        return self._texts("SELECT id FROM applied_lessons")

    def forget_lessons(self, ids: Iterable[str]) -> None:
        """Delete the records of lessons."""
        self._drop_from("applied_lessons", "id", ids)


class LedgerRows(LessonLedger):
    """The entities of notes, and the applied lessons. Writes need an open transaction."""

    def noted(self, after: str, most: int) -> list[str]:
        """Return at most `most` ids of notes with stored data, in order, starting after the id `after`."""
        union = " UNION ".join(
            f"SELECT node_id FROM {table} WHERE node_id>?1"  # noqa: S608 - constants
            for table in _OF_NOTES
        )
        return self._texts(f"{union} ORDER BY 1 LIMIT ?2", after, most)

    def drop_notes(self, ids: Iterable[str]) -> int:
        """Delete all rows of these notes. Return the number of deleted rows."""
        notes = [*ids]
        return sum(self._drop_from(table, "node_id", notes) for table in _OF_NOTES)

    def keep_entities(self, node_id: str, found: ExtractedEntities | None, written: str) -> None:
        """Store the entities extracted from a note.

        For entities written into its file, store only the digest.

        If both are missing, delete the row.
        """
        if found is None and not written:
            self._run("DELETE FROM extracted_entities WHERE node_id=?", node_id)
        elif found is None:
            self._run(_KEEP, node_id, written, 0, None, None)
        else:
            texts = json.dumps(found.entities)
            self._run(_KEEP, node_id, found.instead_of, found.extractor, found.source, texts)

    def entities(self) -> dict[str, ExtractedEntities]:
        """Return the entities of each note. Entities that were written into files are left out."""
        if all(row[1] != "entities" for row in self._all("PRAGMA table_info(extracted_entities)")):
            return {}  # The file comes from an earlier version and was not opened for writing yet.
        rows = self._all(
            "SELECT node_id,entities,extractor,source,digest FROM extracted_entities"
            " WHERE entities IS NOT NULL"
        )
        return {
            node_id: ExtractedEntities(load_texts(texts), extractor, source or "", digest)
            for node_id, texts, extractor, source, digest in rows
        }

    def entities_digest(self, node_id: str) -> str | None:
        """Return the digest of the entities that a machine wrote into the file of the note."""
        row = self._first("SELECT digest FROM extracted_entities WHERE node_id=?", node_id)
        return None if row is None else row[0]
