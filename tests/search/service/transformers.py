"""A fake transformer, and what a server reports about the accurate tier."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import trio

from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import Matrix
from lithos.search.embedding.transformer_models import DIMS, ENGLISH, TransformerModel
from lithos.server.service_state import ServerState
from tests.servers import Lithos

#: Synonyms that only the accurate model recognises.
SAME = {"kitten": "cat", "puppy": "dog"}


class FakeTransformer:
    """A model with one direction per word meaning. A closed `gate` delays the embedding of notes.

    After `hold_at` texts, embedding waits for `released`.
    """

    def __init__(self, model: TransformerModel = ENGLISH) -> None:
        self.identity = model.identity
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.embedded: list[str] = []
        self.hold_at: int | None = None
        self.released = threading.Event()
        self.failure: str | None = None
        self.threads: list[int] = []

    def load(self, threads: int) -> FakeTransformer:
        self.threads.append(threads)
        return self

    def forgetful(self) -> FakeTransformer:
        return self

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        self.begun.set()
        if self.hold_at is not None and len(self.embedded) >= self.hold_at:
            assert self.released.wait(30)
        assert self.gate.wait(30)
        self._check()
        self.embedded += texts
        return np.array([self._row(text) for text in texts], np.float32).reshape(-1, DIMS)

    def encode_query(self, text: str) -> Matrix:
        self._check()
        return np.asarray(self._row(text), np.float32)

    def _check(self) -> None:
        if self.failure:
            raise IndexFailed(self.failure)

    def _row(self, text: str) -> Any:
        row = np.full(DIMS, 1e-3)
        for word in text.lower().split():
            row += direction(SAME.get(word, word))
        return row / np.linalg.norm(row)


@cache
def direction(word: str) -> Any:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMS)


async def model_health(lithos: Lithos) -> dict[str, Any]:
    _, body = await lithos.server.get(ServerState).report()
    return dict(body["components"]["embedding_model"])


async def until(lithos: Lithos, done: int, tier: str) -> None:
    """Wait until `done` notes are embedded, polling every hundredth of a second."""
    with trio.fail_after(60):
        while True:
            told = await model_health(lithos)
            if (told["done"], told["tier"]) == (done, tier):
                return
            await trio.sleep(0.01)


def stored(data: Path, model: str = "accurate") -> dict[str, Any]:
    told: dict[str, Any] = json.loads((data / ".usearch" / model / "manifest.json").read_text())
    return told
