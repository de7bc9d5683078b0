"""Models that several vaults share: loading, removal with the last vault, and separate query caches."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import trio

from lithos.search.embedding.embedder import EmbedderUnavailable
from lithos.search.embedding.transformer import DIMS, Transformer
from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL, TransformerModel
from lithos.search.indexing.models import Models


class Model:
    """A fake loaded model."""


class Loader:
    """A loader that counts its loads. A test can make the first load fail."""

    def __init__(self, *, fails_first: bool = False) -> None:
        self.loads: list[Any] = []
        self._fails = fails_first

    def __call__(self, what: Any) -> Any:
        self.loads.append(what)
        if self._fails:
            self._fails = False
            raise EmbedderUnavailable(str(what), "not now")
        return Model()


async def test_three_concurrent_loads_share_one_model() -> None:
    models, loader, held = Models(), Loader(), list[Any]()
    everyone_asks = threading.Barrier(3)

    def ask() -> None:
        everyone_asks.wait(10)
        held.append(models.static(loader, "builtin"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(trio.to_thread.run_sync, ask)
    assert loader.loads == ["builtin"]
    assert len(held) == 3
    assert len(set(map(id, held))) == 1
    assert models.static(loader, "another") is not held[0]


def test_unused_model_is_dropped() -> None:
    models, loader = Models(), Loader()
    models.static(loader, "former")
    models.static(loader, "former")
    assert loader.loads == ["former", "former"]


def test_failed_load_is_repeated_by_the_next_caller() -> None:
    models, loader = Models(), Loader(fails_first=True)
    with pytest.raises(EmbedderUnavailable, match="not now"):
        models.static(loader, "builtin")
    assert models.static(loader, "builtin") is not None


class Words:
    """A fake tokenizer."""

    def encode(self, text: str) -> Words:
        self.ids = [len(text)]
        return self


class Session:
    """A fake session of onnxruntime that counts its computations."""

    runs = 0

    def run(self, _names: Any, given: Any) -> Any:
        self.runs += 1
        return [np.ones((len(given["input_ids"]), DIMS), np.float32)]


def test_vaults_share_a_transformer_but_not_its_query_cache() -> None:
    models, session, loads = Models(), Session(), list[tuple[int, str]]()

    def load(threads: int, model: TransformerModel) -> Transformer:
        loads.append((threads, model.title))
        return Transformer(Words(), session)

    here, there = (models.transformer(load, 1, ENGLISH) for _ in range(2))
    assert loads == [(1, "english")]
    for _ in range(2):
        here.encode_query("What does the lease say?")
    assert session.runs == 1
    there.encode_query("What does the lease say?")  # The second vault computes the query again.
    assert session.runs == 2
    models.transformer(load, 2, ENGLISH)
    models.transformer(load, 2, MULTILINGUAL)
    assert loads == [(1, "english"), (2, "english"), (2, "multilingual")]
