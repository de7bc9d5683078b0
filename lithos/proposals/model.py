"""Proposals: changes of notes that are kept until a person has looked at them (docs/spec/scopes.md §2).

A proposal has the whole proposed file and the file that it was made from, so that approving merges later
changes. An agent has at most one proposal of a note's text, and one of its place.
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

#: The type of the event of each.
EVENTS: Final[Mapping[Status, str]] = {
    "pending": "proposal.created", "approved": "proposal.approved", "rejected": "proposal.rejected",
    "expired": "proposal.expired", "withdrawn": "proposal.withdrawn",
}  # fmt: skip

#: Pending ones in all, and of one agent.
MOST_PENDING: Final = 1_000
MOST_OF_AGENT: Final = 100
#: Characters of a reason.
LONGEST_REASON: Final = 500
#: Days for which decided proposals are kept, and the maximum number of them.
KEPT_FOR: Final = timedelta(days=90)
MOST_DECIDED: Final = 2_000
#: Reasons that are offered again.
MOST_REASONS: Final = 5
#: The reason of a proposal whose note went.
NOTE_DELETED: Final = "The note was deleted."


@frozen(kw_only=True)
class Proposal:
    """One proposal; `added` and `removed` are lines, `to` is the new path of a move.

    `base_version` is the version of the note that it was made from, None for a new note. `begun_at`: since
    then a person's approval is being carried out. `update_links`: a move rewrites the links of other notes.
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
        """Return the key of proposals that a later one of the same agent replaces."""
        return self.note_id, self.agent, self.kind == "move"

    @property
    def is_pending(self) -> bool:
        """Whether it waits for a person."""
        return self.status == "pending"


@frozen
class ProposalTexts:
    """The file that a proposal was made from, and the proposed file; None if missing."""

    base: bytes | None
    data: bytes | None


@frozen(kw_only=True)
class ProposalCommand(BoardCommand[R_co]):
    """The requests to the coordinator about proposals."""


@frozen(kw_only=True)
class KeepProposal(ProposalCommand[Proposal]):
    """Store a proposal in place of an earlier one of its `slot`; the reply is the stored proposal."""

    proposal: Proposal
    texts: ProposalTexts


@frozen(kw_only=True)
class BeginApproval(ProposalCommand[Proposal]):
    """Note that an approval is being carried out, before the note is written; the reply is the proposal."""

    id: str
    by: str


@frozen(kw_only=True)
class DecideProposal(ProposalCommand[Proposal]):
    """End a pending proposal; the reply is the ended proposal. `withdrawn` is for its own agent."""

    id: str
    status: Status
    by: str
    reason: str | None = None


@frozen(kw_only=True)
class AbandonApproval(ProposalCommand[None]):
    """The approval that began at a time was not carried out: the proposal waits again. No reply.

    A decision that began since stays: a person is carrying it out.
    """

    id: str
    begun_at: datetime | None


@frozen(kw_only=True)
class TidyProposals(ProposalCommand[int]):
    """Expire what waited too long, and drop what was decided long ago; how many rows changed."""

    now: datetime


def check_room(pending: int, of_agent: int, agent: str) -> None:
    """Raises `InvalidInput` where there are as many pending proposals as there may be."""
    if of_agent >= MOST_OF_AGENT:
        raise InvalidInput(
            f"{agent[:60]} has {MOST_OF_AGENT} proposals that wait for a person, the most there may be. "
            "Nothing was proposed; withdraw some (lithos_proposal_withdraw), or ask a person to look at them."
        )
    if pending >= MOST_PENDING:
        raise InvalidInput(
            f"{MOST_PENDING:,} proposals wait for a person, the most there may be. Nothing was proposed; ask "
            "a person to look at them (lithos proposals, or the console's page Review)."
        )


def event_payload(proposal: Proposal) -> dict[str, Any]:
    """Return the event payload of a proposal; `by` is the person who decided, `to` the new path of a move."""
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
        #: The last reasons of rejections, each once, the newest first.
        self.reasons: list[str] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, proposal_id: str) -> Proposal | None:
        """A proposal that waits."""
        return self._by_id.get(proposal_id)

    def own(self, note_id: str, agent: str) -> Proposal | None:
        """Return this agent's proposal for the text of a note."""
        found = self._by_slot.get((note_id, agent, False))
        return None if found is None else self._by_id[found]

    def new_at(self, path: str, agent: str) -> Proposal | None:
        """The note that this agent proposes to create at a path."""
        return next(
            (
                each
                for each in self._by_id.values()
                if each.kind == "create" and each.path == path and each.agent == agent
            ),
            None,
        )

    def all(self) -> list[Proposal]:
        """All that wait, the oldest first."""
        return sorted(self._by_id.values(), key=lambda each: each.created_at)

    def take(self, proposal: Proposal) -> None:
        """Take in what a proposal is now."""
        if proposal.is_pending:
            self._by_id[proposal.id] = proposal
            self._by_slot[proposal.slot] = proposal.id
            return
        if self._by_id.pop(proposal.id, None) is not None:
            self._by_slot.pop(proposal.slot, None)
        if proposal.status == "rejected" and proposal.reason not in (None, NOTE_DELETED):
            self.begin_reasons([proposal.reason, *self.reasons])

    def begin_reasons(self, reasons: Iterable[str | None]) -> None:
        """Remember reasons, the newest first."""
        self.reasons = list(dict.fromkeys(each for each in reasons if each))[:MOST_REASONS]
