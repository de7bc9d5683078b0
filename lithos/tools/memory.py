"""Tools that show what retrieval has learned."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.actors.catalogue import Catalogue
from lithos.core.errors import DocNotFound
from lithos.core.memory import NodeStats
from lithos.core.times import format_optional
from lithos.services.learning import Learning
from lithos.tools.arguments import argument
from lithos.tools.registry import Answer, Tool


@frozen
class StatsArguments:
    """Parameters of `lithos_node_stats`."""

    node_id: str = argument("Id of the note.")


class MemoryTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, learning: Learning, catalogue: Catalogue) -> None:
        self._learning = learning
        self._catalogue = catalogue

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_node_stats",
                "standard",
                "RI",
                "How a note has fared in retrieval: salience, uses, feedback.",
                StatsArguments,
                self.node_stats,
            ),
        )

    async def node_stats(self, given: StatsArguments) -> Answer:
        """`lithos_node_stats`."""
        if given.node_id not in self._catalogue:
            raise DocNotFound(
                f"No note has the id {given.node_id[:100]!r}. Find it with lithos_search or lithos_list."
            )
        stored = await self._learning.stats([given.node_id])
        return stats_row(stored.get(given.node_id) or NodeStats(node_id=given.node_id))


def stats_row(stats: NodeStats) -> Answer:
    """Node statistics on the wire."""
    return {
        "node_id": stats.node_id,
        "salience": stats.salience,
        "retrieval_count": stats.retrieval_count,
        "cited_count": stats.cited_count,
        "last_retrieved_at": format_optional(stats.last_retrieved_at),
        "last_used_at": format_optional(stats.last_used_at),
        "ignored_count": stats.ignored_count,
        "misleading_count": stats.misleading_count,
        "decay_rate": stats.decay_rate,
        "spaced_rep_strength": stats.spaced_rep_strength,
        "last_decay_applied_at": format_optional(stats.last_decay_applied_at),
    }
