"""Recent queries, which are stored for the agent pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lithos.search.service.recent_queries import LONGEST_ASKED, MOST_ASKED, RecentQueries

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


def test_recent_queries_are_stored_by_agent_and_limited() -> None:
    asked = RecentQueries()
    for number in range(MOST_ASKED + 1):
        asked.record("ann" if number % 2 else "bob", NOW + timedelta(seconds=number), f"{number} {'x' * 500}")
    found = asked.by("bob", NOW + timedelta(days=1))
    assert len(found) == MOST_ASKED // 2, "the oldest, of bob, is gone"
    assert {len(query) for query in found.values()} == {LONGEST_ASKED}
    assert list(asked.by("ann", NOW + timedelta(seconds=4))) == [
        NOW + timedelta(seconds=number) for number in (1, 3)
    ]
