"""Proposals as a capability."""

from __future__ import annotations

from lithos.actors.blocking import NoteThreads
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.reading import JournalThread
from lithos.actors.writing.ports import ChangeGate
from lithos.catalogue.catalogue import Catalogue
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Clock
from lithos.proposals.keeping import Proposing
from lithos.services.context.context import WaitingKeys
from lithos.services.notes.proposals import Proposals
from lithos.stores.coordination.store import CoordinationStore


def make_change_gate(
    coordinator: Coordinator,
    journal: CoordinationStore,
    journal_thread: JournalThread,
    threads: NoteThreads,
    catalogue: Catalogue,
    clock: Clock,
) -> ChangeGate:
    """Make what keeps a change for a person."""
    pending, rows = coordinator.proposals, journal.readable_proposals()
    return Proposing(coordinator, pending, rows, journal_thread, threads, catalogue, clock)


def make_waiting_keys(proposals: Proposals) -> WaitingKeys:
    """Make what a briefing says of proposals that wait."""
    return proposals


PROPOSALS = Capability(
    name="proposals",
    makers=(make_change_gate, Proposals, make_waiting_keys),
    background=(Background(Proposals, Proposals.resume),),
)
