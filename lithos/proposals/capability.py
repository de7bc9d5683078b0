"""Proposals as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Background, Capability
from lithos.kernel.state import Gauge, Health
from lithos.proposals.state import count_proposals, look_at_proposals, measure_proposals
from lithos.services.notes.proposals import Proposals

PROPOSALS = Capability(
    name="proposals",
    makers=(Proposals,),
    background=(Background(Proposals, Proposals.resume),),
    health=(Health("coordination", 8, look_at_proposals),),
    statistics=(count_proposals,),
    gauges=(Gauge(71, measure_proposals),),
)
