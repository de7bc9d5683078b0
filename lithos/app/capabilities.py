"""The list of capabilities, each after those that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lithos.access.capability import ACCESS
from lithos.attachments.capability import ATTACHMENTS
from lithos.events.capability import EVENTS
from lithos.history.capability import HISTORY
from lithos.imports.capability import IMPORTS
from lithos.kernel.capability import Background, Capability, Link, Pages
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


def pages() -> Pages:
    """What the console shows."""
    each = [capability.pages for capability in CAPABILITIES]
    return Pages(
        modules=tuple(module for some in each for module in some.modules),
        links=_sorted(link for some in each for link in some.links),
        tabs=_sorted(link for some in each for link in some.tabs),
        waiting=tuple(one for some in each for one in some.waiting),
    )


def _sorted(links: Iterable[Link]) -> tuple[Link, ...]:
    return tuple(sorted(links, key=lambda link: link.place))


def fronts() -> Iterator[str]:
    """The modules that add endpoints to an HTTP front."""
    yield from (capability.front for capability in CAPABILITIES if capability.front is not None)
