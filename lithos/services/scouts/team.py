"""All scouts together, in the order of the spec's table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen

from lithos.core.memory import SurfacedConflict
from lithos.services.scouts.contract import Ask, Scout
from lithos.services.scouts.names import NameScouts
from lithos.services.scouts.relations import RelationScouts
from lithos.services.scouts.searches import SearchScouts


@frozen
class Team:
    """Who looks at once, who looks beside what those found, and who looks for contradictions."""

    first: tuple[Scout, ...]
    second: tuple[Scout, ...]
    find_contradictions: Callable[[Ask], Awaitable[Sequence[SurfacedConflict]]]


def make_team(searches: SearchScouts, names: NameScouts, relations: RelationScouts) -> Team:
    """The whole team."""
    return Team(
        first=(
            *searches.scouts(),
            names.exact_alias(),
            names.tags_recency(),
            names.freshness(),
            relations.task_context(),
        ),
        second=(
            relations.provenance(),
            relations.graph(),
            relations.coactivation(),
            names.source_url(),
        ),
        find_contradictions=relations.find_contradictions,
    )
