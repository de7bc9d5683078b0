"""The embedding models of a process: each model is loaded once for all vaults and is read-only.

A model stays loaded while a vault uses it. A vault releases its former model once its notes are embedded
again. A failed load is not remembered, so a later attempt loads the model again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from attrs import define, field

from lithos.kernel.actors.threads import BackgroundThread
from lithos.search.index.embedder import Embedder
from lithos.search.index.transformer import Transformer

M = TypeVar("M")


@define(eq=False)
class Loaded(Generic[M]):
    """Objects in use by load key. Thread-safe: a caller waits while another caller loads."""

    _held: WeakValueDictionary[Hashable, M] = field(factory=WeakValueDictionary, init=False)
    _loading: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self, key: Hashable, load: Callable[[], M]) -> M:
        """Return the object in use for `key`, or otherwise the result of `load`.

        Raises the errors of `load`. Blocks.
        """
        with self._loading:
            model = self._held.get(key)
            if model is None:
                model = self._held[key] = load()
            return model


@define(eq=False)
class Models:
    """The models of all vaults of a process. A server with a single vault has its own."""

    #: The only thread that embeds with a transformer. Vaults take turns, with a few chunks each.
    embedding: BackgroundThread = field(factory=lambda: BackgroundThread("lithos-accurate"))
    _static: Loaded[Embedder] = field(factory=Loaded, init=False)
    _transformers: Loaded[Transformer] = field(factory=Loaded, init=False)

    def static(self, load: Callable[[str], Embedder], name: str) -> Embedder:
        """Return the static model of this name. Raises the errors of `load`."""
        return self._static.get(name, lambda: load(name))

    def transformer(self, load: Callable[[int], Transformer], threads: int) -> Transformer:
        """Return the transformer, which uses `threads` threads and a separate query cache for each caller.

        Raises the errors of `load`.
        """
        return self._transformers.get(threads, lambda: load(threads)).forgetful()
