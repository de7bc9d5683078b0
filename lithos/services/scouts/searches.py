"""Scouts that ask the search indexes: by meaning and by words."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import trio

from lithos.actors.catalogue import Catalogue
from lithos.actors.semantic import SemanticBackend, SemanticUnavailable
from lithos.core.query import plain_words
from lithos.core.rerank import Candidate
from lithos.services.scouts.contract import Ask, Scout
from lithos.services.slices import slices
from lithos.stores.fulltext import FulltextIndex
from lithos.stores.vectors import VectorHit

#: How many results are asked for in search of one.
GENEROSITY: Final = 3
_NEAR: Final = "is close in meaning"
_MATCHING: Final = "matches the words of the query"


class _Found(NamedTuple):
    """One hit of an index, which knows notes by their numbers."""

    serial: int
    score: float
    chunk: int | None = None


_Hit: TypeAlias = tuple[int, float] | _Found


def _as_found(hit: VectorHit) -> _Found:
    return _Found(hit.serial, hit.similarity, hit.chunk)


class SearchScouts:
    """Both raise what their index raises."""

    def __init__(
        self, catalogue: Catalogue, fulltext: FulltextIndex, semantic: SemanticBackend, threshold: float
    ) -> None:
        self._catalogue = catalogue
        self._fulltext = fulltext
        self._semantic = semantic
        self._threshold = threshold

    def scouts(self) -> tuple[Scout, ...]:
        """In table order."""
        return Scout("vector", self.find_by_meaning), Scout("lexical", self.find_by_words)

    async def find_by_meaning(self, ask: Ask) -> Sequence[Candidate]:
        """The nearest `limit` notes that pass, of 3 x `limit` or as many as it takes.

        Nothing while not every note has a vector: an answer from some of them would be silently wrong.
        """
        if not ask.query.strip():
            return ()
        if ask.admitted is not None:
            serials = [entry.serial for entry in ask.admitted]
            vector = self._semantic.encode(ask.query)
            self._require_all()
            if vector is None:
                return ()
            hits = self._semantic.search_among(vector, serials, ask.limit, self._threshold)
            return self._candidates(ask, map(_as_found, hits), _NEAR)

        async def search(asked: int) -> list[_Found]:
            looking = self._semantic.ask(ask.query, asked, self._threshold)
            self._require_all()
            return list(map(_as_found, await looking.hits()))

        return await self._widen(search, ask, ask.limit, _NEAR)

    def _require_all(self) -> None:
        if not self._semantic.is_answering:
            raise SemanticUnavailable("the semantic index is still being built")

    async def find_by_words(self, ask: Ask) -> Sequence[Candidate]:
        """The best 3 x `limit` notes that pass, by BM25; nothing in the query is syntax."""
        node = plain_words(ask.words)
        if node is None:
            return ()

        async def search(asked: int) -> Sequence[tuple[int, float]]:
            return self._fulltext.search(node, asked, ask.gate.filters)

        return await self._widen(search, ask, GENEROSITY * ask.limit, _MATCHING)

    async def _widen(
        self, search: Callable[[int], Awaitable[Sequence[_Hit]]], ask: Ask, wanted: int, reason: str
    ) -> list[Candidate]:
        """Ask for more until enough notes pass or there are no more: hidden notes take nobody's place."""
        allowed, asked = ask.admitted_serials, GENEROSITY * ask.limit
        if allowed is not None:
            wanted = min(wanted, len(allowed))
        while wanted:
            hits = await search(asked)
            likely = hits if allowed is None else [hit for hit in hits if hit[0] in allowed]
            passing: list[Candidate] = []
            async for some in slices(likely):
                passing += self._candidates(ask, itertools.starmap(_Found, some), reason)
            if len(passing) >= wanted or len(hits) < asked:
                return passing[:wanted]
            asked *= 4
            await trio.lowlevel.checkpoint()
        return []

    def _candidates(self, ask: Ask, found: Iterable[_Found], reason: str) -> list[Candidate]:
        entries = ((hit, self._catalogue.at_serial(hit.serial)) for hit in found)
        return [
            Candidate(entry.note.id, hit.score, reason, hit.chunk)
            for hit, entry in entries
            if entry is not None and ask.gate.passes(entry)
        ]
