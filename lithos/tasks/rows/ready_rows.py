"""Ready tasks, expired claims and timers in `coordination.db`. Each query uses an index.

`ready_tasks` and `claim_ends` are written in the same transaction as their events, so that each event is
announced once even if the process is killed. Writing requires an open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from lithos.kernel.databases.sqlite import load_object, load_texts
from lithos.kernel.databases.table import TIME, Rows, Table, listed
from lithos.kernel.values.times import EPOCH, format_time, parse_time
from lithos.tasks.model.graph import opens_at
from lithos.tasks.model.task import Claim, Task, aspect_key
from lithos.tasks.model.task_commands import NextTask
from lithos.tasks.model.task_project import name_in
from lithos.text.words.list_filters import tag_key

#: Prefilter on stored tags. It is true if the tags may pass a filter with the `tag_needle` `{0}`. SQLite's
#: `lower` converts only ASCII letters, and escapes can hide letters. Tags with non-ASCII letters or escapes
#: therefore always pass.
TAGS_LIKE: Final = (
    " AND ({0} IS NULL OR instr(lower(tags),{0}) OR octet_length(tags)>length(tags) OR instr(tags,'\\'))"
)
#: The same for stored metadata, with the `name_in` of a project.
METADATA_LIKE: Final = TAGS_LIKE.replace("tags", "metadata")
#: Without this index hint and without statistics, SQLite would use the larger index on the status.
_OPEN: Final = "tasks INDEXED BY tasks_open WHERE status='open' AND task_type='task'"
#: Query on the index of ready tasks, starting at a position. Tasks with an unexpired claim on the aspect are
#: skipped.
_FREE: Final = (
    "SELECT task_id,aged.created_at,number,tags,metadata"  # noqa: S608 - constants
    " FROM ready_tasks AS aged JOIN tasks ON id=task_id"
    " WHERE (aged.created_at,number)>=(?1,?2)"
    f"{METADATA_LIKE.format('?5')}{TAGS_LIKE.format('?6')}"
    " AND NOT EXISTS"
    " (SELECT 1 FROM claim_ends WHERE task_id=aged.task_id AND aspect_key=?3 AND expires_at>?4)"
    " ORDER BY aged.created_at, number LIMIT ?7"
)
_COUNTED: Final = (
    f"SELECT id IN (SELECT task_id FROM ready_tasks),tags,metadata FROM {_OPEN}"  # noqa: S608
    f"{METADATA_LIKE.format('?1')}{TAGS_LIKE.format('?2')}"
)
_COUNTS: Final = (
    "SELECT (SELECT COUNT(*) FROM ready_tasks),"  # noqa: S608 - constants
    f"(SELECT COUNT(*) FROM {_OPEN})"
)
_ENDED: Final = (
    "SELECT task_id,agent,aspect,claim_ends.expires_at,fence,aspect_key,"
    "(SELECT tags FROM tasks WHERE id=task_id)"
    " FROM claim_ends JOIN claims USING(task_id, aspect) WHERE is_told=0 AND claim_ends.expires_at<=?"
)

#: Position of a task in the queue: its `created_at`, and its rowid for equal times.
QueuePosition = tuple[str, int]
#: Position before every task, and position after every task.
FIRST: Final[QueuePosition] = ("", 0)
LAST: Final[QueuePosition] = ("~", 0)


@frozen
class ReadyTask:
    """A ready task with a free aspect."""

    id: str
    place: QueuePosition
    tags: tuple[str, ...]
    metadata: dict[str, Any]


#: All claims. Their start times are read in another query.
CLAIMS: Final = Table("claims", Claim, expires_at=TIME)


class ReadyRows(Rows):
    """Queries on ready tasks, expiring claims and opening timers."""

    # -- choosing ------------------------------------------------------------------------------

    def free(
        self, wanted: NextTask, key: str, since: QueuePosition, now: datetime, most: int
    ) -> list[ReadyTask]:
        """Return the ready tasks with a free aspect, oldest first, starting at a position.

        The caller must check the filter.
        """
        found = self._all(_FREE, *since, key, format_time(now), *_needles(wanted), most)
        return [
            ReadyTask(id, (created_at, rowid), load_texts(tags), load_object(metadata))
            for id, created_at, rowid, tags, metadata in found
        ]

    def counts(self, wanted: NextTask) -> tuple[int, int]:
        """Return the number of ready tasks and the number of blocked tasks that pass the filter."""
        if wanted.task_id is not None:
            asked = self._all(f"SELECT 1 FROM {_OPEN} AND id=?", wanted.task_id)  # noqa: S608 - a constant
            ready = len(self.are_ready([wanted.task_id]))
            return (ready, 1 - ready) if asked else (0, 0)
        if not wanted.is_filtered:
            ready, every = self._all(_COUNTS)[0]
            return ready, every - ready
        passing = [
            is_ready
            for is_ready, tags, metadata in self._all(_COUNTED, *_needles(wanted))
            if wanted.passes(load_texts(tags), load_object(metadata))
        ]
        return sum(passing), len(passing) - sum(passing)

    # -- readiness -----------------------------------------------------------------------------

    def are_ready(self, task_ids: Iterable[str]) -> set[str]:
        """Return the ids of the given tasks that are announced as ready."""
        sql = "SELECT task_id FROM ready_tasks WHERE task_id IN (SELECT value FROM json_each(?))"
        return set(self._texts(sql, listed(task_ids)))

    def place(self, task_id: str) -> QueuePosition | None:
        """Return the queue position of a task, or None if the task is not ready."""
        found: QueuePosition | None = self._first(
            "SELECT created_at,number FROM ready_tasks WHERE task_id=?", task_id
        )
        return found

    def add(self, task_id: str) -> None:
        """Record that a task is ready and announced."""
        self.connection.execute(
            "INSERT OR IGNORE INTO ready_tasks SELECT id,COALESCE(created_at,?),rowid FROM tasks WHERE id=?",
            (format_time(EPOCH), task_id),
        )

    def remove(self, task_id: str) -> None:
        """Remove a task that is no longer ready."""
        self.connection.execute("DELETE FROM ready_tasks WHERE task_id=?", (task_id,))

    def unready_after(self, task_id: str, most: int) -> list[str]:
        """Return open tasks of type `task` that are not announced as ready, ordered by id."""
        sql = (
            f"SELECT id FROM {_OPEN} AND id>? AND NOT EXISTS"  # noqa: S608 - a constant
            " (SELECT 1 FROM ready_tasks WHERE task_id=id) ORDER BY id LIMIT ?"
        )
        return self._texts(sql, task_id, most)

    # -- clock-driven events -------------------------------------------------------------------

    def arm(self, task: Task) -> None:
        """Schedule the opening of a timer gate. Any other gate loses its timer."""
        if (moment := opens_at(task)) is not None:
            self._run("INSERT OR REPLACE INTO timers VALUES(?,?)", task.id, format_time(moment))
        elif task.task_type == "gate":
            self.disarm(task.id)

    def disarm(self, gate_id: str) -> None:
        """Remove the timer of a gate that has opened or will not open automatically."""
        self.connection.execute("DELETE FROM timers WHERE gate_id=?", (gate_id,))

    def opened(self, now: datetime, most: int) -> list[str]:
        """Return the timer gates that are due, earliest first."""
        sql = "SELECT gate_id FROM timers WHERE opens_at<=? ORDER BY opens_at LIMIT ?"
        return self._texts(sql, format_time(now), most)

    def take_ended(self, now: datetime, most: int) -> list[tuple[Claim, tuple[str, ...]]]:
        """Return expired claims with an unannounced expiry, and the tags of their tasks.

        The expiry of the returned claims then counts as announced.
        """
        rows = self._all(f"{_ENDED} ORDER BY claim_ends.expires_at, fence LIMIT ?", format_time(now), most)
        self.connection.executemany(
            "UPDATE claim_ends SET is_told=1 WHERE task_id=? AND aspect_key=?",
            [(row[0], row[5]) for row in rows],
        )
        return [(CLAIMS.read(row[:5]), load_texts(row[6])) for row in rows]

    def follow(self, claim: Claim) -> None:
        """Schedule the expiry event for a granted or renewed claim."""
        self.connection.execute(
            "INSERT OR REPLACE INTO claim_ends VALUES(?,?,?,?,0)",
            (claim.task_id, aspect_key(claim.aspect), claim.aspect, format_time(claim.expires_at)),
        )

    def follow_carried(self, claim: Claim, *, is_told: bool) -> None:
        """Add an imported claim.

        If another claim already holds the aspect, the imported claim is only displayed.
        """
        self.connection.execute(
            "INSERT INTO claim_ends VALUES(?,?,?,?,?) ON CONFLICT(task_id, aspect_key) DO UPDATE SET"
            " expires_at=excluded.expires_at, is_told=excluded.is_told WHERE aspect=excluded.aspect",
            (
                claim.task_id, aspect_key(claim.aspect), claim.aspect, format_time(claim.expires_at),
                int(is_told),
            ),
        )  # fmt: skip

    def shorten(self, latest: datetime) -> None:
        """Shorten every claim that ends after `latest`, so that it ends at `latest`."""
        for table in ("claims", "claim_ends"):
            self._run(f"UPDATE {table} SET expires_at=?1 WHERE expires_at>?1", format_time(latest))  # noqa: S608

    def was_seen_after(self, moment: datetime) -> bool:
        """Return whether any agent was active after `moment`."""
        return bool(self._all("SELECT 1 FROM agents WHERE last_seen_at>? LIMIT 1", format_time(moment)))

    def ends_after(self, latest: datetime) -> bool:
        """Return whether any claim ends after `latest`."""
        return bool(self._all("SELECT 1 FROM claims WHERE expires_at>? LIMIT 1", format_time(latest)))

    def untold(self, task_id: str, key: str | None, now: datetime) -> list[Claim]:
        """Return expired claims on a task with an unannounced expiry.

        With `key`, return only claims on this aspect.
        """
        sql = f"{_ENDED} AND task_id=? AND (?3 IS NULL OR aspect_key=?3) ORDER BY fence"
        return [CLAIMS.read(row[:5]) for row in self._all(sql, format_time(now), task_id, key)]

    def next_due(self) -> datetime | None:
        """Return the time at which the next claim expires or timer gate opens.

        Return None if neither is scheduled.
        """
        ((ends, opens),) = self._all(
            "SELECT (SELECT MIN(expires_at) FROM claim_ends WHERE is_told=0),"
            "(SELECT MIN(opens_at) FROM timers)"
        )
        return min((parse_time(each) for each in (ends, opens) if each is not None), default=None)

    def last_told(self) -> datetime | None:
        """Return the latest end among the claims with an announced expiry.

        If the clock was set back, this time is in the future.
        """
        ((last,),) = self._all("SELECT MAX(expires_at) FROM claim_ends WHERE is_told=1")
        return None if last is None else parse_time(last)


def _needles(wanted: NextTask) -> tuple[str | None, str | None]:
    """Return texts that stored metadata and tags must contain to match. Most tasks then need no parsing."""
    project = None if wanted.project is None else name_in(wanted.project)
    return project, tag_needle(wanted.tags[0]) if wanted.tags else None


def needle(text: str) -> str | None:
    """Return the text as every JSON encoder writes it. Return None if JSON allows several forms."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & set('"\\/')
    return f'"{text}"' if is_plain else None


def tag_needle(wish: str) -> str | None:
    """Return a lower-case text that matching stored tags contain. Return None if no such text is known."""
    name = needle(tag_key(wish))
    return None if name is None else name[1:-1]  # a stored tag may begin with # and may have a subtag
