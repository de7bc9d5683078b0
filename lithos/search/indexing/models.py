"""The embedding models of a process. Each model is loaded once for all vaults and is read-only.

A model stays loaded while a vault uses it. A vault releases its former model once its notes are embedded with
a new one. Failed loads are not cached, so a later attempt loads the model again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from attrs import define, field

from lithos.kernel.actors.threads import BackgroundThread
from lithos.search.embedding.embedder import Embedder
from lithos.search.embedding.transformer import Transformer
from lithos.search.embedding.transformer_models import TransformerModel

M = TypeVar("M")


@define(eq=False)
class Loaded(Generic[M]):
    """Shared objects by key. Thread-safe: if one caller loads an object, other callers of that key wait."""

    _held: WeakValueDictionary[Hashable, M] = field(factory=WeakValueDictionary, init=False)
    _loading: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self, key: Hashable, load: Callable[[], M]) -> M:
        """Return the loaded object for `key`. If no object is loaded, call `load` and return its result.

        Raises the errors of `load`. Blocks.
        """
        with self._loading:
            model = self._held.get(key)
            if model is None:
                model = self._held[key] = load()
            return model


@define(eq=False)
class Models:
    """The models of all vaults of a process. A server with a single vault has its own instance."""

    #: The only thread that embeds with a transformer. Vaults take turns, with a few chunks each.
    embedding: BackgroundThread = field(factory=lambda: BackgroundThread("lithos-accurate"))
    _static: Loaded[Embedder] = field(factory=Loaded, init=False)
    _transformers: Loaded[Transformer] = field(factory=Loaded, init=False)

    def static(self, load: Callable[[str], Embedder], name: str) -> Embedder:
        """Return the static model of this name. Raises the errors of `load`."""
        return self._static.get(name, lambda: load(name))

    def transformer(
        self, load: Callable[[int, TransformerModel], Transformer], threads: int, model: TransformerModel
    ) -> Transformer:
        """Return the transformer, which uses `threads` threads. Each caller gets a separate query cache.

        Raises the errors of `load`.
        """
        return self._transformers.get((model.name, threads), lambda: load(threads, model)).forgetful()
