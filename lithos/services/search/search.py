"""Search modes: full text, semantic (embeddings), hybrid (both fused), graph (search spec, section 4).

Also the candidates of a cache lookup with the probability that they answer (section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter

from attrs import field, frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.indexing.indexer import Visibility
from lithos.actors.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.errors import InvalidInput, InvalidMode
from lithos.core.learning.match import CANDIDATES, Strength, strength
from lithos.core.tasks.model import SEARCH_RESULT, UNKNOWN_AGENT, AuditRow
from lithos.core.text.query import Node, QuerySyntaxError, parse_query, query_terms
from lithos.services.notes.texts import NoteTexts, Snippets
from lithos.services.progress import wait_telling
from lithos.services.search.graph_search import GraphSearch, Nearest
from lithos.services.search.hybrid import (
    LEG_SHARE,
    LONGEST_QUERY,
    NOTHING_RANKED,
    Hybrid,
    HybridRanking,
    SearchSettings,
    backend_failure,
)
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.chunk_rows import VectorHit
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.fulltext_query import Filters

MODES = ("hybrid", "fulltext", "semantic", "graph")
#: Hybrid hits from which a graph search without seeds starts.
SEEDS = 5
WARMING_WAIT = 10.0


@frozen(kw_only=True)
class SearchRequest:
    """The query, mode, filters and limit of one search; `threshold` None means the configured one.

    Only a graph search has seeds and a depth; without seeds it starts from what the query finds.
    """

    query: str
    mode: str = "hybrid"
    limit: int = 10
    threshold: float | None = None
    filters: Filters = field(factory=Filters)
    agent_id: str | None = None
    seed_ids: tuple[str, ...] = ()
    graph_depth: int = 2


@frozen
class Hit:
    """A search result; `similarity` only in mode semantic, `match` when words and meaning were searched."""

    entry: Entry
    score: float
    snippet: str
    similarity: float | None = None
    match: Strength | None = None


@frozen
class CachedAnswer:
    """A note that may answer a question, and the probability that it does."""

    entry: Entry
    probability: float


@frozen
class SearchAnswer:
    """The results, best first; `failed` names unavailable backends (partial results), `message` says why."""

    hits: tuple[Hit, ...]
    failed: tuple[str, ...] = ()
    message: str = ""


@frozen
class _Ranked:
    """A ranking: notes by descending score, iterable once; `lexical` are the full-text matches."""

    scores: Iterable[tuple[int, float]]
    chunks: Sequence[VectorHit]
    lexical: Collection[int]
    terms: Sequence[str] = ()
    failed: tuple[str, ...] = ()
    message: str = ""
    #: By serial; empty: the rows say nothing of it.
    matches: Mapping[int, Strength] = field(factory=dict)


_serial_and_similarity = itemgetter(0, 2)  # of a `VectorHit`
_NOTHING = _Ranked((), (), frozenset())


class Search:
    """The search service: queries the indexes, ranks, cuts snippets; writes nothing but the access log."""

    def __init__(
        self,
        catalogue: Catalogue,
        texts: NoteTexts,
        fulltext: FulltextIndex,
        semantic: SemanticBackend,
        visibility: Visibility,
        coordinator: Coordinator,
        settings: SearchSettings,
        clock: Callable[[], datetime],
        reading: Blocking,
    ) -> None:
        self._catalogue = catalogue
        self._snippets = Snippets(texts, settings.sizes)
        self._fulltext = fulltext
        self._semantic = semantic
        self._nearest = Nearest(catalogue, semantic)
        self.hybrid = Hybrid(self._nearest, semantic, fulltext, settings)
        self._graph_search = GraphSearch(catalogue, self._nearest, reading)
        self._visibility = visibility
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """The best matches of one search. Raises `InvalidMode`, `InvalidInput`, `SearchBackendFailed`."""
        if request.mode not in MODES:
            raise InvalidMode(f"There is no search mode {request.mode!r}. Use one of: {', '.join(MODES)}.")
        threshold = self._threshold(request.threshold)
        limit = max(1, min(request.limit, self._settings.max_results))
        await self._visibility.reach(words=request.mode != "semantic", meaning=request.mode != "fulltext")
        if request.mode == "graph":
            ranked = await self._rank_graph(request, threshold)
        elif not request.query.strip():
            return SearchAnswer(())
        elif request.mode == "fulltext":
            ranked = self._rank_fulltext(request, limit)
        elif request.mode == "semantic":
            ranked = await self._rank_semantic(request, limit, threshold)
        else:
            ranked = await self._rank_hybrid(request, limit, threshold)
        hits = await self._present(request, ranked, limit)
        self._record(request, hits)
        return SearchAnswer(hits, ranked.failed, ranked.message)

    @property
    def threshold(self) -> float:
        """The configured least similarity of a semantic match."""
        return self._settings.threshold

    async def rank_hybrid(self, query: str, filters: Filters, wanted: int) -> HybridRanking:
        """Every note that a hybrid search with legs of `wanted` notes finds, best first.

        Exactly the order of `search`; the caller has waited for freshness. Raises `SearchBackendFailed`.
        """
        if not query.strip():
            return NOTHING_RANKED
        return await self.hybrid.rank(query, filters, wanted // LEG_SHARE, self._settings.threshold)

    async def match_text(self, query: str, filters: Filters) -> list[Entry]:
        """Every note that a full-text query matches, best first. Raises `SearchBackendFailed`."""
        node = _parse(query)
        if node is None:
            return []
        await self._visibility.reach(meaning=False)
        try:
            found = self._fulltext.search_all(node, filters)
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        return [entry for serial, _ in found if (entry := self._catalogue.at_serial(serial)) is not None]

    async def find_answers(self, query: str, limit: int, tags: tuple[str, ...]) -> list[CachedAnswer]:
        """The best notes that probably answer a question, best first. Raises `SearchBackendFailed`.

        Only the first three rows of a hybrid search are considered, and no more than `limit`.
        """
        if not query.strip():
            return []
        await self._visibility.reach()
        await self._wait_for_meaning()
        ranking = await self.hybrid.rank(query, Filters(tags=tags), CANDIDATES, self._settings.threshold)
        if ranking.failed:
            raise backend_failure(ranking.message)
        confidence = self.hybrid.confidence(ranking)
        likely = [
            (entry, chance)
            for serial, chance in list(self.hybrid.chances(ranking).items())[:limit]
            if (entry := self._catalogue.at_serial(serial)) is not None
        ]
        return [CachedAnswer(entry, chance) for entry, chance in likely if chance >= confidence]

    def _threshold(self, given: float | None) -> float:
        if given is None:
            return self._settings.threshold
        if not 0 <= given <= 1:
            raise InvalidInput(f"threshold must be between 0 and 1, not {given}.")
        return given

    def _rank_fulltext(self, request: SearchRequest, limit: int) -> _Ranked:
        node = _parse(request.query)
        if node is None:
            return _NOTHING
        try:
            found = self._fulltext.search(node, limit, request.filters)
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        return _Ranked(found, (), dict(found), query_terms(node))

    async def _rank_semantic(self, request: SearchRequest, limit: int, threshold: float) -> _Ranked:
        await self._wait_for_meaning()
        try:
            found = await self._nearest.search(request.query, request.filters, limit, threshold)
        except (SemanticUnavailable, IndexFailed) as failure:
            raise backend_failure(str(failure)) from failure
        return _Ranked(list(map(_serial_and_similarity, found)), found, frozenset())

    async def _wait_for_meaning(self) -> None:
        """Wait for the semantic index, some seconds; raises `SearchBackendFailed`."""
        try:
            await wait_telling(self._semantic.decided, WARMING_WAIT, "The semantic index is being built.")
            await self._semantic.ready(within=0)
        except SemanticUnavailable as failure:
            raise backend_failure(str(failure)) from failure

    async def _rank_hybrid(self, request: SearchRequest, limit: int, threshold: float) -> _Ranked:
        ranking = await self.hybrid.rank(request.query, request.filters, limit, threshold)
        return _Ranked(
            ranking.scores,
            ranking.chunks,
            ranking.lexical,
            ranking.terms,
            ranking.failed,
            ranking.message,
            self.strengths(ranking),
        )

    def strengths(self, ranking: HybridRanking) -> Mapping[int, Strength]:
        """Match strength by serial of the first rows; all others are weak. Empty while a leg is missing."""
        confidence = self.hybrid.confidence(ranking)
        return {
            serial: strength(chance, confidence) for serial, chance in self.hybrid.chances(ranking).items()
        }

    async def _rank_graph(self, request: SearchRequest, threshold: float) -> _Ranked:
        start = _NOTHING
        if not request.seed_ids and request.query.strip():
            start = await self._rank_hybrid(request, SEEDS, threshold)
        seeds = request.seed_ids or tuple(islice(self._ids(start.scores), SEEDS))
        scores = await self._graph_search.search(
            request.query, seeds, request.graph_depth, request.filters, threshold
        )
        terms = query_terms(request.query[:LONGEST_QUERY])
        found = frozenset(serial for serial, _ in scores)
        return _Ranked(scores, (), found, terms, start.failed, start.message)

    def _ids(self, scores: Iterable[tuple[int, float]]) -> Iterator[str]:
        """The notes of a ranking that still exist."""
        entries = (self._catalogue.at_serial(serial) for serial, _ in scores)
        return (entry.note.id for entry in entries if entry is not None)

    async def _present(self, request: SearchRequest, ranked: _Ranked, limit: int) -> tuple[Hit, ...]:
        """Read the texts of the best notes and cut their snippets."""
        present = (
            (entry, score)
            for serial, score in ranked.scores
            if (entry := self._catalogue.at_serial(serial)) is not None
        )
        chosen = list(islice(present, limit))
        by_meaning = {entry.serial for entry, _ in chosen if entry.serial not in ranked.lexical}
        chunks = {hit.serial: hit.chunk for hit in ranked.chunks if hit.serial in by_meaning}
        snippets = await self._snippets.cut([entry for entry, _ in chosen], ranked.terms, chunks)
        semantic_only, has_matches = request.mode == "semantic", bool(ranked.matches)
        return tuple(
            Hit(
                entry,
                score,
                snippet or "",
                score if semantic_only else None,
                ranked.matches.get(entry.serial, "weak") if has_matches else None,
            )
            for (entry, score), snippet in zip(chosen, snippets, strict=True)
        )

    def _record(self, request: SearchRequest, hits: Sequence[Hit]) -> None:
        now = self._clock()
        agent = request.agent_id or UNKNOWN_AGENT
        self._coordinator.record_access(
            [AuditRow(agent, hit.entry.note.id, SEARCH_RESULT, now) for hit in hits]
        )


def _parse(query: str) -> Node | None:
    """A query that does not parse matches nothing."""
    if len(query) > LONGEST_QUERY:
        return None
    try:
        return parse_query(query)
    except QuerySyntaxError:
        return None
