"""Substitutes for the embedding model, file notifications and index merges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import lithos.app.server
import lithos.app.stores
import lithos.notes.watching.watcher
import lithos.search.capability
import lithos.search.indexing.accurate_models
from lithos.kernel.databases.open_stores import Stores
from lithos.search.embedding.embedder import EmbedderIdentity
from lithos.search.index.fulltext import FulltextIndex
from tests.simulation.disk import attached
from tests.simulation.hearing import make_listening
from tests.simulation.loop import PROCESS, simulated
from tests.simulation.world import Life, World

DIMS = 32
#: Number of segments at which tantivy begins to merge a full-text index.
MERGING = 8


class Embedder:
    """Fake embedding model. It puts words at random positions in a small space."""

    identity = EmbedderIdentity("simulated", DIMS, "int8", "0")

    def encode(self, texts: Any, *, one_core: bool = False) -> Any:
        rows = np.zeros((len(texts), DIMS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[crc32(word.encode()) % DIMS] += 1.0
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)


@contextmanager
def installed(world: World) -> Iterator[None]:
    """Install the substitutes during the block."""
    opened = lithos.app.stores.open_stores

    def open_stores(*given: Any) -> Stores:
        stores = opened(*given)
        life = PROCESS.get()
        assert isinstance(life, Life)
        life.stores = stores
        return stores

    commit = FulltextIndex._commit

    def commit_and_merge(self: FulltextIndex, upserts: Any, removals: Any) -> None:
        commit(self, upserts, removals)
        if self._searcher.num_segments < MERGING:
            return
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.wait_merging_threads()  # otherwise a thread would influence the order of hits
        self._index.reload()
        self._searcher = self._index.searcher()

    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(lithos.search.capability, "load_embedder", lambda _: Embedder())
        patch.setattr(lithos.search.indexing.accurate_models, "is_installed", lambda: False)
        patch.setattr(lithos.notes.watching.watcher, "FolderWatch", make_listening(world.plan.hearing))
        patch.setattr(lithos.app.server, "open_stores", open_stores)
        patch.setattr(FulltextIndex, "_commit", commit_and_merge)
        stack.enter_context(simulated(world.clock, world.chance, world.workers))
        stack.enter_context(attached(world.disk, world.workers))
        yield
