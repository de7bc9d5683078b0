"""Proposals: changes of notes that are kept until a person has decided (docs/spec/scopes.md §2).

A proposal contains the whole proposed file and the file that it was made from, so that approving merges later
changes. For each note, an agent has at most one proposal of its text and one of its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.messages import BoardCommand, R_co

Kind = Literal["create", "update", "delete", "move"]
Status = Literal["pending", "approved", "rejected", "expired", "withdrawn"]
STATUSES: Final[tuple[Status, ...]] = ("pending", "approved", "rejected", "expired", "withdrawn")

#: The event type for each status.
EVENTS: Final[Mapping[Status, str]] = {
    "pending": "proposal.created", "approved": "proposal.approved", "rejected": "proposal.rejected",
    "expired": "proposal.expired", "withdrawn": "proposal.withdrawn",
}  # fmt: skip

#: Maximum number of pending proposals in total, and per agent.
MOST_PENDING: Final = 1_000
MOST_OF_AGENT: Final = 100
#: Maximum length of a reason in characters.
LONGEST_REASON: Final = 500
#: Days for which decided proposals are kept, and maximum number of kept proposals.
KEPT_FOR: Final = timedelta(days=90)
MOST_DECIDED: Final = 2_000
#: Maximum number of earlier reasons that are offered again.
MOST_REASONS: Final = 5
#: The reason for rejecting a proposal whose note was deleted.
NOTE_DELETED: Final = "The note was deleted."


@frozen(kw_only=True)
class Proposal:
    """One proposal. `added` and `removed` are lines, `to` is the new path of a move.

    `base_version` is the note version that the proposal was made from, None for a new note. `begun_at` is the
    time when a person's approval started, if it is still running. `update_links`: a move rewrites the links
    of other notes.
    """

    id: str
    note_id: str
    agent: str
    kind: Kind
    path: str
    to: str | None = None
    title: str
    base_version: int | None = None
    added: int = 0
    removed: int = 0
    status: Status = "pending"
    created_at: datetime
    expires_at: datetime
    reason: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    begun_at: datetime | None = None
    update_links: bool = True

    @property
    def slot(self) -> tuple[str, str, bool]:
        """Return the key of the proposal.

        A later proposal of the same agent with the same key replaces it.
        """
        return self.note_id, self.agent, self.kind == "move"

    @property
    def is_pending(self) -> bool:
        """Return whether the proposal waits for a person."""
        return self.status == "pending"


@frozen
class ProposalTexts:
    """The file that a proposal was made from, and the proposed file. Each is None if missing."""

    base: bytes | None
    data: bytes | None


@frozen(kw_only=True)
class ProposalCommand(BoardCommand[R_co]):
    """The requests to the coordinator about proposals."""


@frozen(kw_only=True)
class KeepProposal(ProposalCommand[Proposal]):
    """Store a proposal in place of an earlier one of its `slot`. The reply is the stored proposal."""

    proposal: Proposal
    texts: ProposalTexts


@frozen(kw_only=True)
class BeginApproval(ProposalCommand[Proposal]):
    """Record that an approval has begun, before the note is written. The reply is the proposal."""

    id: str
    by: str


@frozen(kw_only=True)
class DecideProposal(ProposalCommand[Proposal]):
    """End a pending proposal.

    The reply is the ended proposal. Only the agent that proposed the change may use `withdrawn`.
    """

    id: str
    status: Status
    by: str
    reason: str | None = None


@frozen(kw_only=True)
class AbandonApproval(ProposalCommand[None]):
    """End an approval that was not carried out, so that the proposal is pending again. No reply.

    If another person began an approval since, that approval continues.
    """

    id: str
    begun_at: datetime | None


@frozen(kw_only=True)
class TidyProposals(ProposalCommand[int]):
    """Expire overdue proposals and delete old decided proposals. The reply is the number of changed rows."""

    now: datetime


def check_room(pending: int, of_agent: int, agent: str) -> None:
    """Raise `InvalidInput` if the maximum number of pending proposals is reached."""
    if of_agent >= MOST_OF_AGENT:
        raise InvalidInput(
            f"{agent[:60]} has {MOST_OF_AGENT} pending proposals, which is the maximum. Nothing "
            "was proposed. Withdraw some (lithos_proposal_withdraw), or ask a person to review "
            "them."
        )
    if pending >= MOST_PENDING:
        raise InvalidInput(
            f"{MOST_PENDING:,} proposals wait for a person, which is the maximum. Nothing was "
            "proposed. Ask a person to review them (lithos proposals, or the console's page "
            "Review)."
        )


def event_payload(proposal: Proposal) -> dict[str, Any]:
    """Return the event payload of a proposal. `by` is the deciding person, `to` the new path of a move."""
    return {
        "proposal_id": proposal.id,
        "id": proposal.note_id,
        "path": proposal.path,
        "title": proposal.title[:TITLE],
        "kind": proposal.kind,
        "agent": proposal.agent,
        "to": proposal.to,
        "by": proposal.decided_by,
        "reason": proposal.reason,
    }


class PendingProposals:
    """The pending proposals, in memory: the writer checks them before each change that may be proposed."""

    def __init__(self) -> None:
        self._by_id: dict[str, Proposal] = {}
        self._by_slot: dict[tuple[str, str, bool], str] = {}
        #: The reasons of the last rejections without duplicates, newest first.
        self.reasons: list[str] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, proposal_id: str) -> Proposal | None:
        """Return a pending proposal."""
        return self._by_id.get(proposal_id)

    def own(self, note_id: str, agent: str) -> Proposal | None:
        """Return this agent's proposal for the text of a note."""
        found = self._by_slot.get((note_id, agent, False))
        return None if found is None else self._by_id[found]

    def new_at(self, path: str, agent: str) -> Proposal | None:
        """Return the proposal of this agent to create a note at a path."""
        return next(
            (
                each
                for each in self._by_id.values()
                if each.kind == "create" and each.path == path and each.agent == agent
            ),
            None,
        )

    def all(self) -> list[Proposal]:
        """Return all pending proposals, oldest first."""
        return sorted(self._by_id.values(), key=lambda each: each.created_at)

    def take(self, proposal: Proposal) -> None:
        """Store the current state of a proposal."""
        if proposal.is_pending:
            self._by_id[proposal.id] = proposal
            self._by_slot[proposal.slot] = proposal.id
            return
        if self._by_id.pop(proposal.id, None) is not None:
            self._by_slot.pop(proposal.slot, None)
        if proposal.status == "rejected" and proposal.reason not in (None, NOTE_DELETED):
            self.begin_reasons([proposal.reason, *self.reasons])

    def begin_reasons(self, reasons: Iterable[str | None]) -> None:
        """Store the last reasons, newest first."""
        self.reasons = list(dict.fromkeys(each for each in reasons if each))[:MOST_REASONS]
