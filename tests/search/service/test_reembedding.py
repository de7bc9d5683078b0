"""Change of the embedding model: the former model answers while notes are embedded again (behaviour 185)."""

from __future__ import annotations

import functools
import json
import shutil
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

from lithos.search.embedding.builtin_model import BUILTIN, FORMER, FORMER_SHA256
from lithos.search.embedding.embedder import Embedder, EmbedderIdentity, EmbedderUnavailable, Matrix
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.ports import EmbeddedNotes, VectorPort
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.service.search import Search, SearchRequest
from lithos.search.settings import SearchConfig
from lithos.server.service_state import ServerState
from lithos.text.chunk import ChunkSizes
from tests.fakes import make_entry, make_upsert
from tests.servers import Lithos, load_once, put_note, refusal, serving

DIMS = 32


class WordModel:
    """A model in which each word has its own direction. A closed `gate` delays the embedding of notes."""

    def __init__(self, name: str, *, changed: bool = False) -> None:
        self.identity = EmbedderIdentity(name, DIMS, "int8", ("cd" if changed else "ab") * 32)
        self.gate = threading.Event()
        self.gate.set()
        #: Set when the embedding of notes begins. Only note chunks count: queries are single texts without a
        #: colon.
        self.begun = threading.Event()
        self.embedded = 0

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        rows = np.array([self._encode(text) for text in texts], np.float32).reshape(-1, DIMS)
        if any(":" in text or "\n" in text for text in texts):
            self.begun.set()
            assert self.gate.wait(30)
        self.embedded += len(texts)
        return rows

    def _encode(self, text: str) -> Any:
        row = np.zeros(DIMS)
        for word in text.lower().split():
            seed = zlib.crc32(f"{self.identity.name} {word}".encode())
            row += np.random.default_rng(seed).normal(size=DIMS)
        return row / (np.linalg.norm(row) or 1)


class Models:
    """The models that `load_embedder` finds by name."""

    def __init__(self, *models: WordModel) -> None:
        self.by_name = {model.identity.name: model for model in models}

    def load(self, name: str) -> Embedder:
        if name not in self.by_name:
            raise EmbedderUnavailable(name, "there is no such model")
        return self.by_name[name]


def stored(data: Path) -> str:
    manifest = json.loads((data / ".usearch" / "manifest.json").read_text())
    return str(manifest["embedder"]["name"])


def configured(name: str) -> dict[str, Any]:
    return {"search": SearchConfig(embedding_model=name, semantic_threshold=0.4)}


async def nearest(lithos: Lithos, query: str) -> tuple[str, float]:
    """Return the path and similarity of the semantically nearest note."""
    answer = await lithos.call("lithos_search", query=query, mode="semantic")
    row = answer["results"][0]
    return row["path"], row["similarity"]


async def model_state(lithos: Lithos) -> str:
    _, health = await lithos.server.get(ServerState).report()
    return str(health["components"]["embedding_model"]["state"])


async def make_vault(data: Path, models: Models) -> None:
    """Create three notes, embedded with model `a`."""
    for number, words in enumerate(("red fox", "blue whale", "green frog")):
        put_note(data, f"n{number}.md", f"# Note{number}\n\n{words}\n")
    async with serving(data, load=models.load, **configured("a")) as lithos:
        assert (await nearest(lithos, "Note1 blue whale"))[0] == "n1.md"
    assert stored(data) == "a"


async def test_former_model_answers_until_new_vectors_are_complete(tmp_path: Path) -> None:
    """behaviour 185"""
    a, b = WordModel("a"), WordModel("b")
    models = Models(a, b)
    await make_vault(tmp_path, models)
    b.gate.clear()
    async with serving(tmp_path, load=models.load, settled=False, **configured("b")) as lithos:
        await trio.to_thread.run_sync(functools.partial(b.begun.wait, 30))
        before = a.embedded
        path, similarity = await nearest(lithos, "Note1 blue whale")
        assert path == "n1.md"
        assert similarity > 0.95, "the vectors of two models must not be compared"
        assert await model_state(lithos) == "reembedding"
        assert stored(tmp_path) == "a"
        assert a.embedded == before + 1, "only the query, nothing that the former model knows"
        b.gate.set()
        await lithos.server.searchable()
        assert stored(tmp_path) == "b"
        path, similarity = await nearest(lithos, "Note1 blue whale")
        assert path == "n1.md"
        assert similarity > 0.95
        assert await model_state(lithos) == "ok"
    assert not (tmp_path / ".usearch" / "next").exists()


def test_writes_during_reembedding_reach_both_models(
    tmp_path: Path,
) -> None:
    """behaviours 185 and 194."""
    a, b = WordModel("a"), WordModel("b")
    port = VectorPort(ChunkSizes(500))
    port.target = EmbeddedNotes(a, VectorIndex.open(tmp_path / "a", a.identity))
    port.apply([make_upsert(make_entry(1), "blue whale"), make_upsert(make_entry(2), "red fox")], [])
    former = port.former = port.target
    port.target = EmbeddedNotes(b, VectorIndex.open(tmp_path / "b", b.identity))
    port.apply([make_upsert(make_entry(1), "blue whale"), make_upsert(make_entry(3), "green frog")], [2])
    assert (a.embedded, b.embedded) == (3, 2)
    assert former.vectors.stamps().keys() == port.target.vectors.stamps().keys() == {1, 3}
    assert port.vectors is former.vectors


async def test_semantic_search_reports_reembedding_without_the_former_model(tmp_path: Path) -> None:
    """behaviour 185"""
    b = WordModel("b")
    await make_vault(tmp_path, Models(WordModel("a")))
    b.gate.clear()
    async with serving(tmp_path, load=Models(b).load, settled=False, **configured("b")) as lithos:
        await trio.to_thread.run_sync(functools.partial(b.begun.wait, 30))
        answer = await lithos.call("lithos_search", query="blue whale", mode="semantic")
        assert "being embedded again" in refusal(answer, "search_backend_error")
        answer = await lithos.call("lithos_search", query="blue whale")
        assert [row["path"] for row in answer["results"]] == ["n1.md"]
        assert answer["failed_backends"] == ["semantic"]
        b.gate.set()
        await lithos.server.searchable()
        assert (await nearest(lithos, "Note1 blue whale"))[0] == "n1.md"


async def test_model_with_changed_files_counts_as_another_model(tmp_path: Path) -> None:
    """behaviour 185"""
    await make_vault(tmp_path, Models(WordModel("a")))
    changed = WordModel("a", changed=True)
    async with serving(tmp_path, load=Models(changed).load, **configured("a")) as lithos:
        assert changed.embedded == 3
        assert (await nearest(lithos, "Note1 blue whale"))[0] == "n1.md"


async def test_interrupted_reembedding_keeps_old_vectors_and_resumes(
    tmp_path: Path,
) -> None:
    """behaviour 185: the server recovers from a crash during reembedding."""
    a, b = WordModel("a"), WordModel("b")
    models = Models(a, b)
    await make_vault(tmp_path, models)
    b.gate.clear()
    crashed = tmp_path.parent / f"{tmp_path.name}-crashed"
    async with serving(tmp_path, load=models.load, settled=False, **configured("b")) as lithos:
        await trio.to_thread.run_sync(functools.partial(b.begun.wait, 30))
        shutil.copytree(tmp_path, crashed)  # Simulate the state after a kill.
        b.gate.set()
        request = SearchRequest(query="Note1 blue whale", mode="semantic")
        assert (await lithos.server.get(Search).search(request)).hits
    for data in (tmp_path, crashed):
        again = WordModel("b")
        async with serving(data, load=Models(a, again).load, **configured("b")) as lithos:
            assert stored(data) == "b"
            assert (await nearest(lithos, "Note2 green frog"))[0] == "n2.md"
            assert lithos.server.get(SemanticBackend).chunk_count == 3


async def test_return_to_the_former_model_needs_no_embedding(tmp_path: Path) -> None:
    a, b = WordModel("a"), WordModel("b")
    await make_vault(tmp_path, Models(a))
    b.gate.clear()
    crashed = tmp_path.parent / f"{tmp_path.name}-crashed"
    async with serving(tmp_path, load=Models(a, b).load, settled=False, **configured("b")):
        await trio.to_thread.run_sync(functools.partial(b.begun.wait, 30))
        shutil.copytree(tmp_path, crashed)  # Simulate the state after a kill.
        b.gate.set()
    a.embedded = 0
    async with serving(crashed, load=Models(a).load, **configured("a")) as lithos:
        assert (await nearest(lithos, "Note1 blue whale"))[0] == "n1.md"
        assert a.embedded == 1, "only the query"
    assert stored(crashed) == "a"
    assert not (crashed / ".usearch" / "next").exists()


class Delayed:
    """A model that embeds no notes until `gate` is open."""

    def __init__(self, model: Embedder) -> None:
        self.identity = model.identity
        self._model = model
        self.gate = threading.Event()

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        if len(texts) > 1:
            assert self.gate.wait(30)
        return self._model.encode(texts, one_core=one_core)


async def test_old_vault_is_searchable_while_it_gets_the_multilingual_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 321: the former built-in model answers, although its files are not in the package."""
    put_note(tmp_path, "cat.md", "# Cat\n\nA cat sleeps on the sofa.\n")
    put_note(tmp_path, "кот.md", "# Кот\n\nКошка спит на диване.\n")
    async with serving(tmp_path, load=lambda _: load_once(FORMER)) as lithos:
        assert (await nearest(lithos, "sleeping cat"))[0] == "cat.md"
    manifest = json.loads((tmp_path / ".usearch" / "manifest.json").read_text())
    assert manifest["embedder"]["model_sha256"] == FORMER_SHA256
    following = Delayed(load_once(BUILTIN))

    def load(name: str) -> Embedder:
        return following if name == BUILTIN else load_once(name)

    saving, save = (threading.Event(), threading.Event()), VectorIndex.save

    def save_slowly(index: VectorIndex) -> None:
        saving[0].set()
        assert saving[1].wait(30)
        save(index)

    monkeypatch.setattr(VectorIndex, "save", save_slowly)
    async with serving(tmp_path, load=load, settled=False) as lithos:
        assert (await nearest(lithos, "sleeping cat"))[0] == "cat.md"
        assert await model_state(lithos) == "reembedding"
        following.gate.set()
        await trio.to_thread.run_sync(functools.partial(saving[0].wait, 30))
        assert (await nearest(lithos, "где спит кот"))[0] == "кот.md", "the new vectors are being saved"
        saving[1].set()
        await lithos.server.searchable()
        assert await model_state(lithos) == "ok"
        assert (await nearest(lithos, "где спит кот"))[0] == "кот.md"
