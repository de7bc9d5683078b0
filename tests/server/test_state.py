"""Values that capabilities add to `/health`, `lithos_stats` and `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import define

from lithos.kernel.capability import Capabilities, Capability
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.metrics import GaugeSample, Metrics
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.state import OK, Component, Gauge, HealthCheck, Number
from lithos.server.service_state import Gauges, ServerState


@define
class Shelf:
    """An example component of a server."""

    books: int = 3
    trouble: str = ""


def look_at_shelf(shelf: Shelf) -> Component:
    return Component("unavailable", shelf.trouble) if shelf.trouble else OK


async def tell_more(shelf: Shelf) -> Component:
    return Component("ok", details={"books": shelf.books})


async def add_book(shelf: Shelf) -> list[Number]:
    shelf.books += 1
    return [Number(3, "last", "last")]


def count_books(shelf: Shelf) -> Iterator[Number]:
    yield Number(1, "books", shelf.books)


def measure_books(shelf: Shelf) -> Iterator[GaugeSample]:
    yield GaugeSample("documents", shelf.books)


async def measure_nothing() -> list[GaugeSample]:
    raise DatabaseFailed("it is broken")


SHELVES = Capability(
    name="shelves",
    health=(HealthCheck("shelf", 2, look_at_shelf), HealthCheck("first", 1, lambda: OK)),
    statistics=(count_books,),
    gauges=(Gauge(2, measure_books),),
)
MORE = Capability(
    name="more",
    health=(HealthCheck("shelf", 2, tell_more), HealthCheck("nothing", 3, lambda: None)),
    statistics=(add_book,),
    gauges=(Gauge(1, measure_nothing),),
)


def made(*listed: Capability) -> Parts:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    given = {Clock: lambda: now, Capabilities: Capabilities(listed)}
    return Parts((Shelf, Metrics, ServerState, Gauges), given)


async def test_components_stay_in_order_and_their_details_are_merged() -> None:
    parts = made(SHELVES, MORE)
    status, body = await parts.get(ServerState).report()
    assert (status, list(body["components"])) == (200, ["first", "shelf"])
    assert body["components"]["shelf"] == {"status": "ok", "books": 3}
    parts.get(Shelf).trouble = "It fell."
    status, body = await parts.get(ServerState).report()
    assert (status, body["components"]["shelf"]) == (503, {"status": "unavailable", "error": "It fell."})


async def test_statistics_are_counted_after_all_waits_and_stay_in_order() -> None:
    assert list((await made(SHELVES, MORE).get(ServerState).stats()).items()) == [
        ("books", 4),
        ("last", "last"),
    ]


async def test_missing_capability_reports_no_values() -> None:
    parts = made(SHELVES)
    assert await parts.get(ServerState).stats() == {"books": 3}
    _, body = await parts.get(ServerState).report()
    assert body["components"]["shelf"] == {"status": "ok"}


async def test_failing_database_removes_only_its_own_gauges() -> None:
    text = (await made(SHELVES, MORE).get(Gauges).scrape()).decode()
    assert "lithos_documents 3.0" in text
