"""Proposals: note changes that are stored until a person has decided (docs/spec/scopes.md §2).

A proposal contains the proposed file and the file on which it is based, so that later changes can be merged
on approval. For each note, an agent has at most one proposal of a new text and one proposal of a new path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.graphemes import beginning
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

#: Maximum number of pending proposals: in total, and per agent.
MOST_PENDING: Final = 1_000
MOST_OF_AGENT: Final = 100
#: Maximum length of a reason in characters.
LONGEST_REASON: Final = 500
#: Limits for stored decided proposals: maximum age, and maximum number.
KEPT_FOR: Final = timedelta(days=90)
MOST_DECIDED: Final = 2_000
#: Maximum number of earlier reasons that the console offers for reuse.
MOST_REASONS: Final = 5
#: The reason for rejecting a proposal whose note was deleted.
NOTE_DELETED: Final = "The note was deleted."


@frozen(kw_only=True)
class Proposal:
    """One proposal.

    `added` and `removed` are numbers of lines. `to` is the new path if the note is to be moved.

    `base_version` is the note version on which the proposal is based, or None for a new note. `begun_at` is
    the start time of an approval that is still running. `update_links` is true if a move also rewrites the
    links in other notes.
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
        """Return the key that identifies the subject of the proposal.

        A later proposal of the same agent with the same key replaces this proposal.
        """
        return self.note_id, self.agent, self.kind == "move"

    @property
    def is_pending(self) -> bool:
        """Return whether no person has decided the proposal yet."""
        return self.status == "pending"


@frozen
class ProposalTexts:
    """The base file of a proposal and the proposed file. Either is None if it does not exist."""

    base: bytes | None
    data: bytes | None


@frozen(kw_only=True)
class ProposalCommand(BoardCommand[R_co]):
    """A request to the coordinator about proposals."""


@frozen(kw_only=True)
class KeepProposal(ProposalCommand[Proposal]):
    """Store a proposal, replacing an earlier proposal with the same `slot`.

    The reply is the stored proposal.
    """

    proposal: Proposal
    texts: ProposalTexts


@frozen(kw_only=True)
class BeginApproval(ProposalCommand[Proposal]):
    """Record the start of an approval before the note is written. The reply is the proposal."""

    id: str
    by: str


@frozen(kw_only=True)
class DecideProposal(ProposalCommand[Proposal]):
    """Change a pending proposal to a final status.

    The reply is the decided proposal. Only the agent that made the proposal may use `withdrawn`.
    """

    id: str
    status: Status
    by: str
    reason: str | None = None


@frozen(kw_only=True)
class AbandonApproval(ProposalCommand[None]):
    """Cancel an approval that was not carried out, so that the proposal is pending again. No reply.

    If another person has begun an approval in the meantime, that approval continues.
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
    """Return the event payload of a proposal.

    `by` is the person who decided, `to` the new path of a moved note.
    """
    return {
        "proposal_id": proposal.id,
        "id": proposal.note_id,
        "path": proposal.path,
        "title": beginning(proposal.title, TITLE),
        "kind": proposal.kind,
        "agent": proposal.agent,
        "to": proposal.to,
        "by": proposal.decided_by,
        "reason": proposal.reason,
    }


class PendingProposals:
    """The pending proposals in memory.

    The writer checks them before each change that may become a proposal.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Proposal] = {}
        self._by_slot: dict[tuple[str, str, bool], str] = {}
        #: The reasons of the latest rejections without duplicates, newest first.
        self.reasons: list[str] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, proposal_id: str) -> Proposal | None:
        """Return a pending proposal by its id, or None."""
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
        """Store the current state of a proposal. Decided proposals are removed."""
        if proposal.is_pending:
            self._by_id[proposal.id] = proposal
            self._by_slot[proposal.slot] = proposal.id
            return
        if self._by_id.pop(proposal.id, None) is not None:
            self._by_slot.pop(proposal.slot, None)
        if proposal.status == "rejected" and proposal.reason not in (None, NOTE_DELETED):
            self.begin_reasons([proposal.reason, *self.reasons])

    def begin_reasons(self, reasons: Iterable[str | None]) -> None:
        """Store the reasons of the latest rejections, newest first."""
        self.reasons = list(dict.fromkeys(each for each in reasons if each))[:MOST_REASONS]
