"""What was acknowledged is found, although full text follows a little later; or the answer says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import lithos.actors.actors
import lithos.actors.indexing.indexer
import lithos.actors.writing.publisher
from lithos.actors.indexing.ports import VectorPort
from lithos.stores.indexes.embedder import EmbedderUnavailable
from lithos.stores.indexes.fulltext import FulltextIndex
from tests.servers import Lithos, refusal, serving

QUERY = "striped zebra"
TEXT = "The zebra is a striped animal."
#: Longer than any test: what does not wait for a search, or the end, would be seen.
FOREVER = 600.0


@contextmanager
def held_back(owner: type, method: str) -> Iterator[threading.Event]:
    """Calls of a method wait until the event is set, or the block ends."""
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


def no_model(name: str) -> NoReturn:
    raise EmbedderUnavailable(name, "there is no such model")


async def search(lithos: Lithos, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await lithos.call("lithos_search", query=QUERY, **more)
    return answer


@pytest.fixture
def lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lithos.actors.actors, "FULLTEXT_LINGER", FOREVER)


async def test_a_search_waits_for_the_commit_that_has_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 194"""
    monkeypatch.setattr(lithos.actors.writing.publisher, "PATIENCE", 0.05)
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


async def test_after_two_seconds_the_answer_says_that_full_text_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 194"""
    monkeypatch.setattr(lithos.actors.indexing.indexer, "PATIENCE", 0.05)
    monkeypatch.setattr(lithos.actors.writing.publisher, "PATIENCE", 0.05)
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


async def test_vectors_that_lag_are_waited_for_and_told_of_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 194"""
    monkeypatch.setattr(lithos.actors.indexing.indexer, "PATIENCE", 0.05)
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


async def test_many_writes_are_one_commit_which_a_search_brings_about(
    tmp_path: Path, lingering: None
) -> None:
    """behaviour 194"""
    async with serving(tmp_path) as lithos_:
        stats = lithos_.server.actors.fulltext_indexer.mailbox.stats
        with trio.fail_after(60):
            for number in range(10):
                await lithos_.create(f"Zebra {number}", TEXT)
            assert stats.batches == 0
            assert len((await search(lithos_, mode="fulltext"))["results"]) == 10
        assert stats.batches == 1


async def test_without_a_model_a_write_waits_for_full_text_and_full_text_for_nothing(
    tmp_path: Path, lingering: None
) -> None:
    """behaviours 63, 183"""
    async with serving(tmp_path, load=no_model) as lithos_:
        with trio.fail_after(60):
            await lithos_.create("Zebra", TEXT)
        assert lithos_.server.actors.fulltext_indexer.mailbox.stats.batches == 1


async def test_the_end_of_the_server_commits_what_waits(tmp_path: Path, lingering: None) -> None:
    async with serving(tmp_path) as lithos_:
        for number in range(5):
            await lithos_.create(f"Zebra {number}", TEXT)
        assert lithos_.server.actors.fulltext_indexer.mailbox.stats.batches == 0
        assert len(list((tmp_path / "knowledge").glob("*.md"))) == 5
    index = FulltextIndex.open_sound(tmp_path / ".tantivy")
    assert index.document_count() == 5
    index.close()


async def test_in_a_storm_of_writes_everybody_finds_what_he_wrote(tmp_path: Path) -> None:
    """behaviour 194"""
    modes = ("fulltext", "hybrid", "semantic")

    async def work(lithos_: Lithos, agent: int) -> None:
        for number in range(3):
            token = f"tok{agent}x{number}q"
            note = await lithos_.create(f"Report {agent} {number}", f"The {token} stands in the harbour.")
            mode = modes[number % 3]
            query = token if mode != "semantic" else f"Report {agent} {number} {token} harbour"
            answer = await lithos_.call("lithos_search", query=query, mode=mode, limit=50)
            assert "degraded" not in answer
            assert note in [row["id"] for row in answer["results"]], mode

    async with serving(tmp_path) as lithos_, trio.open_nursery() as nursery:
        for agent in range(8):
            nursery.start_soon(work, lithos_, agent)
