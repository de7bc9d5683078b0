"""Proposals as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Background, Capability
from lithos.services.context.context import WaitingKeys
from lithos.services.notes.proposals import Proposals


def make_waiting_keys(proposals: Proposals) -> WaitingKeys:
    """Make what a briefing says of proposals that wait."""
    return proposals


PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals, make_waiting_keys),
    background=(Background(Proposals, Proposals.resume),),
)
