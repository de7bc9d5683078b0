"""One search over several vaults, ranked, cut and paged as one (docs/spec/vaults.md §2)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final

import trio
from attrs import evolve, field, frozen

from lithos.catalogue.catalogue import Entry
from lithos.core.errors import LithosError, SearchBackendFailed
from lithos.core.learning.joining import best_of_all
from lithos.core.learning.match import CANDIDATES, TENTH, Judged, judge
from lithos.core.text.query import begin_last, words_of
from lithos.core.text.snippet import Terms
from lithos.services.search.hybrid import LEG_NOTES, LONGEST_QUERY, HybridRanking, backend_failure
from lithos.services.search.least import judged_part
from lithos.services.search.search import SEEDS, Hit, RankedRows, SearchRequest, parse
from lithos.services.services import Services
from lithos.services.vaults.joining import FULLTEXT, SEMANTIC, Joined, Part, Troubles
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.chunk_rows import VectorHit

#: The backends that a mode needs; a vault where none of them answers has failed.
_NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "fulltext": frozenset((FULLTEXT,)),
    "semantic": frozenset((SEMANTIC,)),
}
_BOTH: Final = frozenset((FULLTEXT, SEMANTIC))
_serial_and_similarity = itemgetter(0, 2)  # of a `VectorHit`


@frozen
class JointAnswer:
    """Rows of several vaults (name of the vault, hit), best first.

    `failed` has the vaults without an answer, with the reason; `lacking` those that answered without a
    backend (`fulltext`, `semantic`), by name; `message` says what of all this, or why nothing was searched.
    """

    rows: tuple[tuple[str, Hit], ...]
    failed: Mapping[str, str] = field(factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(factory=dict)
    message: str = ""


@frozen
class _JointRows:
    """A ranking by key, iterable once; what `RankedRows` has."""

    scores: Iterable[tuple[int, float]] = ()
    chunks: Sequence[VectorHit] = ()
    terms: Terms = Terms()
    message: str = ""
    matches: Mapping[int, Judged] | None = None


@frozen(eq=False)
class JointSearch:
    """Searches these vaults, at least one, as one; the settings are those of the first."""

    vaults: Mapping[str, Services]

    async def search(self, request: SearchRequest) -> JointAnswer:
        """The best matches of all vaults; each of them keeps a record of its own rows.

        Raises `InvalidMode` and `InvalidInput`, and `SearchBackendFailed` when no vault answers.
        """
        answer = await self.look(request)
        if request.mode == "graph" or request.query.strip():
            for name, services in self.vaults.items():
                if name not in answer.failed:
                    services.search.record(request, [hit for vault, hit in answer.rows if vault == name])
        return answer

    async def look(self, request: SearchRequest) -> JointAnswer:
        """The same without a record of who asked, and what was shown."""
        first = next(iter(self.vaults.values()))
        threshold, limit = first.search.bounds(request)
        if request.mode != "graph" and not request.query.strip():
            return JointAnswer(())
        words, meaning = request.mode != "semantic", request.mode != "fulltext"
        joined = await Joined.reach(self.vaults, words=words, meaning=meaning)
        ranked = await _Ranker(joined, request, limit, threshold).rank()
        rows = await _present(joined, request, ranked, limit)
        have_rows = {name for name, _ in rows}
        reasons = {name: joined.troubles.by_vault.get(name, {}) for name in self.vaults}
        failed, lacking = _tell_apart(reasons, _NEEDED.get(request.mode, _BOTH), have_rows)
        message = "; ".join(filter(None, (ranked.message, _tell(joined.troubles, failed, lacking))))
        return JointAnswer(rows, failed, lacking, message)


@frozen(eq=False)
class _Ranker:
    """Ranks the notes of joined vaults for one request, as `Search` does those of one."""

    _joined: Joined
    _request: SearchRequest
    _limit: int
    _threshold: float

    async def rank(self) -> _JointRows:
        """The ranking of the mode. Raises `SearchBackendFailed`."""
        if self._request.mode == "graph":
            return await self._rank_graph()
        if self._request.mode == "fulltext":
            return self._rank_fulltext()
        if self._request.mode == "semantic":
            return await self._rank_semantic()
        last = self._request.offset + self._limit
        ranking = await self._look(self._limit if last <= LEG_NOTES else last)
        return _JointRows(ranking.scores, ranking.chunks, ranking.terms, "", self._judged(ranking))

    async def _look(self, wanted: int) -> HybridRanking:
        request = self._request
        return await self._joined.hybrid.rank(
            request.query, request.filters, wanted, self._threshold, is_typed=request.prefix
        )

    def _judged(self, ranking: HybridRanking) -> Mapping[int, Judged] | None:
        if ranking.failed:
            return None
        hybrid = self._joined.hybrid
        return judge(hybrid.chances(ranking), hybrid.confidence(ranking))

    def _rank_fulltext(self) -> _JointRows:
        request, joined = self._request, self._joined
        node, message = parse(request.query)
        if node is None:
            return _JointRows(message=message)
        node = begin_last(node) or node if request.prefix else node
        try:
            found = joined.words.search(node, max(TENTH, request.offset + self._limit), request.filters)
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        terms, matches = joined.hybrid.judge_words(words_of(node), found)
        return _JointRows(found, (), terms, "", matches)

    async def _rank_semantic(self) -> _JointRows:
        request, joined = self._request, self._joined
        wanted = max(LEG_NOTES, request.offset + self._limit)
        asked = joined.nearest.ask(request.query, request.filters, wanted, self._threshold)
        try:
            found = await asked.hits()
        except IndexFailed as failure:
            raise backend_failure(str(failure)) from failure
        scores = list(map(_serial_and_similarity, found))
        likely, least = judged_part(scores, self._threshold)
        terms, matches = joined.hybrid.judge_meaning(
            request.query, likely, least, is_accurate=asked.is_accurate
        )
        return _JointRows(scores, found, terms, "", matches)

    async def _rank_graph(self) -> _JointRows:
        """Walks in each vault from those of its notes that all vaults together find best."""
        request, joined = self._request, self._joined
        everywhere = {part.place: request.seed_ids for part in joined.parts}
        start, seeds = None, everywhere
        if request.query.strip():
            start = await (self._judge() if request.seed_ids else self._look(SEEDS))
            seeds = everywhere if request.seed_ids or start is None else self._seeds(start)
        legs = [await self._walk(part, seeds.get(part.place, ())) for part in joined.parts]
        scores = best_of_all(legs, sum(map(len, legs)))
        terms = joined.hybrid.terms(request.query[:LONGEST_QUERY])
        if start is None:
            return _JointRows(scores, (), terms, "", None if request.query.strip() else {})
        return _JointRows(scores, start.chunks, terms, "", self._judged(start))

    async def _judge(self) -> HybridRanking | None:
        """The hybrid ranking, for how well rows match; None when it cannot be had, which the troubles say."""
        try:
            return await self._look(CANDIDATES)
        except SearchBackendFailed:
            return None

    def _seeds(self, start: HybridRanking) -> dict[int, tuple[str, ...]]:
        """The ids of the best notes, by the place of their vault."""
        entries = ((key, self._joined.notes.at(key)) for key, _ in start.scores)
        existing = ((key, entry.note.id) for key, entry in entries if entry is not None)
        seeds: dict[int, tuple[str, ...]] = {}
        for key, note_id in islice(existing, SEEDS):
            place = self._joined.keys.place(key)
            seeds[place] = (*seeds.get(place, ()), note_id)
        return seeds

    async def _walk(self, part: Part, seeds: Sequence[str]) -> list[tuple[int, float]]:
        request = self._request
        if not seeds:
            return []
        found = await part.search.graph_search.search(
            request.query, seeds, request.graph_depth, request.filters, self._threshold
        )
        return [(self._joined.keys.of(part.place, serial), score) for serial, score in found]


async def _present(
    joined: Joined, request: SearchRequest, ranked: _JointRows, limit: int
) -> tuple[tuple[str, Hit], ...]:
    """Cut the page out of a ranking, and have each vault read the texts of its rows."""
    existing = (
        (key, entry, score) for key, score in ranked.scores if (entry := joined.notes.at(key)) is not None
    )
    chosen = list(islice(existing, request.offset, request.offset + limit))
    hits: dict[int, Hit] = {}

    async def read(part: Part, own: Sequence[tuple[int, Entry, float]]) -> None:
        rows = RankedRows(
            [(entry.serial, score) for _, entry, score in own],
            _own_chunks(joined, ranked.chunks, {key for key, _, _ in own}),
            ranked.terms,
            matches=_own_matches(joined, part, ranked.matches),
        )
        try:
            room = request.room * len(own) // max(1, len(chosen))
            shown = await part.search.present(evolve(request, offset=0, room=room), rows, len(own))
        except LithosError as failure:
            for backend in _BOTH:
                joined.troubles.note(part.name, backend, failure.message)
            return
        hits.update((joined.keys.of(part.place, hit.entry.serial), hit) for hit in shown)

    async with trio.open_nursery() as nursery:
        for part in joined.parts:
            own = [row for row in chosen if joined.keys.place(row[0]) == part.place]
            if own:
                nursery.start_soon(read, part, own)
    names = {key: joined.parts[joined.keys.place(key)].name for key in hits}
    return tuple((names[key], hits[key]) for key, _, _ in chosen if key in hits)


def _own_chunks(joined: Joined, chunks: Sequence[VectorHit], wanted: set[int]) -> list[VectorHit]:
    return [hit._replace(serial=joined.keys.serial(hit.serial)) for hit in chunks if hit.serial in wanted]


def _own_matches(
    joined: Joined, part: Part, matches: Mapping[int, Judged] | None
) -> Mapping[int, Judged] | None:
    """How well a vault's rows match; None where it lacks a leg, as in a search of its own."""
    if matches is None or part.name in joined.troubles.by_vault:
        return None
    return joined.keys.part(part.place, matches)


def _tell_apart(
    troubles: Mapping[str, Mapping[str, str]], needed: frozenset[str], have_rows: Container[str]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """The vaults that did not answer, with the reason, and those that answered without a backend."""
    failed: dict[str, str] = {}
    lacking: dict[str, tuple[str, ...]] = {}
    for name, reasons in troubles.items():
        concerning = {backend: reason for backend, reason in reasons.items() if backend in needed}
        if needed <= concerning.keys() and name not in have_rows:  # walks along links need neither
            failed[name] = "; ".join(dict.fromkeys(concerning.values()))
        elif concerning:
            lacking[name] = tuple(sorted(concerning))
    return failed, lacking


def _tell(troubles: Troubles, failed: Mapping[str, str], lacking: Mapping[str, tuple[str, ...]]) -> str:
    told = [f"{name} did not answer: {reason}" for name, reason in failed.items()]
    for name, backends in lacking.items():
        reasons = "; ".join(troubles.by_vault[name][backend] for backend in backends)
        told.append(f"{name} answered without {' and '.join(backends)}: {reasons}")
    return "; ".join(told)
