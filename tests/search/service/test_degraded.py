"""Degraded search: functions that work even if a search index or the embedding model fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio

import lithos.search.indexing.indexer
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.values.errors import IndexFailed
from lithos.kernel.values.events import NOTE_CREATED
from lithos.notes.writing.actor_writer import Writer
from lithos.search.embedding.embedder import EmbedderUnavailable, load_embedder
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.indexer import FulltextIndexer, VectorIndexer
from lithos.server.service_state import ServerState
from tests.fakes import subscribed
from tests.servers import Lithos, refusal, serving

QUERY = "striped zebra"
TEXT = "The zebra is a striped animal."


def _fail(*_: Any, **__: Any) -> NoReturn:
    raise IndexFailed("the disk is on fire")


def _burn(*_: Any, **__: Any) -> NoReturn:
    raise OSError("the disk is on fire")


@contextmanager
def failing(index: type, *methods: str) -> Iterator[None]:
    """Make the methods of every index of this class fail."""
    with pytest.MonkeyPatch.context() as patch:
        for method in methods:
            patch.setattr(index, method, _burn if method == "_commit" else _fail)
        yield


def no_model(name: str) -> NoReturn:
    raise EmbedderUnavailable(name, "there is no such model")


async def search(lithos: Lithos, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await lithos.call("lithos_search", query=QUERY, **more)
    return answer


@pytest.mark.parametrize("broken", ["fulltext", "semantic"])
async def test_hybrid_search_answers_from_the_working_backend(tmp_path: Path, broken: str) -> None:
    """behaviour 60"""
    index = FulltextIndex if broken == "fulltext" else VectorIndex
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", TEXT, tags=["t"])
        ways = ("search", "search_all") if broken == "fulltext" else ("search_together", "search_among")
        with failing(index, *ways):
            for filters in ({}, {"tags": ["t"]}):
                answer = await search(lithos, **filters)
                assert list(answer) == ["results", "degraded", "failed_backends", "message"]
                assert [row["id"] for row in answer["results"]] == [note]
                assert (answer["degraded"], answer["failed_backends"]) == (True, [broken])
                assert "the disk is on fire" in answer["message"]
            assert "the disk is on fire" in refusal(await search(lithos, mode=broken), "search_backend_error")
            other = "semantic" if broken == "fulltext" else "fulltext"
            assert len((await search(lithos, mode=other))["results"]) == 1
        assert list(await search(lithos)) == ["results"]


async def test_search_is_refused_when_both_backends_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 70, 73"""
    async with serving(tmp_path) as lithos:
        await lithos.create("Zebra", TEXT, source_url="https://e.org")
        vectors = failing(VectorIndex, "search_together", "search_among")
        with failing(FulltextIndex, "search", "search_all"), vectors:
            refusal(await search(lithos), "search_backend_error")
            refusal(await lithos.call("lithos_list", content_query="zebra"), "search_backend_error")
            refusal(await lithos.call("lithos_cache_lookup", query=QUERY), "search_backend_error")
            assert (await lithos.call("lithos_cache_lookup", query=QUERY, source_url="https://e.org"))["hit"]
            assert await lithos.listed(title_contains="zeb") == ["Zebra"]
        assert await lithos.audit() == []
        # If an engine cannot read its files, the answer is degraded.
        await lithos.create("Alpha", "alpha words")

        def fail(*_: object, **__: object) -> None:
            raise ValueError("io error while reading a segment")

        monkeypatch.setattr("lithos.search.index.fulltext.best_hits", fail)
        answer = await lithos.call("lithos_search", query="alpha words")
        assert [row["title"] for row in answer["results"]] == ["Alpha"]
        assert answer["failed_backends"] == ["fulltext"]
        assert "io error" in answer["message"]
        refusal(await lithos.call("lithos_search", query="alpha", mode="fulltext"), "search_backend_error")
        # A stopping server refuses new writes.
        lithos.server.get(Writer).mailbox.close()
        answer = await lithos.call("lithos_write", title="T", content="x", agent="a")
        assert "stopping" in refusal(answer, "internal_error")


async def test_write_that_no_index_accepts_is_stored_and_announced_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 63"""
    monkeypatch.setattr(lithos.search.indexing.indexer, "REPAIR_DELAY", 0.01)
    async with serving(tmp_path) as lithos_:
        with subscribed(lithos_.server.get(Broadcaster)) as listener:
            with failing(FulltextIndex, "apply"), failing(VectorIndex, "apply"):
                answer = await lithos_.call("lithos_write", title="Zebra", content=TEXT, agent="a")
                assert "stored" in refusal(answer, "internal_error")
                assert list(answer)[3:] == ["id", "path", "version"]
                assert (answer["path"], answer["version"]) == ("zebra.md", 1)
                assert lithos_.events() == []
                assert (await lithos_.read(answer["id"]))["content"] == TEXT
                _, health = await lithos_.server.get(ServerState).report()
                assert health["components"]["index"]["status"] == "degraded"
            event = await listener.events.receive()
        assert (event.draft.type, event.draft.payload["id"]) == (NOTE_CREATED, answer["id"])
        assert [row["id"] for row in (await search(lithos_, mode="fulltext"))["results"]] == [answer["id"]]
        assert [kind for kind, _ in lithos_.events()] == [NOTE_CREATED]


async def test_only_semantic_search_fails_without_a_model(tmp_path: Path) -> None:
    """behaviour 183"""
    async with serving(tmp_path, load=no_model) as lithos:
        note = await lithos.create("Zebra", TEXT, source_url="https://e.org")
        status, health = await lithos.server.get(ServerState).report()
        model = health["components"]["embedding_model"]
        assert (status, health["status"], model["status"]) == (200, "degraded", "degraded")
        assert "there is no such model" in model["error"]
        answer = await search(lithos)
        assert [row["id"] for row in answer["results"]] == [note]
        assert (answer["degraded"], answer["failed_backends"]) == (True, ["semantic"])
        assert "there is no such model" in answer["message"]
        assert list(await search(lithos, mode="fulltext")) == ["results"]
        assert "there is no such model" in refusal(
            await search(lithos, mode="semantic"), "search_backend_error"
        )
        refusal(await lithos.call("lithos_cache_lookup", query=QUERY), "search_backend_error")
        assert (await lithos.call("lithos_cache_lookup", query=QUERY, source_url="https://e.org"))["hit"]
        stats = await lithos.call("lithos_stats")
        assert (stats["chunks"], stats["vector_last_updated"]) == (0, None)
        await lithos.call("lithos_delete", id=note, agent="a")
    async with serving(tmp_path) as lithos:
        assert (await search(lithos, mode="semantic"))["results"] == []


async def test_notes_written_while_the_model_loads_are_embedded(tmp_path: Path) -> None:
    """behaviour 194"""
    released = trio.Event()

    def load_late(name: str) -> Any:
        trio.from_thread.run(released.wait)
        return load_embedder(name)

    async with serving(tmp_path, load=load_late, settled=False) as lithos:
        note = await lithos.create("Zebra", TEXT)
        answer = await search(lithos)
        assert [row["id"] for row in answer["results"]] == [note]
        assert answer["failed_backends"] == ["semantic"]
        released.set()
        assert [row["id"] for row in (await search(lithos, mode="semantic"))["results"]] == [note]


async def test_index_is_reported_failed_until_it_has_the_missing_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 60, 63, even if later batches succeed."""
    monkeypatch.setattr(lithos.search.indexing.indexer, "REPAIR_DELAY", 0.01)
    async with serving(tmp_path) as lithos_:
        note = await lithos_.create("Other", "before")
        with failing(FulltextIndex, "_commit"):
            await lithos_.create("Zebra", TEXT)
            answer = await search(lithos_)
            assert answer["failed_backends"] == ["fulltext"]
            assert "the disk is on fire" in answer["message"]
            refusal(await search(lithos_, mode="fulltext"), "search_backend_error")
            refusal(await lithos_.call("lithos_list", content_query="zebra"), "search_backend_error")
        await lithos_.server.get(FulltextIndexer).converged()
        assert await lithos_.found(QUERY, mode="fulltext") == ["Zebra"]
        kinds = [kind for kind, _ in lithos_.events()]
        assert kinds == [NOTE_CREATED] * 2
        with failing(VectorIndex, "apply"):
            await lithos_.write("Other", TEXT, id=note)
            assert (await search(lithos_))["failed_backends"] == ["semantic"]
            refusal(await search(lithos_, mode="semantic"), "search_backend_error")
        await lithos_.server.get(VectorIndexer).converged()
        assert set(await lithos_.found(QUERY)) == {"Zebra", "Other"}
