"""Recent queries of each agent, for the agent pages. The access log stores only the results of queries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

#: Maximum number of queries kept, and maximum number of characters kept of a query.
MOST_ASKED: Final = 2_000
LONGEST_ASKED: Final = 200


class RecentQueries:
    """The most recent queries, with agent and time. They are kept in memory and are lost at a restart."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, datetime], str] = OrderedDict()

    def record(self, agent: str, at: datetime, query: str) -> None:
        """Store a query."""
        self._kept[agent, at] = query[:LONGEST_ASKED]
        if len(self._kept) > MOST_ASKED:
            self._kept.popitem(last=False)

    def by(self, agent: str, before: datetime) -> Mapping[datetime, str]:
        """Return the queries that an agent made before a time, oldest first."""
        return {at: query for (who, at), query in self._kept.items() if who == agent and at < before}
