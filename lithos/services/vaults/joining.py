"""The indexes and catalogues of several vaults as one, for the hybrid ranking.

As in distributed search: first how frequent the words of a query are in all vaults together, then the words
and the meaning of each by that one measure. `Hybrid` ranks what they find as if one vault had found it.
What a vault cannot do is kept, with the reason, and the others answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self

import trio
from attrs import define, field, frozen

from lithos.actors.indexing.ports import Asked
from lithos.actors.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.catalogue.note_graph import NAMESAKES
from lithos.core.errors import SearchBackendFailed
from lithos.core.learning.frequencies import Counts, Term
from lithos.core.learning.joining import Keys, onto_scale
from lithos.core.learning.lead import Covered
from lithos.core.text.query import Node
from lithos.services.search.graph_search import Nearest
from lithos.services.search.hybrid import Hybrid, backend_failure
from lithos.services.search.search import Search
from lithos.services.services import Services
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.chunk_rows import VectorHit
from lithos.stores.indexes.embedder import EmbedderIdentity
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.fulltext_schema import Filters

FULLTEXT: Final = "fulltext"
SEMANTIC: Final = "semantic"
_BUILDING: Final = "the semantic index is still being built"


@frozen(eq=False)
class Part:
    """What a joint ranking asks of one vault; `place` is its own in all keys."""

    place: int
    name: str
    search: Search
    catalogue: Catalogue
    semantic: SemanticBackend
    words: FulltextIndex
    nearest: Nearest

    @classmethod
    def of(cls, place: int, name: str, services: Services) -> Self:
        """The part of a vault."""
        words, semantic = services.actors.stores.fulltext, services.semantic
        nearest = Nearest(services.catalogue, semantic)
        return cls(place, name, services.search, services.catalogue, semantic, words, nearest)


@define
class Troubles:
    """What vaults could not do: by name the backends that failed, and why."""

    by_vault: dict[str, dict[str, str]] = field(factory=dict)

    def note(self, vault: str, backend: str, reason: object) -> None:
        """Keep why a backend of a vault failed; the first reason stays."""
        self.by_vault.setdefault(vault, {}).setdefault(backend, str(reason))

    def of(self, backend: str) -> str:
        """What is wrong with a backend, by vault, in one text."""
        reasons = [
            f"{name}: {failed[backend]}"
            for name, failed in sorted(self.by_vault.items())
            if backend in failed
        ]
        return "; ".join(reasons)


@frozen(eq=False)
class JointWords:
    """Full-text indexes as one; `WordsPort`."""

    _parts: Sequence[Part]
    _keys: Keys
    _troubles: Troubles

    def search(self, node: Node, limit: int, filters: Filters) -> list[tuple[int, float]]:
        """(key, BM25 with common frequencies) of the best notes. Raises `IndexFailed` when none can tell."""
        counted = self._count(self._parts[0].words.terms_in(node))
        common = Counts.together(counted.values())
        legs: dict[int, Sequence[tuple[int, float]]] = {}
        for part in self._parts:
            if part.place in counted:
                try:
                    legs[part.place] = part.words.search(node, limit, filters, common)
                except IndexFailed as failure:
                    self._troubles.note(part.name, FULLTEXT, failure)
        if not legs:
            raise IndexFailed(self._troubles.of(FULLTEXT))
        return self._keys.join(legs, limit)

    def _count(self, terms: Iterable[Term]) -> dict[int, Counts]:
        """What each vault has, by place. Raises `IndexFailed` when none can tell."""
        terms = tuple(terms)
        counted: dict[int, Counts] = {}
        for part in self._parts:
            try:
                counted[part.place] = part.words.count(terms)
            except IndexFailed as failure:
                self._troubles.note(part.name, FULLTEXT, failure)
        if not counted:
            raise IndexFailed(self._troubles.of(FULLTEXT))
        return counted

    def content_stems(self, text: str) -> list[str]:
        """The stems of a query without function words: the same in every vault."""
        return self._parts[0].words.content_stems(text)

    def idf(self, stems: Iterable[str]) -> dict[str, float]:
        """Inverse document frequencies over all vaults. Raises `IndexFailed` when none can tell."""
        terms = {stem: ("text", stem) for stem in stems}
        common = Counts.together(self._count(terms.values()).values())
        return {stem: common.idf(term) for stem, term in terms.items()}

    def idf_of_unknown(self) -> float:
        """The inverse document frequency of a stem that no vault has. Raises `IndexFailed`."""
        return self.idf([""])[""]

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> Mapping[int, Covered]:
        """How notes have the stems of a query, by key."""
        return {
            self._keys.of(place, serial): covered
            for place, own in self._keys.by_place(serials).items()
            for serial, covered in self._parts[place].words.coverage(idf, own).items()
        }

    def terms(self, text: str) -> frozenset[str]:
        """The index terms of a text: the same in every vault."""
        return self._parts[0].words.terms(text)


@frozen(eq=False)
class JointAsked:
    """A query under way in several vaults."""

    _asked: Mapping[int, Asked]
    _models: Mapping[int, EmbedderIdentity]
    _parts: Sequence[Part]
    _keys: Keys
    _troubles: Troubles
    _most: int
    is_accurate: bool

    async def hits(self) -> list[VectorHit]:
        """The nearest notes of all, by key, best first. Raises `IndexFailed` when no vault answers."""
        found: dict[int, list[VectorHit]] = {}

        async def take(place: int, asked: Asked) -> None:
            try:
                found[place] = await asked.hits()
            except (SemanticUnavailable, IndexFailed) as failure:
                self._troubles.note(self._parts[place].name, SEMANTIC, failure)

        async with trio.open_nursery() as nursery:
            for place, asked in self._asked.items():
                nursery.start_soon(take, place, asked)
        for place in found:
            if not self._parts[place].semantic.is_answering:
                self._troubles.note(self._parts[place].name, SEMANTIC, _BUILDING)
        if not found:
            raise IndexFailed(self._troubles.of(SEMANTIC))
        return self._join(found)

    def _join(self, found: Mapping[int, list[VectorHit]]) -> list[VectorHit]:
        """The best of all, by the scale of the first model that found something."""
        by_model: dict[EmbedderIdentity, list[VectorHit]] = {}
        for place in sorted(found):
            own = by_model.setdefault(self._models[place], [])
            own += [hit._replace(serial=self._keys.of(place, hit.serial)) for hit in found[place]]
        groups = [hits for hits in by_model.values() if hits]
        joined = groups[0] if groups else []
        scale = [hit.similarity for hit in joined]
        for hits in groups[1:]:
            similarities = onto_scale([hit.similarity for hit in hits], scale)
            joined = joined + [
                hit._replace(similarity=similarity)
                for hit, similarity in zip(hits, similarities, strict=True)
            ]
        return sorted(joined, key=lambda hit: (-hit.similarity, hit.serial))[: self._most]


@frozen(eq=False)
class JointNearest:
    """Vectors as one; `NearestPort` and `MeaningPort`. All vaults answer in one tier.

    That is the static one while a vault with notes has no other: similarities of two tiers do not compare.
    """

    _parts: Sequence[Part]
    _keys: Keys
    _troubles: Troubles

    @property
    def is_answering(self) -> bool:
        """Whether a vault has vectors of all its notes; the others are among the troubles."""
        return any(part.semantic.is_answering for part in self._parts)

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> JointAsked:
        """Start a nearest-neighbour query in every vault that can answer one."""
        models: dict[int, EmbedderIdentity] = {}
        for part in self._parts:
            try:
                models[part.place] = part.semantic.static_identity()
            except SemanticUnavailable as failure:
                self._troubles.note(part.name, SEMANTIC, failure)
        answering = [part for part in self._parts if part.place in models]
        filled = [part for part in answering if part.semantic.chunk_count] or answering
        is_accurate = bool(filled) and all(part.semantic.is_accurate for part in filled)
        asked = {
            part.place: (part.nearest.ask if is_accurate else part.nearest.ask_static)(
                query, filters, notes, threshold
            )
            for part in answering
        }
        if is_accurate:  # one transformer, whatever the static model is
            models = dict.fromkeys(models, models[filled[0].place])
        return JointAsked(asked, models, self._parts, self._keys, self._troubles, notes, is_accurate)


@frozen(eq=False)
class JointTurns:
    """The turns of conversations in several vaults; `TurnsPort`."""

    _parts: Sequence[Part]
    _keys: Keys

    def __len__(self) -> int:
        return sum(len(part.catalogue.turns) for part in self._parts)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._keys.serial(key) in self._of(key).turns

    def beside(self, serial: int) -> list[int]:
        """The keys of the turns just before and after one."""
        place = self._keys.place(serial)
        beside = self._of(serial).turns.beside(self._keys.serial(serial))
        return [self._keys.of(place, other) for other in beside]

    def _of(self, key: int) -> Catalogue:
        return self._parts[self._keys.place(key)].catalogue


@frozen(eq=False)
class JointNotes:
    """Catalogues as one; `NotesPort`."""

    _parts: Sequence[Part]
    _keys: Keys
    turns: JointTurns

    def named_in(self, text: str) -> dict[int, str]:
        """The notes that a text names; a name that more than eight of all vaults share names none."""
        named = {
            self._keys.of(part.place, serial): name
            for part in self._parts
            for serial, name in part.catalogue.named_in(text).items()
        }
        shared = Counter(name.casefold() for name in named.values())
        return {key: name for key, name in named.items() if shared[name.casefold()] <= NAMESAKES}

    def at(self, key: int) -> Entry | None:
        """A note, if it still exists."""
        return self._parts[self._keys.place(key)].catalogue.at_serial(self._keys.serial(key))


@frozen(eq=False)
class Joined:
    """Several vaults as one; the first decides all settings. Used for one answer, which has its troubles."""

    parts: Sequence[Part]
    keys: Keys
    words: JointWords
    nearest: JointNearest
    notes: JointNotes
    hybrid: Hybrid
    troubles: Troubles

    @classmethod
    def of(cls, vaults: Mapping[str, Services], troubles: Troubles) -> Self:
        """Join these vaults, at least one."""
        keys = Keys(len(vaults))
        parts = [Part.of(place, name, each) for place, (name, each) in enumerate(vaults.items())]
        words, nearest = JointWords(parts, keys, troubles), JointNearest(parts, keys, troubles)
        notes = JointNotes(parts, keys, JointTurns(parts, keys))
        settings = next(iter(vaults.values())).config.search
        hybrid = Hybrid(nearest, nearest, words, settings, notes)
        return cls(parts, keys, words, nearest, notes, hybrid, troubles)

    @classmethod
    async def reach(cls, vaults: Mapping[str, Services], *, words: bool = True, meaning: bool = True) -> Self:
        """Join vaults whose indexes are current. A search by meaning alone waits for the vectors as well.

        Raises `SearchBackendFailed` when that leaves none.
        """
        troubles = Troubles()
        reached: dict[str, Services] = {}

        async def wait(name: str, services: Services) -> None:
            await services.actors.visibility.reach(words=words, meaning=meaning)
            if not words:
                try:
                    await services.search.wait_for_meaning()
                except SearchBackendFailed as failure:
                    troubles.note(name, SEMANTIC, failure.message)
                    return
            reached[name] = services

        async with trio.open_nursery() as nursery:
            for name, services in vaults.items():
                nursery.start_soon(wait, name, services)
        if not reached:
            raise backend_failure(troubles.of(SEMANTIC))
        return cls.of({name: vaults[name] for name in vaults if name in reached}, troubles)
