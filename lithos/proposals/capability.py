"""Proposals as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Background, Capability
from lithos.services.notes.proposals import Proposals

PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals,),
    background=(Background(Proposals, Proposals.resume),),
    tools=("lithos.tools.proposals",),
)
