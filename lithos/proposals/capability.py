"""Proposals as a capability."""

from __future__ import annotations

from typing import Final

from lithos.actors.coordinating.coordinator import Coordinator
from lithos.kernel.capability import Background, Capability, Link, Pages, Waiting
from lithos.kernel.parts import Parts
from lithos.services.notes.proposals import Proposals

WAITING: Final = Waiting(
    Proposals,
    lambda proposals: proposals.counts()["pending"],
    "proposal to look at",
    "proposals to look at",
    "/console/review",
)


async def has_proposal(server: Parts, thing: str) -> bool:
    """Whether there is a proposal with this id."""
    return server.get(Coordinator).proposals.get(thing) is not None


PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals,),
    background=(Background(Proposals, Proposals.resume),),
    pages=Pages(
        modules=("lithos.front.console.pages.review",),
        links=(Link(5, "Review", "/console/review", "r"),),
        waiting=(WAITING,),
    ),
    tools=("lithos.tools.proposals",),
    holds=has_proposal,
)
