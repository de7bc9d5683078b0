"""Search modes: full text, semantic (embeddings), hybrid (both fused) and graph (docs/spec/search.md §4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter

import attrs
from attrs import field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.agents import SEARCH_RESULT, AuditRow
from lithos.kernel.actors.start_progress import Opening, wait_telling
from lithos.kernel.actors.threads import NoteThreads
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import IndexFailed, InvalidInput, InvalidMode, SearchBackendFailed
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.projects import WORKING_IN
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.texts import NoteTexts, Snippets
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.indexer import Visibility
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.ranking.match_strength import CANDIDATES, TENTH, WEAK, MatchVerdict, Strength, judge
from lithos.search.service.explaining import Explained, Explainer, Explanation, meaning_alone, words_alone
from lithos.search.service.graph_search import Centrality, GraphSearch, Nearest
from lithos.search.service.hybrid import (
    LEG_NOTES,
    LEG_SHARE,
    LONGEST_QUERY,
    NOTHING_RANKED,
    Hybrid,
    HybridRanking,
    backend_failure,
)
from lithos.search.service.recent_queries import RecentQueries
from lithos.search.service.similarity_floors import LEAST_OF_MODEL, judged_part, least_similarity
from lithos.search.settings import SearchConfig
from lithos.text.chunk import ChunkSizes
from lithos.text.query import Node, QuerySyntaxError, begin_last, parse_query, words_of
from lithos.text.snippet import Terms

MODES = ("hybrid", "fulltext", "semantic", "graph")
#: Number of hybrid hits that a graph search without seeds starts from.
SEEDS = 5
WARMING_WAIT = 10.0
#: Maximum number of rows that a search may skip. Each ranking fetches five notes per skipped row.
DEEPEST_OFFSET = 1_000


@frozen(kw_only=True)
class SearchRequest:
    """The query, mode, filters and limit of a search.

    If `threshold` is None, the configured threshold applies.

    Only graph searches use seeds and a depth. Without seeds, a graph search starts from the notes that match
    the query. `offset` is the number of rows to skip. `prefix` means that the last word may be the beginning
    of a word in modes that use full text. `room` is the maximum number of JSON characters of all rows, or 0
    for no limit.
    """

    query: str
    mode: str = "hybrid"
    limit: int = 10
    threshold: float | None = None
    filters: Filters = field(factory=Filters)
    agent_id: str | None = None
    seed_ids: tuple[str, ...] = ()
    graph_depth: int = 2
    offset: int = 0
    prefix: bool = False
    room: int = 0


@frozen
class Hit:
    """A search result. `similarity` is set only in mode semantic. `judged` is set unless an index failed."""

    entry: Entry
    score: float
    snippet: str
    similarity: float | None = None
    judged: MatchVerdict | None = None

    @property
    def match(self) -> Strength | None:
        """Return the match strength."""
        return None if self.judged is None else self.judged.match


@frozen
class SearchAnswer:
    """The results, best first.

    `failed` names unavailable indexes (partial results). `message` gives the reason.
    """

    hits: tuple[Hit, ...]
    failed: tuple[str, ...] = ()
    message: str = ""


@frozen
class RankedRows:
    """A ranking from which result rows are made.

    The ranking has note serials by descending score and can be iterated only once.
    """

    scores: Iterable[tuple[int, float]]
    chunks: Sequence[VectorHit]
    terms: Terms = Terms()
    failed: tuple[str, ...] = ()
    message: str = ""
    #: Match strength by serial. Rows without an entry are weak. If the mapping is None, no row has a match
    #: strength.
    matches: Mapping[int, MatchVerdict] | None = None
    #: The ranking of a hybrid search. Its `scores` are the same iterator.
    ranking: HybridRanking | None = None


_serial_and_similarity = itemgetter(0, 2)  # fields of a `VectorHit`
_NOTHING = RankedRows((), ())


class Search:
    """The search service.

    The service queries the indexes, ranks notes and cuts snippets. It writes only the access log.
    """

    def __init__(
        self,
        fulltext: FulltextIndex,
        settings: SearchConfig,
        catalogue: Catalogue,
        semantic: SemanticBackend,
        coordinator: Coordinator,
        clock: Clock,
        sizes: ChunkSizes,
        visibility: Visibility,
        opening: Opening,
        threads: NoteThreads,
        texts: NoteTexts,
    ) -> None:
        self._catalogue = catalogue
        self._snippets = Snippets(texts, sizes)
        self._semantic = semantic
        self._nearest = Nearest(catalogue, semantic)
        self._fulltext = fulltext
        self.hybrid = Hybrid(self._nearest, semantic, fulltext, settings, catalogue)
        #: Graph searches, which follow the links of notes.
        self.graph_search = GraphSearch(catalogue, self._nearest, threads)
        self.asked = RecentQueries()
        self._explainer = Explainer(fulltext, self.hybrid)
        self._visibility = visibility
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock
        self._known = opening.known

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Return the best matches. Raises `InvalidMode`, `InvalidInput` and `SearchBackendFailed`."""
        answer = await self.look(request)
        if request.mode == "graph" or request.query.strip():
            self.record(request, answer.hits)
        return answer

    async def look(self, request: SearchRequest) -> SearchAnswer:
        """Search without recording the caller and the results in the access log."""
        _, limit = self.bounds(request)
        ranked = await self.rank(request)
        hits = await self.present(request, ranked, limit)
        return SearchAnswer(hits, ranked.failed, ranked.message)

    async def rank(self, request: SearchRequest) -> RankedRows:
        """Rank notes without reading their texts, at least up to the end of the requested page."""
        threshold, limit = self.bounds(request)
        await self._visibility.reach(words=request.mode != "semantic", meaning=request.mode != "fulltext")
        if request.mode == "graph":
            return await self._rank_graph(request, threshold)
        if not request.query.strip():
            return _NOTHING
        if request.mode == "fulltext":
            return self._rank_fulltext(request, limit)
        if request.mode == "semantic":
            return await self._rank_semantic(request, limit, threshold)
        return await self._rank_hybrid(request, limit, threshold)

    async def explain(self, request: SearchRequest, note_ids: Iterable[str]) -> Explained:
        """Explain the ranks of the given notes in `search`. The search runs again but is not recorded.

        The scores equal those of `search` if no note changed in the meantime. Notes that the search does not
        find are left out. Raises the errors of `search`.
        """
        entries = [entry for note_id in note_ids if (entry := self._catalogue.get(note_id)) is not None]
        wanted = {entry.serial: entry.note.id for entry in entries}
        threshold, limit = self.bounds(request)
        await self._visibility.reach()
        ranking = await self._rank_pages(request, limit, threshold)
        terms = ranking.terms
        told = self._explainer.tell_hybrid(request.query, request.filters, ranking, wanted)
        if request.mode == "graph":
            seeds = await self._seeds(request, threshold)
            walks = await self.graph_search.explain(
                request.query, seeds, request.graph_depth, request.filters, threshold
            )
            terms = self.hybrid.terms(request.query[:LONGEST_QUERY])
            told = {
                serial: attrs.evolve(told.get(serial, Explanation()), walk=walks[note_id])
                for serial, note_id in wanted.items()
                if note_id in walks
            }
        elif request.mode == "fulltext":
            node, _ = parse(request.query)
            if node is None:
                return Explained()
            node = begin_last(node) or node if request.prefix else node
            found = self._fulltext.search(node, max(TENTH, request.offset + limit), request.filters)
            terms, features = self.hybrid.word_features(words_of(node), found)
            words = self._explainer.tell_words(node, request.filters, found, wanted)
            told = words_alone(told, words, self.hybrid.word_chances(features or {}))
        elif request.mode == "semantic":
            scores, least = judged_part(list(map(_serial_and_similarity, ranking.chunks)), threshold)
            terms, known = self.hybrid.meaning_features(request.query, scores, least)
            chances = self.hybrid.meaning_chances(known or {}, calibration=ranking.calibration)
            told = meaning_alone(told, chances)
        return Explained(by_id={wanted[serial]: each for serial, each in told.items()}, terms=terms)

    async def _rank_pages(self, request: SearchRequest, limit: int, threshold: float) -> HybridRanking:
        """Return the hybrid ranking from which pages are taken.

        All pages up to 200 rows share one ranking.
        """
        if not request.query.strip():
            return NOTHING_RANKED
        last = request.offset + limit
        wanted = limit if last <= LEG_NOTES else last
        return await self.hybrid.rank(
            request.query,
            request.filters,
            wanted,
            threshold,
            is_typed=request.prefix,
            fills=request.threshold is None and self._fills and not request.prefix,
        )

    async def _seeds(self, request: SearchRequest, threshold: float) -> Sequence[str]:
        """Return the ids of the notes that a graph search starts from."""
        if request.seed_ids or not request.query.strip():
            return request.seed_ids
        start = await self._rank_hybrid(request, SEEDS, threshold)
        return tuple(islice(self._ids(start.scores), SEEDS))

    @property
    def centrality(self) -> Centrality:
        """Return the PageRank of the notes."""
        return self.graph_search.centrality

    @property
    def threshold(self) -> float:
        """Return the default minimum similarity of the semantic ranking in a hybrid search."""
        return least_similarity(self._settings.semantic_threshold)

    @property
    def _fills(self) -> bool:
        """Return whether notes below the default minimum similarity may count."""
        return self._settings.semantic_threshold is None

    def threshold_of(self, request: SearchRequest) -> float:
        """Return the minimum similarity.

        A requested value takes precedence over the configured value. If neither applies, the default of the
        mode and model is used.
        """
        if request.threshold is not None:
            return request.threshold
        if request.mode != "semantic" or self._settings.semantic_threshold is not None:
            return self.threshold
        return LEAST_OF_MODEL[self._semantic.calibration]

    async def rank_hybrid(self, query: str, filters: Filters, wanted: int) -> HybridRanking:
        """Return all notes of a hybrid search, best first. Each ranking provides at most `wanted` notes.

        The order is that of `search`. The caller must have waited for the indexes. Raises
        `SearchBackendFailed`.
        """
        if not query.strip():
            return NOTHING_RANKED
        return await self.hybrid.rank(query, filters, wanted // LEG_SHARE, self.threshold, fills=self._fills)

    async def match_text(self, query: str) -> tuple[list[Entry], str]:
        """Return all notes that match a full-text query, best first.

        The second value of the result is the syntax error if there is one.

        Raises `SearchBackendFailed`.
        """
        node, message = parse(query)
        if node is None:
            return [], message
        await self._visibility.reach(meaning=False)
        try:
            found = self._fulltext.search_all(node, Filters())
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        entries = (self._catalogue.at_serial(serial) for serial, _ in found)
        return [entry for entry in entries if entry is not None], ""

    async def reach_all(self) -> None:
        """Wait until both indexes contain all earlier writes."""
        await self._visibility.reach()

    def bounds(self, request: SearchRequest) -> tuple[float, int]:
        """Return the minimum similarity and the row limit of a search.

        Raises `InvalidMode` and `InvalidInput`.
        """
        if request.mode not in MODES:
            raise InvalidMode(f"Unknown search mode {request.mode!r}. Use one of: {', '.join(MODES)}.")
        threshold = self.threshold_of(request)
        if not 0 <= threshold <= 1:
            raise InvalidInput(f"threshold must be between 0 and 1, not {threshold}.")
        if request.offset > DEEPEST_OFFSET:
            raise InvalidInput(
                f"offset must be at most {DEEPEST_OFFSET:,}, not {request.offset}. Use a more "
                "precise query, or list the notes with lithos_list."
            )
        return threshold, max(1, min(request.limit, self._settings.max_results))

    def _rank_fulltext(self, request: SearchRequest, limit: int) -> RankedRows:
        node, message = parse(request.query)
        if node is None:
            return RankedRows((), (), message=message)
        node = begin_last(node) or node if request.prefix else node
        try:
            found = self._fulltext.search(node, max(TENTH, request.offset + limit), request.filters)
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        terms, matches = self.hybrid.judge_words(words_of(node), found)
        return RankedRows(found, (), terms, matches=matches)

    async def _rank_semantic(self, request: SearchRequest, limit: int, threshold: float) -> RankedRows:
        await self.wait_for_meaning()
        # A hybrid search uses the same number. Both modes therefore rate matches from the same rows.
        wanted = max(LEG_NOTES, request.offset + limit)
        asked = self._nearest.ask(request.query, request.filters, wanted, threshold)
        try:
            found = await asked.hits()
        except (SemanticUnavailable, IndexFailed) as failure:
            raise backend_failure(str(failure)) from failure
        scores = list(map(_serial_and_similarity, found))
        likely, least = judged_part(scores, threshold)
        terms, matches = self.hybrid.judge_meaning(
            request.query, likely, least, calibration=asked.calibration
        )
        return RankedRows(scores, found, terms, matches=matches)

    async def _judge(self, query: str, filters: Filters, threshold: float) -> HybridRanking:
        """Return the hybrid ranking from which the matches of every search mode are rated."""
        if not query.strip():
            return NOTHING_RANKED
        try:
            return await self.hybrid.rank(query, filters, CANDIDATES, threshold)
        except SearchBackendFailed as failure:
            return attrs.evolve(NOTHING_RANKED, failed=("fulltext", "semantic"), message=failure.message)

    async def wait_for_meaning(self) -> None:
        """Wait some seconds until the semantic index is complete. Raises `SearchBackendFailed`."""
        try:
            await wait_telling(self._semantic.decided, WARMING_WAIT, "The semantic index is being built.")
            await self._semantic.ready(within=0)
        except SemanticUnavailable as failure:
            raise backend_failure(str(failure)) from failure

    async def _rank_hybrid(self, request: SearchRequest, limit: int, threshold: float) -> RankedRows:
        ranking = await self._rank_pages(request, limit, threshold)
        matches = self.judged(ranking)
        return RankedRows(
            ranking.scores, ranking.chunks, ranking.terms, ranking.failed, ranking.message, matches, ranking
        )

    def judged(self, ranking: HybridRanking) -> Mapping[int, MatchVerdict] | None:
        """Return the match strength of the first rows by serial.

        All other rows are weak. The result is None if an index failed.
        """
        if ranking.failed:
            return None
        return judge(self.hybrid.chances(ranking), self.hybrid.confidence(ranking))

    async def _rank_graph(self, request: SearchRequest, threshold: float) -> RankedRows:
        start = _NOTHING
        if not request.seed_ids and request.query.strip():
            start = await self._rank_hybrid(request, SEEDS, threshold)
        seeds = request.seed_ids or tuple(islice(self._ids(start.scores), SEEDS))
        scores = await self.graph_search.search(
            request.query, seeds, request.graph_depth, request.filters, threshold
        )
        terms = self.hybrid.terms(request.query[:LONGEST_QUERY])
        matches, chunks = start.matches, start.chunks
        if request.seed_ids and scores:
            judged = await self._judge(request.query, request.filters, threshold)
            matches, chunks = self.judged(judged), judged.chunks
        return RankedRows(scores, chunks, terms, start.failed, start.message, matches)

    def _ids(self, scores: Iterable[tuple[int, float]]) -> Iterator[str]:
        """Return the ids of the ranked notes that still exist."""
        entries = (self._catalogue.at_serial(serial) for serial, _ in scores)
        return (entry.note.id for entry in entries if entry is not None)

    async def present(self, request: SearchRequest, ranked: RankedRows, limit: int) -> tuple[Hit, ...]:
        """Read the texts of the best notes, from the request's offset on, and cut snippets from them."""
        present = (
            (entry, score)
            for serial, score in ranked.scores
            if (entry := self._catalogue.at_serial(serial)) is not None
        )
        chosen = list(islice(present, request.offset, request.offset + limit))
        wanted = {entry.serial for entry, _ in chosen}
        chunks = {hit.serial: hit.chunk for hit in ranked.chunks if hit.serial in wanted}
        semantic_only, matches = request.mode == "semantic", ranked.matches
        entries = [entry for entry, _ in chosen]
        snippets = await self._snippets.cut(
            entries, ranked.terms, chunks, of_chunks=semantic_only, room=request.room
        )
        return tuple(
            Hit(
                entry,
                score,
                snippet or "",
                score if semantic_only else None,
                None if matches is None else matches.get(entry.serial, WEAK),
            )
            for (entry, score), snippet in zip(chosen, snippets, strict=True)
            # Before the first scan ends, a note that cannot be read may have been deleted.
            if snippet is not None or self._known.is_set()
        )

    def record(self, request: SearchRequest, hits: Sequence[Hit]) -> None:
        """Record the caller and the results in the access log."""
        now = self._clock()
        agent, project = request.agent_id or UNKNOWN_AGENT, WORKING_IN.get()
        self.asked.record(agent, now, request.query)
        self._coordinator.record_access(
            [AuditRow(agent, hit.entry.note.id, SEARCH_RESULT, now, project) for hit in hits]
        )


def parse(query: str) -> tuple[Node | None, str]:
    """Parse a full-text query. Return None and the syntax error if the query is invalid."""
    if len(query) > LONGEST_QUERY:
        return None, (
            f"The query has {len(query):,} characters, but full-text queries may have at most "
            f"{LONGEST_QUERY:,}. Nothing was searched. Use fewer words, or search with "
            "mode=hybrid."
        )
    try:
        return parse_query(query), ""
    except QuerySyntaxError as error:
        return None, (
            f"The query does not parse at character {error.position + 1}: {error}. Nothing was "
            'searched. Put text with special characters into "double quotes", or search for the '
            "plain words with mode=hybrid."
        )
