"""Stored proposals.

The coordinator creates, decides and expires them in its transactions, with their events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import attrs

from lithos.events.journal.boards import Board
from lithos.kernel.values import events
from lithos.kernel.values.errors import Forbidden, ProposalClosed, ProposalNotFound
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import Done
from lithos.proposals.model import (
    EVENTS,
    NOTE_DELETED,
    AbandonApproval,
    BeginApproval,
    DecideProposal,
    KeepProposal,
    PendingProposals,
    Proposal,
    Status,
    TidyProposals,
    check_room,
    event_payload,
)
from lithos.proposals.rows import ProposalRows


class ProposalBoard(Board):
    """Commands on the stored proposals. Each command needs an open transaction."""

    def __init__(
        self, rows: ProposalRows, new_id: Callable[[], str], days: int, shown: PendingProposals
    ) -> None:
        """`days` is the time until a proposal expires.

        `shown` is the list of pending proposals in memory, which readers use.
        """
        self._rows = rows
        self._shown = shown
        self._new_id = new_id
        self._life = timedelta(days=days)
        self._changed: list[Proposal] = []
        #: Notes that had a proposal since this process started. The deletion of any other note affects no
        #: proposal.
        self._notes = {each.note_id for each in rows.pending()}
        self.handlers = {
            KeepProposal: self._keep,
            BeginApproval: self._begin,
            AbandonApproval: self._abandon,
            DecideProposal: self._decide,
            TidyProposals: self._tidy,
        }

    def follow(self, draft: EventDraft, now: datetime) -> Sequence[EventDraft]:
        """Reject the pending proposals for a deleted note. Return the events of the rejections."""
        if draft.type != events.NOTE_DELETED:
            return ()
        return self._after_deletion(draft.payload["id"], draft.agent, now)

    def committed(self) -> None:
        for proposal in self._changed:
            self._shown.take(proposal)
        self._changed.clear()

    def forget(self) -> None:
        self._changed.clear()

    def _keep(self, command: KeepProposal, now: datetime) -> Done[Proposal]:
        new = command.proposal
        former = next(
            (each for each in self._rows.pending_of_note(new.note_id) if each.slot == new.slot), None
        )
        if former is None:
            check_room(self._rows.count_pending(), self._rows.count_pending_of(new.agent), new.agent)
        elif former.begun_at is not None:
            raise ProposalClosed(
                "A person is approving your earlier proposal for this note at this moment. Read the note, "
                "then make your change again.",
                proposal_status="pending",
            )
        proposal = attrs.evolve(
            new,
            id=self._new_id() if former is None else former.id,
            created_at=now,
            # If the clock was set back, the proposal must not expire as soon as the clock is corrected.
            expires_at=max(now, self._rows.settled()) + self._life,
        )
        self._rows.put(proposal, command.texts)
        self._notes.add(proposal.note_id)
        self._changed.append(proposal)
        return Done(proposal, (_event(proposal, proposal.agent, now),))

    def _begin(self, command: BeginApproval, now: datetime) -> Done[Proposal]:
        proposal = self._pending(command.id)
        if proposal.begun_at is not None:
            raise ProposalClosed(
                f"{proposal.decided_by} is approving this proposal at this moment. Check it again later.",
                proposal_status="pending",
                decided_by=proposal.decided_by,
            )
        begun = attrs.evolve(proposal, begun_at=now, decided_by=command.by)
        self._put(begun)
        return Done(begun)

    def _abandon(self, command: AbandonApproval, now: datetime) -> Done[None]:
        del now
        proposal = self._pending(command.id)
        if proposal.begun_at == command.begun_at:
            self._put(attrs.evolve(proposal, begun_at=None, decided_by=None))
        return Done(None)

    def _decide(self, command: DecideProposal, now: datetime) -> Done[Proposal]:
        proposal = self._pending(command.id)
        if command.status == "withdrawn" and command.by != proposal.agent:
            raise Forbidden(
                f"The proposal belongs to {proposal.agent[:60]}, and an agent can withdraw only "
                "its own proposals."
            )
        if proposal.begun_at is not None and command.status != "approved":
            raise ProposalClosed(
                f"{proposal.decided_by} is approving this proposal at this moment. Check it again later.",
                proposal_status="pending",
                decided_by=proposal.decided_by,
            )
        return self._end(proposal, command.status, command.by, command.reason, now)

    def _tidy(self, command: TidyProposals, now: datetime) -> Done[int]:
        overdue = self._rows.overdue(command.now)
        told: list[EventDraft] = []
        for proposal in overdue:
            told += self._end(proposal, "expired", proposal.agent, None, now).events
        return Done(len(overdue) + self._rows.drop_decided(command.now), tuple(told))

    def _after_deletion(self, note_id: str, by: str, now: datetime) -> Sequence[EventDraft]:
        if note_id not in self._notes:
            return ()
        told: list[EventDraft] = []
        for proposal in self._rows.pending_of_note(note_id):
            if proposal.begun_at is None and proposal.kind != "create":
                told += self._end(proposal, "rejected", by, NOTE_DELETED, now).events
        return tuple(told)

    def _end(
        self, proposal: Proposal, status: Status, by: str, reason: str | None, now: datetime
    ) -> Done[Proposal]:
        decided_by = None if status in ("expired", "withdrawn") else by
        ended = attrs.evolve(
            proposal, status=status, reason=reason, decided_at=now, decided_by=decided_by, begun_at=None
        )
        self._put(ended)
        return Done(ended, (_event(ended, by, now),))

    def _put(self, proposal: Proposal) -> None:
        self._rows.put(proposal)
        self._changed.append(proposal)

    def _pending(self, proposal_id: str) -> Proposal:
        proposal = self._rows.get(proposal_id)
        if proposal is None:
            raise ProposalNotFound(
                f"Unknown proposal {proposal_id[:100]!r}. Find proposals with lithos_proposals."
            )
        if not proposal.is_pending:
            by = f" by {proposal.decided_by[:60]}" if proposal.decided_by else ""
            raise ProposalClosed(
                f"The proposal is already {proposal.status}{by}. Nothing was changed.",
                proposal_status=proposal.status,
                decided_by=proposal.decided_by,
            )
        return proposal


def _event(proposal: Proposal, agent: str, now: datetime) -> EventDraft:
    kind = EVENTS[proposal.status]
    return EventDraft(type=kind, agent=agent, payload=event_payload(proposal), timestamp=now)
