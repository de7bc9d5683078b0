"""Proposals as a capability."""

from __future__ import annotations

from lithos.actors.coordinating.coordinator import Coordinator
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Parts
from lithos.services.notes.proposals import Proposals


async def has_proposal(server: Parts, thing: str) -> bool:
    """Whether there is a proposal with this id."""
    return server.get(Coordinator).proposals.get(thing) is not None


PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals,),
    background=(Background(Proposals, Proposals.resume),),
    tools=("lithos.tools.proposals",),
    holds=has_proposal,
)
