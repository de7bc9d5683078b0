"""Freshness: searches find acknowledged notes even if full text lags slightly, or report the lag."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import lithos.notes.writing.actor_publisher
import lithos.search.capability
import lithos.search.indexing.indexer
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.indexing.ports import VectorPort
from tests.search.service.test_degraded import QUERY, TEXT, search
from tests.servers import refusal, serving

#: Linger time in seconds. It is longer than any test, so a change that waits in vain makes the test fail.
FOREVER = 600.0


@contextmanager
def held_back(owner: type, method: str) -> Iterator[threading.Event]:
    """Block the calls of a method until the returned event is set or the block ends."""
    released, real = threading.Event(), getattr(owner, method)

    def wait(*arguments: Any) -> Any:
        assert released.wait(60)
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, wait)
        try:
            yield released
        finally:
            released.set()


@pytest.fixture
def lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lithos.search.capability, "FULLTEXT_LINGER", FOREVER)


async def test_search_waits_for_the_commit_of_acknowledged_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 194"""
    monkeypatch.setattr(lithos.notes.writing.actor_publisher, "PATIENCE", 0.05)
    asked: dict[str, dict[str, Any]] = {
        "lithos_search": {"query": QUERY, "mode": "fulltext"},
        "lithos_list": {"content_query": "zebra"},
        "lithos_retrieve": {"query": "zebra"},
        "lithos_stats": {},
    }
    async with serving(tmp_path) as lithos_:
        for count, (tool, given) in enumerate([*asked.items(), ("lithos_search", {"query": QUERY})], 1):
            with held_back(FulltextIndex, "_commit") as released:
                note = await lithos_.create(f"Zebra {tool} {count}", TEXT)
                answers: list[Any] = []

                async def look(tool: str = tool, given: Any = given, answers: list[Any] = answers) -> None:
                    answers.append(await lithos_.call(tool, **given))

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(look)
                    await wait_all_tasks_blocked(0.02)
                    assert answers == []
                    released.set()
            (answer,) = answers
            if tool == "lithos_stats":
                assert (answer["tantivy_doc_count"], answer["index_drift_detected"]) == (count, False)
                continue
            found = {row["id"]: row for row in answer["items" if tool == "lithos_list" else "results"]}
            assert note in found
            assert not answer.get("degraded")
            if tool == "lithos_retrieve":
                assert "scout_lexical" in found[note]["scouts"]


async def test_answer_reports_lagging_fulltext_after_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 194"""
    monkeypatch.setattr(lithos.search.indexing.indexer, "PATIENCE", 0.05)
    monkeypatch.setattr(lithos.notes.writing.actor_publisher, "PATIENCE", 0.05)
    async with serving(tmp_path) as lithos_:
        old = await lithos_.create("Old zebra", TEXT)
        await search(lithos_)
        with held_back(FulltextIndex, "_commit") as released:
            note = await lithos_.create("Zebra", TEXT)
            answer = await search(lithos_)
            assert {row["id"] for row in answer["results"]} == {old, note}, "meaning has it"
            assert (answer["degraded"], answer["failed_backends"]) == (True, ["fulltext"])
            assert "late" in answer["message"]
            assert "late" in refusal(await search(lithos_, mode="fulltext"), "search_backend_error")
            refusal(await lithos_.call("lithos_list", content_query="zebra"), "search_backend_error")
            answer = await lithos_.call("lithos_retrieve", query=QUERY)
            assert (answer["degraded"], answer["failed_scouts"]) == (True, ["scout_lexical"])
            assert list(await search(lithos_, mode="semantic")) == ["results"]
            released.set()
        with trio.fail_after(60):
            while "degraded" in await search(lithos_):
                await trio.sleep(0.01)
        assert {row["id"] for row in (await search(lithos_, mode="fulltext"))["results"]} == {old, note}


async def test_lagging_vectors_are_awaited_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 194"""
    monkeypatch.setattr(lithos.search.indexing.indexer, "PATIENCE", 0.05)
    async with serving(tmp_path) as lithos_:
        with held_back(VectorPort, "apply") as released:
            note = await lithos_.create("Zebra", TEXT)
            answer = await search(lithos_)
            assert [row["id"] for row in answer["results"]] == [note]
            assert (answer["degraded"], answer["failed_backends"]) == (True, ["semantic"])
            assert "late" in refusal(await search(lithos_, mode="semantic"), "search_backend_error")
            refusal(await lithos_.call("lithos_cache_lookup", query=QUERY), "search_backend_error")
            released.set()
        with trio.fail_after(60):
            while "degraded" in await search(lithos_):
                await trio.sleep(0.01)
        assert [row["id"] for row in (await search(lithos_, mode="semantic"))["results"]] == [note]


async def test_search_commits_many_writes_at_once(tmp_path: Path, lingering: None) -> None:
    """behaviour 194"""
    async with serving(tmp_path) as lithos_:
        stats = lithos_.server.get(FulltextIndexer).mailbox.stats
        with trio.fail_after(60):
            for number in range(10):
                await lithos_.create(f"Zebra {number}", TEXT)
            assert stats.batches == 0
            assert len((await search(lithos_, mode="fulltext"))["results"]) == 10
        assert stats.batches == 1
