"""Search modes: full text, semantic (embeddings), hybrid (both fused), graph (search spec, sections 4 and 5).

Also the relevance filter of cache lookups (`Agreement`). Some vector is always near: in a vault of
documentation every question without an answer has a note above the similarity threshold of a search. A note
that answers also shares the question's words. `bench/quality.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Final, Literal

from attrs import field, frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.indexing.indexer import Visibility
from lithos.actors.indexing.ports import ChunkSizes
from lithos.actors.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.errors import InvalidInput, InvalidMode, SearchBackendFailed
from lithos.core.learning.ranking import blend, reciprocal_rank
from lithos.core.tasks.model import SEARCH_RESULT, UNKNOWN_AGENT, AuditRow
from lithos.core.text.analysis import FUNCTION_WORDS
from lithos.core.text.query import Node, QuerySyntaxError, parse_query, plain_words, query_terms
from lithos.services.notes.texts import NoteTexts, Snippets
from lithos.services.progress import wait_telling
from lithos.services.search.graph_search import GraphSearch, Nearest
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.chunk_rows import VectorHit
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.fulltext_query import Filters

#: Characters of a question whose words are compared.
LONGEST_QUESTION: Final = 4_000


@frozen
class Agreement:
    """Relevance filter of a cache lookup over semantic candidates; `least` is `search.cache_threshold`."""

    _texts: NoteTexts
    _sizes: ChunkSizes
    _fulltext: FulltextIndex
    _least: float

    async def keep(self, question: str, found: Sequence[tuple[Entry, float]]) -> list[Entry]:
        """The candidates (given with their similarity) that are relevant to the question, in the order given.

        The relevance score is the mean of the similarity and of the share of the question's words (stemmed,
        without stop words) that one passage of the note has, the title and its headings included. Of a
        question without words the similarity decides alone. A note that cannot be read is left out.
        """
        asked = self._telling_words(question)

        def agrees(position: int, content: str) -> bool:
            entry, similarity = found[position]
            if not asked:
                return similarity >= self._least
            # Not only the nearest passage, which may be a bare title.
            passages = self._sizes.chunks(entry.note.title, content)
            shared = (len(asked & self._fulltext.terms(passage.embedded)) for passage in passages)
            return (similarity + max(shared, default=0) / len(asked)) / 2 >= self._least

        agreeing = await self._texts.map_contents([entry for entry, _ in found], agrees)
        return [entry for (entry, _), is_kept in zip(found, agreeing, strict=True) if is_kept]

    def _telling_words(self, question: str) -> frozenset[str]:
        """The content words (stemmed, without stop words); all words when there are only stop words."""
        words = self._fulltext.terms(question[:LONGEST_QUESTION])
        return words - self._fulltext.terms(" ".join(FUNCTION_WORDS)) or words


MODES = ("hybrid", "fulltext", "semantic", "graph")
#: The least number of candidates that each ranking of a hybrid search contributes.
LEG_NOTES = 200
#: Share of the semantic score in `blend` by whether the accurate tier answers (search spec, section 5).
SEMANTIC_WEIGHTS: Final = {False: 0.2, True: 0.4}
#: Hybrid hits from which a graph search without seeds starts.
SEEDS = 5
WARMING_WAIT = 10.0
#: Characters of a full-text query. Every pair in a run of unsegmented script is a term of its own, and
#: 300,000 of them stop the event loop for twenty seconds. Meaning still gets the whole query.
LONGEST_QUERY = 4_000


@frozen
class SearchSettings:
    """Section `search` of the configuration."""

    threshold: float
    cache_threshold: float
    max_results: int
    fusion: Literal["blend", "rrf"]
    #: None: by the tier that answers, `SEMANTIC_WEIGHTS`.
    semantic_weight: float | None
    sizes: ChunkSizes


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
    """A search result; `similarity` only in mode semantic."""

    entry: Entry
    score: float
    snippet: str
    similarity: float | None = None


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
    lexical: Container[int]
    terms: Sequence[str] = ()
    failed: tuple[str, ...] = ()
    message: str = ""


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
        freshness: Visibility,
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
        self._agreement = Agreement(texts, settings.sizes, fulltext, settings.cache_threshold)
        self._graph_search = GraphSearch(catalogue, self._nearest, reading)
        self._freshness = freshness
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """The best matches of one search. Raises `InvalidMode`, `InvalidInput`, `SearchBackendFailed`."""
        if request.mode not in MODES:
            raise InvalidMode(f"There is no search mode {request.mode!r}. Use one of: {', '.join(MODES)}.")
        threshold = self._threshold(request.threshold)
        limit = max(1, min(request.limit, self._settings.max_results))
        await self._freshness.reach(words=request.mode != "semantic", meaning=request.mode != "fulltext")
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

    async def match_text(self, query: str, filters: Filters) -> list[Entry]:
        """Every note that a full-text query matches, best first. Raises `SearchBackendFailed`."""
        node = _parse(query)
        if node is None:
            return []
        await self._freshness.reach(meaning=False)
        try:
            found = self._fulltext.search_all(node, filters)
        except IndexFailed as failure:
            raise _backend_failure(str(failure)) from failure
        return [entry for serial, _ in found if (entry := self._catalogue.at_serial(serial)) is not None]

    async def find_answers(self, query: str, limit: int, tags: tuple[str, ...]) -> list[Entry]:
        """Cache lookup: of the nearest `limit` notes the relevant ones. Raises `SearchBackendFailed`."""
        request = SearchRequest(query=query, mode="semantic", filters=Filters(tags=tags))
        if not query.strip():
            return []
        await self._freshness.reach(words=False)
        ranked = await self._rank_semantic(request, limit, self._settings.threshold)
        found = [
            (entry, similarity)
            for serial, similarity in list(ranked.scores)[:limit]
            if (entry := self._catalogue.at_serial(serial)) is not None
        ]
        return await self._agreement.keep(query, found)

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
            raise _backend_failure(str(failure)) from failure
        return _Ranked(found, (), dict(found), query_terms(node))

    async def _rank_semantic(self, request: SearchRequest, limit: int, threshold: float) -> _Ranked:
        try:
            await wait_telling(self._semantic.decided, WARMING_WAIT, "The semantic index is being built.")
            await self._semantic.ready(within=0)
            found = await self._nearest.search(request.query, request.filters, limit, threshold)
        except (SemanticUnavailable, IndexFailed) as failure:
            raise _backend_failure(str(failure)) from failure
        return _Ranked(list(map(_serial_and_similarity, found)), found, frozenset())

    async def _rank_hybrid(self, request: SearchRequest, limit: int, threshold: float) -> _Ranked:
        wanted = max(LEG_NOTES, 5 * limit)
        asked = self._nearest.ask(request.query, request.filters, wanted, threshold)
        failures: dict[str, str] = {}
        lexical: Sequence[tuple[int, float]] = ()
        semantic: Sequence[VectorHit] = ()
        try:
            node = plain_words(request.query[:LONGEST_QUERY])
            lexical = self._fulltext.search(node, wanted, request.filters) if node is not None else ()
        except IndexFailed as failure:
            failures["fulltext"] = str(failure)
        try:
            semantic = await asked.hits()
            if not self._semantic.is_answering:
                failures["semantic"] = "the semantic index is still being built"
        except (SemanticUnavailable, IndexFailed) as failure:
            failures["semantic"] = str(failure)
        reasons = "; ".join(failures.values())
        if len(failures) == 2:
            raise _backend_failure(reasons)
        message = f"Answered without {' and '.join(failures)}: {reasons}" if failures else ""
        return _Ranked(
            self._fuse(lexical, list(map(_serial_and_similarity, semantic)), is_accurate=asked.is_accurate),
            semantic,
            dict(lexical),
            query_terms(request.query[:LONGEST_QUERY]),
            tuple(failures),
            message,
        )

    def _fuse(
        self,
        lexical: Sequence[tuple[int, float]],
        semantic: Sequence[tuple[int, float]],
        *,
        is_accurate: bool,
    ) -> Iterable[tuple[int, float]]:
        if self._settings.fusion == "rrf":
            return reciprocal_rank([[serial for serial, _ in leg] for leg in (lexical, semantic)])
        weight = self._settings.semantic_weight
        return blend(lexical, semantic, SEMANTIC_WEIGHTS[is_accurate] if weight is None else weight)

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
        semantic_only = request.mode == "semantic"
        return tuple(
            Hit(entry, score, snippet or "", score if semantic_only else None)
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


def _backend_failure(reason: str) -> SearchBackendFailed:
    return SearchBackendFailed(f"The search could not be answered: {reason}")
