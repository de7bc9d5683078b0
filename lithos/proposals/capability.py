"""The `proposals` capability and the functions that build its components."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import make_id
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import NoteThreads
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages, PendingReview, Retention
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.state import Gauge, HealthCheck
from lithos.memory.context.request import WaitingKeys
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.writing.ports import ChangeGate
from lithos.proposals.actor_board import ProposalBoard
from lithos.proposals.model import MOST_REASONS, PendingProposals, TidyProposals
from lithos.proposals.proposing import Proposing
from lithos.proposals.rows import PROPOSAL_TABLES, ProposalRows
from lithos.proposals.service import Proposals
from lithos.proposals.settings import ProposalsConfig
from lithos.proposals.state import count_proposals, look_at_proposals, measure_proposals


def make_pending(journal: CoordinationStore) -> PendingProposals:
    """Build the in-memory list of pending proposals for readers."""
    pending, rows = PendingProposals(), journal.rows(ProposalRows)
    pending.begin_reasons(rows.last_reasons(MOST_REASONS))
    for proposal in rows.pending():
        pending.take(proposal)
    return pending


def make_proposal_board(
    journal: CoordinationStore, proposals: ProposalsConfig, pending: PendingProposals
) -> ProposalBoard:
    """Build the object that executes the commands on proposals."""
    return ProposalBoard(journal.written(ProposalRows), make_id, proposals.days, pending)


def tidy(now: datetime) -> TidyProposals:
    """Return the command that expires overdue proposals and deletes old decided proposals."""
    return TidyProposals(now=now)


WAITING: Final = PendingReview(
    Proposals,
    lambda proposals: proposals.counts()["pending"],
    "proposal to review",
    "proposals to review",
    "/console/review",
)


async def has_proposal(server: Parts, thing: str) -> bool:
    """Return whether a proposal with this id exists."""
    return server.get(PendingProposals).get(thing) is not None


def make_change_gate(
    coordinator: Coordinator,
    pending: PendingProposals,
    journal: CoordinationStore,
    journal_thread: JournalThread,
    threads: NoteThreads,
    catalogue: Catalogue,
    clock: Clock,
) -> ChangeGate:
    """Build the gate that stores a change as a proposal until a person has decided."""
    rows = journal.rows(ProposalRows)
    return Proposing(coordinator, pending, rows, journal_thread, threads, catalogue, clock)


def make_waiting_keys(proposals: Proposals) -> WaitingKeys:
    """Build the function that returns the counts of pending proposals for a briefing."""
    return proposals


PROPOSALS = Capability(
    name="proposals",
    makers=(make_pending, make_proposal_board, make_change_gate, Proposals, make_waiting_keys),
    background=(Background(Proposals, Proposals.resume),),
    pages=Pages(
        modules=("lithos.proposals.pages",),
        links=(NavigationLink(5, "Review", "/console/review", "r"),),
        waiting=(WAITING,),
    ),
    tools=("lithos.proposals.tools",),
    holds=has_proposal,
    boards=(ProposalBoard,),
    tables=(PROPOSAL_TABLES,),
    retention=(Retention("proposals", tidy),),
    health=(HealthCheck("coordination", 8, look_at_proposals),),
    statistics=(count_proposals,),
    gauges=(Gauge(71, measure_proposals),),
)
