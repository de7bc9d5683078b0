"""Proposals as a capability."""

from __future__ import annotations

from typing import Final

from lithos.kernel.capability import Background, Capability, Link, Pages, Waiting
from lithos.services.notes.proposals import Proposals

WAITING: Final = Waiting(
    Proposals,
    lambda proposals: proposals.counts()["pending"],
    "proposal to look at",
    "proposals to look at",
    "/console/review",
)

PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals,),
    background=(Background(Proposals, Proposals.resume),),
    pages=Pages(
        modules=("lithos.front.console.pages.review",),
        links=(Link(5, "Review", "/console/review", "r"),),
        waiting=(WAITING,),
    ),
)
