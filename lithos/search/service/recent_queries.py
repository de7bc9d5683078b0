"""Recent queries of agents, for the pages about them: the access log has only the results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Final

#: Queries that are kept, and characters of each.
MOST_ASKED: Final = 2_000
LONGEST_ASKED: Final = 200


class RecentQueries:
    """The last queries in memory, with agent and time; a new process begins empty."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, datetime], str] = OrderedDict()

    def record(self, agent: str, at: datetime, query: str) -> None:
        """Keep a query."""
        self._kept[agent, at] = query[:LONGEST_ASKED]
        if len(self._kept) > MOST_ASKED:
            self._kept.popitem(last=False)

    def by(self, agent: str, before: datetime) -> Mapping[datetime, str]:
        """The queries of an agent before a time, oldest first."""
        return {at: query for (who, at), query in self._kept.items() if who == agent and at < before}
