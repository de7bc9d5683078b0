"""The embedding models of a process: each is loaded once for all vaults, and is read-only.

A model stays while a vault holds it: a vault drops its former model once its notes are embedded again.
A failed load is not remembered, so that a later attempt loads again.
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
    """Objects in use, by their load key; thread-safe: a caller waits while another one loads."""

    _held: WeakValueDictionary[Hashable, M] = field(factory=WeakValueDictionary, init=False)
    _loading: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self, key: Hashable, load: Callable[[], M]) -> M:
        """Return the object in use for `key`, else the result of `load`; raises its errors. Blocks."""
        with self._loading:
            model = self._held.get(key)
            if model is None:
                model = self._held[key] = load()
            return model


@define(eq=False)
class Models:
    """The models of all vaults of a process; a server of one vault has its own."""

    #: The one thread that embeds with a transformer: vaults take turns in it, a few chunks each.
    embedding: BackgroundThread = field(factory=lambda: BackgroundThread("lithos-accurate"))
    _static: Loaded[Embedder] = field(factory=Loaded, init=False)
    _transformers: Loaded[Transformer] = field(factory=Loaded, init=False)

    def static(self, load: Callable[[str], Embedder], name: str) -> Embedder:
        """Return the static model of this name; raises the errors of `load`."""
        return self._static.get(name, lambda: load(name))

    def transformer(self, load: Callable[[int], Transformer], threads: int) -> Transformer:
        """Return the transformer, computing with `threads` threads; its memory of queries is the caller's.

        Raises the errors of `load`.
        """
        return self._transformers.get(threads, lambda: load(threads)).forgetful()
