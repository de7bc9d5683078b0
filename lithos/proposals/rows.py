"""Database rows of pending and decided proposals in `coordination.db`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from lithos.events.rows.schema import CapabilityTables
from lithos.kernel.databases.table import FLAG, MOMENT, TIME, Rows, Table
from lithos.kernel.values.times import format_time
from lithos.proposals.model import KEPT_FOR, MOST_DECIDED, NOTE_DELETED, Proposal, ProposalTexts, Status

_PROPOSAL_TABLE: Final = """
CREATE TABLE IF NOT EXISTS proposals(
    id TEXT PRIMARY KEY, note_id TEXT NOT NULL, agent TEXT NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL,
    "to" TEXT, title TEXT NOT NULL, base_version INTEGER, added INTEGER NOT NULL, removed INTEGER NOT NULL,
    status TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, reason TEXT, decided_at TEXT,
    decided_by TEXT, begun_at TEXT, base BLOB, data BLOB, update_links INTEGER NOT NULL DEFAULT 1);
"""
_PROPOSAL_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS proposals_status ON proposals(status, created_at);
CREATE INDEX IF NOT EXISTS proposals_note ON proposals(note_id) WHERE status='pending';
"""
PROPOSAL_TABLES: Final = CapabilityTables(
    place=2,
    create=_PROPOSAL_TABLE,
    indexes=_PROPOSAL_INDEXES,
    columns={"proposals": {"update_links": "INTEGER NOT NULL DEFAULT 1"}},
)
_PROPOSALS: Final = Table(
    "proposals",
    Proposal,
    "id",
    names={"to": '"to"'},
    created_at=TIME,
    expires_at=TIME,
    decided_at=MOMENT,
    begun_at=MOMENT,
    update_links=FLAG,
)


class ProposalRows(Rows):
    """The proposals that one database connection reads. Writing needs an open transaction."""

    def get(self, proposal_id: str) -> Proposal | None:
        """Return a proposal in any status, or None."""
        found = self._find(_PROPOSALS, "WHERE id=?", proposal_id)
        return found[0] if found else None

    def pending(self) -> list[Proposal]:
        """Return all pending proposals, oldest first."""
        return self._find(_PROPOSALS, "WHERE status='pending' ORDER BY created_at, id")

    def pending_of_note(self, note_id: str) -> list[Proposal]:
        """Return the pending proposals for a note."""
        return self._find(_PROPOSALS, "WHERE note_id=? AND status='pending'", note_id)

    def count_pending(self) -> int:
        """Return the number of pending proposals."""
        return int(self._first("SELECT COUNT(*) FROM proposals WHERE status='pending'")[0])

    def count_pending_of(self, agent: str) -> int:
        """Return the number of pending proposals of an agent."""
        sql = "SELECT COUNT(*) FROM proposals WHERE status='pending' AND agent=?"
        return int(self._first(sql, agent)[0])

    def listed(
        self, status: Status, agent: str | None, limit: int, offset: int
    ) -> tuple[list[Proposal], int]:
        """Return one page of the proposals with a status, optionally of one agent, and their total number.

        Pending proposals are sorted oldest first, decided proposals newest first.
        """
        where, given = "WHERE status=?", [str(status)]
        if agent is not None:
            where, given = f"{where} AND agent=?", [status, agent]
        order = "created_at, id" if status == "pending" else "decided_at DESC, id"
        total = int(self._first(f"SELECT COUNT(*) FROM proposals {where}", *given)[0])  # noqa: S608 - our words
        rows = self._find(_PROPOSALS, f"{where} ORDER BY {order} LIMIT ? OFFSET ?", *given, limit, offset)
        return rows, total

    def last_reasons(self, most: int) -> list[str]:
        """Return the reasons of the latest rejections without duplicates, newest first."""
        return self._texts(
            "SELECT reason FROM proposals WHERE status='rejected' AND reason<>?"
            " GROUP BY reason ORDER BY MAX(decided_at) DESC LIMIT ?",
            NOTE_DELETED,
            most,
        )

    def texts(self, proposal_id: str) -> ProposalTexts | None:
        """Return the files of a proposal, or None if the proposal does not exist."""
        row = self._first("SELECT base, data FROM proposals WHERE id=?", proposal_id)
        return None if row is None else ProposalTexts(*row)

    def put(self, proposal: Proposal, texts: ProposalTexts | None = None) -> None:
        """Insert or update a proposal. If `texts` is None, the stored texts stay unchanged."""
        self._run(_PROPOSALS.upsert, *_PROPOSALS.row(proposal))
        if texts is not None:
            self._run("UPDATE proposals SET base=?, data=? WHERE id=?", texts.base, texts.data, proposal.id)

    def settled(self) -> datetime:
        """Return the time used by the latest retention run, or 1970 before the first run."""
        row = self._first("SELECT value FROM meta WHERE name='settled'")
        return datetime.fromtimestamp(0 if row is None else row[0], UTC)

    def overdue(self, now: datetime) -> list[Proposal]:
        """Return pending proposals whose time has expired, except those with an approval in progress."""
        where = "WHERE status='pending' AND begun_at IS NULL AND expires_at<=? ORDER BY expires_at"
        return self._find(_PROPOSALS, where, format_time(now))

    def drop_decided(self, now: datetime) -> int:
        """Delete decided proposals that are too old, and those beyond the maximum number.

        Return the number of deleted rows.
        """
        return self._run(
            "DELETE FROM proposals WHERE status<>'pending' AND (decided_at<? OR id NOT IN"
            " (SELECT id FROM proposals WHERE status<>'pending' ORDER BY decided_at DESC LIMIT ?))",
            format_time(now - KEPT_FOR),
            MOST_DECIDED,
        )
