"""Search in sessions: the hybrid ranking of the notes, over the words and vectors of turns.

`Hybrid` awaits nothing but the vector query, which is answered at once here. The whole ranking therefore runs
in the worker thread that reads the database.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import define, frozen

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.rows_coordination import NoteRows
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.embedder import Embedder
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.semantic import SemanticUnavailable
from lithos.search.ranking.lead_coverage import Covered
from lithos.search.ranking.match_strength import WEAK, judge
from lithos.search.service.hybrid import Hybrid
from lithos.search.service.similarity_floors import least_similarity
from lithos.search.settings import SearchConfig
from lithos.sessions.model.results import SessionHit
from lithos.sessions.rows.reading import SessionReading
from lithos.sessions.rows.words import TurnScope
from lithos.text.chunk import spell_dates
from lithos.text.query import Node, words_of
from lithos.text.snippet import WINDOW, Terms, find_passage

T = TypeVar("T")

#: Number of turns that are ranked per requested hit. Some of them are too old, or repeat another turn.
_SPARE: Final = 3


@frozen
class _Found:
    """A vector query that is already answered."""

    found: Sequence[VectorHit] | SemanticUnavailable
    is_accurate: bool = False

    async def hits(self) -> list[VectorHit]:
        if isinstance(self.found, SemanticUnavailable):
            raise self.found
        return list(self.found)


@define(eq=False)
class _Legs:
    """The words and vectors of the turns in a scope, with the interface that `Hybrid` needs."""

    _store: SessionReading
    _embedder: Embedder | None
    _scope: TurnScope
    _turns: int

    @property
    def is_answering(self) -> bool:
        return self._embedder is not None

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> _Found:
        if self._embedder is None:
            return _Found(SemanticUnavailable("Sessions have no vectors, because there is no model now."))
        vector = self._embedder.encode([spell_dates(query)])[0]
        name = model_name(self._embedder)
        return _Found(self._store.by_meaning(name, vector, threshold, notes, self._scope))

    def search(self, node: Node, limit: int, filters: Filters) -> list[tuple[int, float]]:
        stems = self.content_stems(words_of(node))
        return self._store.by_words(self.idf(stems), self._turns, limit, self._scope)

    def content_stems(self, text: str) -> list[str]:
        return self._store.stemmer.content_stems(text)

    def idf(self, stems: Iterable[str]) -> dict[str, float]:
        try:
            return self._store.idf(stems, self._turns)
        except DatabaseFailed as failure:
            raise IndexFailed(f"The words of sessions cannot be read: {failure}") from failure

    def idf_of_unknown(self) -> float:
        return self._store.idf_of_unknown(self._turns)

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> Mapping[int, Covered]:
        return self._store.coverage(idf, serials)

    def terms(self, text: str) -> frozenset[str]:
        return frozenset(self._store.stemmer.stems(text))


def model_name(embedder: Embedder) -> str:
    """Return the name under which vectors of a model are stored. Other files of a model are another model."""
    identity = embedder.identity
    return f"{identity.name}:{identity.dims}:{identity.model_sha256[:16]}"


@frozen(kw_only=True)
class TurnQuery:
    """A question about sessions."""

    query: str
    limit: int
    scope: TurnScope


@define(eq=False)
class TurnSearch:
    """Searches turns. `search` blocks, and only the thread that reads the database may call it."""

    _settings: SearchConfig
    #: An empty catalogue, because names of notes must not change the ranks of turns.
    _nothing: Catalogue = Catalogue(NoteRecords(NoteRows()))

    def search(self, store: SessionReading, embedder: Embedder | None, query: TurnQuery) -> list[SessionHit]:
        """Return the best turns, best first. Raises `IndexFailed` and `SearchBackendFailed`."""
        turns = store.turn_count()
        if not turns:
            return []
        legs = _Legs(store, embedder, query.scope, turns)
        hybrid = Hybrid(legs, legs, legs, self._settings, self._nothing)
        threshold = least_similarity(self._settings.semantic_threshold)
        ranking = _at_once(hybrid.rank(query.query, Filters(), _SPARE * query.limit, threshold))
        matches = judge(hybrid.chances(ranking), hybrid.confidence(ranking))
        scores = dict(list(ranking.scores)[: _SPARE * query.limit])
        found = store.at(scores)
        hits, seen = list[SessionHit](), set[str]()
        for serial, score in scores.items():
            if serial not in found or len(hits) == query.limit:
                continue
            session, turn = found[serial]
            since = query.scope.since
            is_old = since is not None and (turn.when is None or turn.when < since)
            # Clients copy the turns of a session that is continued or forked.
            if is_old or turn.text in seen:
                continue
            seen.update({turn.text} - {""})
            hits.append(
                SessionHit(
                    id=session.id,
                    number=turn.number,
                    score=score,
                    strength=matches.get(serial, WEAK).match,
                    snippet=_snippet("\n".join((turn.text, *turn.outputs)), ranking.terms),
                    session=session,
                    turn=turn,
                )
            )
        return hits


def _snippet(text: str, terms: Terms) -> str:
    return find_passage(text, terms).text or " ".join(text[: 2 * WINDOW].split())[:WINDOW]


def _at_once(ranking: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        ranking.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    ranking.close()
    raise RuntimeError("The ranking of sessions waited for an answer.")
