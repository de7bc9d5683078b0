"""The places of one kind of event delivery, SSE or WebSocket, and what its clients ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

from attrs import frozen

from lithos.services.event_stream import EventFilter


def tell_nobody() -> None:
    """Count nothing."""


class Subscribers:
    """How many clients there may be and are.

    `name` stands in refusals; `delivered` is told of every event sent, `dropped` of every client cut off.
    """

    def __init__(
        self,
        name: str,
        *,
        enabled: bool,
        limit: int,
        delivered: Callable[[], None] = tell_nobody,
        dropped: Callable[[], None] = tell_nobody,
    ) -> None:
        self.delivered = delivered
        self.dropped = dropped
        #: Clients being served.
        self.active = 0
        self._name = name
        self._enabled = enabled
        self._limit = limit

    def refusal(self) -> tuple[int, str] | None:
        """Status and text for a client that cannot be served now."""
        if not self._enabled:
            return 503, f"{self._name} delivery is disabled"
        if self.active >= self._limit:
            return 429, f"Too many {self._name} clients"
        return None

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for the block."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1


@frozen
class Query:
    """What the query string asks for; a blank value is as good as none."""

    wanted: EventFilter
    since: str | None = None
    subscriber: str | None = None


def read_query(query_string: bytes) -> Query:
    """Read `types`, `tags`, `since` and `subscriber`; `types` and `tags` are comma lists."""
    given = parse_qs(query_string.decode("latin-1"), errors="replace")
    types, tags = (
        [part for value in given.get(name, []) for part in value.split(",")] for name in ("types", "tags")
    )
    since, subscriber = (given.get(name, [""])[0].strip() or None for name in ("since", "subscriber"))
    return Query(EventFilter.of(types, tags), since, subscriber)
