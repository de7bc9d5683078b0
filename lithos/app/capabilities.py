"""The list of capabilities, each after those that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lithos.access.capability import ACCESS
from lithos.attachments.capability import ATTACHMENTS
from lithos.events.capability import EVENTS
from lithos.history.capability import HISTORY
from lithos.imports.capability import IMPORTS
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Maker
from lithos.memory.capability import MEMORY
from lithos.notes.capability import NOTES
from lithos.proposals.capability import PROPOSALS
from lithos.search.capability import SEARCH
from lithos.tasks.capability import TASKS
from lithos.upkeep.capability import UPKEEP

CAPABILITIES: Final[tuple[Capability, ...]] = (
    NOTES,
    HISTORY,
    SEARCH,
    TASKS,
    EVENTS,
    MEMORY,
    PROPOSALS,
    ATTACHMENTS,
    ACCESS,
    IMPORTS,
    UPKEEP,
)


def makers() -> Iterator[Maker]:
    """What makes the parts of a server."""
    for capability in CAPABILITIES:
        yield from capability.makers


def background(*, of_front: bool) -> Iterator[Background]:
    """What runs beside a server, or beside its front."""
    for capability in CAPABILITIES:
        yield from (each for each in capability.background if each.needs_front == of_front)
