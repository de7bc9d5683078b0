"""Access log over `GET /audit`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from lithos.events.model.agents import READ, SEARCH_RESULT, AuditRow
from lithos.events.reading.agents import AccessLog
from lithos.events.streams.audit import add_audit, read_after, read_limit
from lithos.kernel.actors.threads import Inline
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.times import format_time
from tests.fakes import START, served
from tests.server.running import Front, running_front
from tests.server.streaming import Station, station_at


@asynccontextmanager
async def auditing(path: Path, rows: int = 0) -> AsyncIterator[tuple[Station, Front]]:
    """Serve an access log with `rows` rows of two agents and three notes, one second apart."""
    with station_at(path) as station:
        log = AccessLog(station.coordinator.mailbox, station.store, Inline())
        station.coordinator.record_access(
            [
                AuditRow(
                    f"agent{n % 2}",
                    f"doc{n % 3}",
                    READ if n % 2 else SEARCH_RESULT,
                    START + timedelta(seconds=n),
                )
                for n in range(rows)
            ]
        )
        async with (
            served(station.coordinator.mailbox, station.coordinator.start),
            running_front([partial(add_audit, log, Named())]) as front,
        ):
            yield station, front


class Named:
    """A catalogue with one note. All other notes have been deleted."""

    def identify(self, text: str) -> str:
        return text

    def title(self, note_id: str) -> str | None:
        return "The first" if note_id == "doc0" else None


async def ask(front: Front, query: str = "") -> tuple[int, Any]:
    answer = await front.exchange(f"GET /audit?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def entries(front: Front, query: str = "") -> list[dict[str, Any]]:
    status, body = await ask(front, query)
    assert (status, list(body)) == (200, ["entries"]), body
    return list(body["entries"])


async def test_audit_entries_are_newest_first_with_all_keys(tmp_path: Path) -> None:
    """behaviour 138: includes accesses that have not been stored yet."""
    async with auditing(tmp_path, 5) as (_, front):
        found = await entries(front)
        assert [entry["id"] for entry in found] == [5, 4, 3, 2, 1]
        assert found[1] == {
            "id": 4,
            "agent_id": "agent1",
            "doc_id": "doc0",
            "operation": "read",
            "timestamp": format_time(START + timedelta(seconds=3)),
        }


async def test_audit_entries_are_filtered_by_agent_note_and_time(tmp_path: Path) -> None:
    """behaviour 138"""
    async with auditing(tmp_path, 12) as (_, front):
        for query, due in (
            ("agent_id=agent1", [12, 10, 8, 6, 4, 2]),
            ("doc_id=doc0", [10, 7, 4, 1]),
            ("agent_id=agent1&doc_id=doc0", [10, 4]),
            ("agent_id=nobody", []),
            ("agent_id=&doc_id=", list(range(12, 0, -1))),
            (f"after={quote(format_time(START + timedelta(seconds=9)))}", [12, 11]),
            (f"after={format_time(START + timedelta(seconds=9))}", [12, 11]),
            ("after=2026-01-02T05:04:14.000006%2B02:00&agent_id=agent0", [11]),
        ):
            assert [entry["id"] for entry in await entries(front, query)] == due, query


async def test_audit_limit_is_adjusted_to_its_range(tmp_path: Path) -> None:
    """behaviour 138"""
    async with auditing(tmp_path, 1005) as (_, front):
        for query, count in (
            ("", 100), ("limit=", 100), ("limit=many", 100), ("limit=1.5", 100), ("limit=3", 3),
            ("limit=0", 1), ("limit=-5", 1), ("limit=1000", 1000), ("limit=1001", 1000),
        ):  # fmt: skip
            assert len(await entries(front, query)) == count, query


async def test_invalid_audit_time_is_refused(tmp_path: Path) -> None:
    """behaviour 138"""
    async with auditing(tmp_path) as (_, front):
        for after in ("yesterday", "2026-13-01", "12", "2026-01-02T03:04:05 nowhere"):
            status, body = await ask(front, f"after={quote(after)}")
            assert (status, list(body), body["error"]) == (400, ["error", "message"], "invalid_after"), after
            assert "ISO 8601" in body["message"]


async def test_failing_database_is_reported_with_503(tmp_path: Path) -> None:
    """behaviour 138"""
    async with auditing(tmp_path, 1) as (station, front):

        def fail(**_: Any) -> Any:
            raise DatabaseFailed("disk I/O error")

        station.store.audit = fail  # type: ignore[method-assign]
        assert await ask(front) == (503, {"error": "audit_log_unavailable", "entries": []})


def test_space_in_place_of_plus_before_the_zone_is_accepted() -> None:
    for text, meant in (
        ("2026-01-02T03:04:05 02:00", "2026-01-02T03:04:05+02:00"),
        ("2026-01-02T03:04:05.25 0530", "2026-01-02T03:04:05.25+05:30"),
        ("2026-01-02 03:04:05 00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04 01:00", "2026-01-02T03:04+01:00"),
        ("2026-01-02 03:04", "2026-01-02T03:04Z"),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05-02:00", "2026-01-02T03:04:05-02:00"),
        ("  2026-01-02 ", "2026-01-02T00:00Z"),
    ):
        assert read_after(text) == read_after(meant), text
    assert read_after("") is read_after("  ") is None


@given(st.text())
def test_audit_parameters_of_any_text_are_valid_or_refused(text: str) -> None:
    assert 1 <= read_limit(text) <= 1000
    with suppress(ValueError):
        read_after(text)


async def test_note_titles_are_returned_only_on_request(tmp_path: Path) -> None:
    """By default, entries have no title, as specified. `lithos audit` requests titles.

    The title of a deleted note is None.
    """
    async with auditing(tmp_path, rows=3) as (_, front):
        assert all("title" not in entry for entry in await entries(front, "titles=no"))
        titled = await entries(front, "titles=true")
        assert [(entry["doc_id"], entry["title"]) for entry in titled] == [
            ("doc2", None), ("doc1", None), ("doc0", "The first"),
        ]  # fmt: skip
