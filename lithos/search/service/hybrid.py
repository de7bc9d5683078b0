"""Hybrid search: full-text and semantic ranking are fused, reordered by lead coverage and rated.

See docs/spec/search.md §5 and §6. `lithos_search`, `lithos_retrieve` and `lithos_cache_lookup` use this
ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Final

from attrs import define, field, frozen

from lithos.kernel.values.errors import IndexFailed, SearchBackendFailed
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.semantic import SemanticUnavailable
from lithos.search.ranking.calibrations import ACCURATE, MULTILINGUAL, STATIC
from lithos.search.ranking.foreign_words import LEAST_ACROSS, NEAREST, lacks_words
from lithos.search.ranking.lead_coverage import Covered
from lithos.search.ranking.match_strength import (
    CALIBRATIONS,
    CANDIDATES,
    MEANING_CALIBRATIONS,
    TENTH,
    THIRTIETH,
    WORDS_CALIBRATION,
    Calibration,
    Features,
    LexicalLeg,
    MatchSignals,
    MatchVerdict,
    MeaningFeatures,
    WordFeatures,
    above,
    judge,
    meaning_features,
    probability,
    spread,
    word_features,
)
from lithos.search.ranking.ranking import (
    HIGHEST_RECIPROCAL,
    add_lead,
    add_neighbours,
    blend,
    blend_parts,
    reciprocal_parts,
    reciprocal_rank,
)
from lithos.search.ranking.reordering import highest_named, keep_places, lift_named, sink_bare
from lithos.search.service.ports import MeaningPort, NearestPort, NotesPort, PendingQueryPort, WordsPort
from lithos.search.settings import SearchConfig
from lithos.text.query import begin_last, plain_words
from lithos.text.snippet import Terms
from lithos.text.words.languages import NO_FORMS, WordForms

#: Minimum number of candidates from each ranking of a hybrid search.
LEG_NOTES: Final = 200
#: Number of candidates from each ranking per wanted result. It applies if the product exceeds the minimum.
LEG_SHARE: Final = 5
#: Share of the semantic score in `blend`, by the model that answers.
SEMANTIC_WEIGHTS: Final = {STATIC: 0.2, ACCURATE: 0.4, MULTILINGUAL: 0.5}
#: Maximum number of characters of a full-text query. In a script without spaces, each pair of characters is a
#: term, and 300,000 terms block the event loop for twenty seconds. Semantic search gets the whole query.
LONGEST_QUERY: Final = 4_000

_serial_and_similarity = itemgetter(0, 2)  # fields of a `VectorHit`


@frozen(kw_only=True)
class HybridRanking:
    """A hybrid ranking of (serial, score) pairs, best first.

    The ranking can be iterated only once. `lexical` has the full-text scores.

    `features` covers the first three rows. If an index failed, `features` is empty, `failed` names the index,
    and `message` gives the reason. `is_all` is True if neither index would find more notes.
    """

    scores: Iterable[tuple[int, float]]
    chunks: Sequence[VectorHit]
    lexical: Mapping[int, float]
    terms: Terms
    features: Mapping[int, Features]
    is_all: bool
    #: Key of the model that answered the query in the calibrations.
    calibration: str = STATIC
    #: Lead coverage of the best notes, and the share of the semantic score in `blend`.
    covered: Mapping[int, Covered] = field(factory=dict)
    weight: float = 0.0
    #: Changes of scores because of names, reserved ranks and missing text. Every score is divided by
    #: `highest`, the highest possible score.
    moved: Mapping[int, float] = field(factory=dict)
    highest: float = 1.0
    #: Score that conversation turns get from their neighbours, and the divisor of the resulting scores.
    beside: Mapping[int, float] = field(factory=dict)
    spread: float = 1.0
    failed: tuple[str, ...] = ()
    message: str = ""


@frozen
class _Ordered:
    """The best notes in order, and the remaining notes. `HybridRanking` takes its fields from this object."""

    first: Sequence[tuple[int, float]]
    rest: Iterator[tuple[int, float]]
    covered: Mapping[int, Covered]
    moved: Mapping[int, float] = field(factory=dict)
    highest: float = 1.0
    beside: Mapping[int, float] = field(factory=dict)
    spread: float = 1.0


NOTHING_RANKED: Final = HybridRanking(
    scores=(), chunks=(), lexical={}, terms=Terms(), features={}, is_all=True
)


@define(eq=False)
class Hybrid:
    """Ranks notes by full-text and semantic search."""

    _nearest: NearestPort
    _semantic: MeaningPort
    _fulltext: WordsPort
    _settings: SearchConfig
    _catalogue: NotesPort

    def confidence(self, ranking: HybridRanking) -> float:
        """Return the minimum probability from which a note of the ranking counts as an answer."""
        configured = self._settings.cache_confidence
        return _calibration(ranking).threshold if configured is None else configured

    def chances(self, ranking: HybridRanking) -> dict[int, float]:
        """Return the probability that each of the first three notes is an answer, by serial."""
        return _chances(ranking.features, _calibration(ranking))

    def terms(self, words: str) -> Terms:
        """Return the content words of a query, with weights if the index is readable."""
        try:
            idf = self._fulltext.idf(self._fulltext.content_stems(words))
            return Terms.of(words, idf, self._fulltext.word_forms(words))
        except IndexFailed:
            return Terms.of(words, {})

    def judge_words(
        self, words: str, found: Sequence[tuple[int, float]]
    ) -> tuple[Terms, Mapping[int, MatchVerdict] | None]:
        """Return the terms of a full-text query, and the match strength of its first three rows.

        All rows after the first three are weak. Only words are used, because reading the vectors would cost
        more than the whole search. The strengths are None if the words of the notes are unknown.
        """
        terms, features = self.word_features(words, found)
        return terms, self._judge(features, WORDS_CALIBRATION)

    def judge_meaning(
        self, query: str, found: Sequence[tuple[int, float]], threshold: float, *, calibration: str
    ) -> tuple[Terms, Mapping[int, MatchVerdict] | None]:
        """Return the terms of a semantic query, and the match strength of its first three rows.

        Only similarities and lead coverage are used, because computing BM25 would double the cost. `found`
        must have the first thirty (serial, similarity) pairs, or all pairs above the threshold if there are
        fewer.
        """
        terms, features = self.meaning_features(query, found, threshold)
        return terms, self._judge(features, MEANING_CALIBRATIONS[calibration])

    def _judge(
        self, features: Mapping[int, WordFeatures | MeaningFeatures] | None, calibration: Calibration
    ) -> Mapping[int, MatchVerdict] | None:
        if features is None:
            return None
        configured = self._settings.cache_confidence
        confidence = calibration.threshold if configured is None else configured
        return judge(_chances(features, calibration), confidence)

    def word_chances(self, features: Mapping[int, WordFeatures]) -> dict[int, float]:
        """Return the probability that each note is an answer, by serial. It is computed from words alone."""
        return _chances(features, WORDS_CALIBRATION)

    def word_features(
        self, words: str, found: Sequence[tuple[int, float]]
    ) -> tuple[Terms, Mapping[int, WordFeatures] | None]:
        """Return the terms of a full-text query, and the features of its first three rows.

        `found` must have the first ten rows, or all rows if there are fewer. The features are None if the
        words of the notes are unknown.
        """
        terms, idf, covered = self._look_at(words, [serial for serial, _ in found[:CANDIDATES]])
        return terms, None if covered is None else word_features(found, idf, covered)

    def meaning_features(
        self, query: str, found: Sequence[tuple[int, float]], threshold: float
    ) -> tuple[Terms, Mapping[int, MeaningFeatures] | None]:
        """Return the terms of a semantic query, and the features of its first three rows.

        `found` must have the first thirty rows, or all rows if there are fewer.
        """
        terms, idf, covered = self._look_at(
            query[:LONGEST_QUERY], [serial for serial, _ in found[:CANDIDATES]]
        )
        return terms, None if covered is None else meaning_features(found, len(idf), covered, threshold)

    def meaning_chances(
        self, features: Mapping[int, MeaningFeatures], *, calibration: str
    ) -> dict[int, float]:
        """Return by serial the probability that the note answers, from its similarity and lead coverage."""
        return _chances(features, MEANING_CALIBRATIONS[calibration])

    def _look_at(
        self, words: str, serials: Sequence[int]
    ) -> tuple[Terms, Mapping[str, float], Mapping[int, Covered] | None]:
        """Return the terms of a query, the idf of its content stems, and each note's coverage of the stems.

        The coverage is None if the words of the notes are unknown.
        """
        try:
            idf = self._fulltext.idf(self._fulltext.content_stems(words))
            forms = self._fulltext.word_forms(words)
        except IndexFailed:
            return Terms.of(words, {}), {}, None
        covered = self._fulltext.coverage(idf, serials)
        return Terms.of(words, idf, forms), idf, None if serials and not covered else covered

    def _look_up(self, words: str, failures: dict[str, str]) -> tuple[Mapping[str, float], float, WordForms]:
        """Return the idf of the content stems, that of an unknown stem, and the forms of the words.

        A failure is added to `failures`.
        """
        try:
            idf = self._fulltext.idf(self._fulltext.content_stems(words))
            return idf, self._fulltext.idf_of_unknown(), self._fulltext.word_forms(words)
        except IndexFailed as failure:
            failures["fulltext"] = str(failure)
            return {}, 1.0, NO_FORMS

    def _search_words(
        self, words: str, wanted: int, filters: Filters, failures: dict[str, str], *, is_typed: bool
    ) -> Sequence[tuple[int, float]]:
        """Return the full-text results. A failure is added to `failures`."""
        try:
            node = plain_words(words)
            node = begin_last(node) if is_typed else node
            return () if node is None else self._fulltext.search(node, wanted, filters)
        except IndexFailed as failure:
            failures["fulltext"] = str(failure)
            return ()

    async def _hits(self, asked: PendingQueryPort, failures: dict[str, str]) -> Sequence[VectorHit]:
        """Return the semantic results. A failure or an incomplete index is added to `failures`."""
        try:
            hits = await asked.hits()
        except (SemanticUnavailable, IndexFailed) as failure:
            failures["semantic"] = str(failure)
            return ()
        if not self._semantic.is_answering:
            failures["semantic"] = "the semantic index is still being built"
        return hits

    async def rank(
        self,
        query: str,
        filters: Filters,
        limit: int,
        threshold: float,
        *,
        is_typed: bool = False,
        fills: bool = False,
    ) -> HybridRanking:
        """Rank the notes. At least `limit` notes are ranked if there are enough.

        With `fills`, notes down to `LEAST_ACROSS` count if the vault lacks many words of the query.
        `is_typed` means that the user is still typing, so the last word may be only the beginning of a word.
        If one index fails, the other index answers alone. Raises `SearchBackendFailed` if both fail.
        """
        wanted = max(LEG_NOTES, LEG_SHARE * limit)
        failures: dict[str, str] = {}
        words = query[:LONGEST_QUERY]
        idf, unknown, forms = self._look_up(words, failures)
        is_foreign = fills and lacks_words(idf, unknown)
        floor = min(threshold, LEAST_ACROSS) if is_foreign else threshold
        asked = self._nearest.ask(query, filters, wanted, floor)
        lexical = self._search_words(words, wanted, filters, failures, is_typed=is_typed)
        semantic = await self._hits(asked, failures)
        reaching = semantic
        if is_foreign:
            reaching = [hit for hit in semantic if hit.similarity >= threshold]
            semantic = semantic[: max(NEAREST, len(reaching))]
        reasons = "; ".join(failures.values())
        if len(failures) == 2:
            raise backend_failure(reasons)
        leg = LexicalLeg(scores=dict(lexical), idf=idf, unknown=unknown)
        weight = self._settings.semantic_weight
        weight = SEMANTIC_WEIGHTS[asked.calibration] if weight is None else weight
        ordered = self._order(words, lexical, semantic, leg, weight)
        similarities = dict(map(_serial_and_similarity, reaching))
        features = _features(ordered.first[:TENTH], leg, similarities, ordered.covered, threshold)
        return HybridRanking(
            scores=chain(ordered.first, ordered.rest),
            chunks=semantic,
            lexical=leg.scores,
            terms=Terms.of(words, idf, forms),
            features={} if failures else features,
            calibration=asked.calibration,
            covered=ordered.covered,
            weight=weight,
            moved=ordered.moved,
            highest=ordered.highest,
            beside=ordered.beside,
            spread=ordered.spread,
            is_all=len(lexical) < wanted and len(semantic) < wanted,
            failed=tuple(failures),
            message=f"Answered without {' and '.join(failures)}: {reasons}" if failures else "",
        )

    def _order(
        self,
        words: str,
        lexical: Sequence[tuple[int, float]],
        semantic: Sequence[VectorHit],
        leg: LexicalLeg,
        weight: float,
    ) -> _Ordered:
        """Fuse both rankings, add neighbours, and reorder the best notes by coverage, ranks and names."""
        similarities = dict(map(_serial_and_similarity, semantic))
        covered: dict[int, Covered] = {}

        def cover(serials: list[int]) -> Mapping[int, float]:
            covered.update(self._fulltext.coverage(leg.idf, serials))
            return {serial: each.coverage for serial, each in covered.items()}

        fused, turns = self._fuse(lexical, similarities, weight), self._catalogue.turns
        fused, beside, spread = add_neighbours(fused, turns.beside, turns) if turns else (fused, {}, 1.0)
        led, rest = add_lead(fused, cover, self._settings.lead_weight)
        if not self._settings.lead_weight:
            cover([serial for serial, _ in led])
        named = self._names_share(words, leg.idf)
        if named:
            named = {each: named[each] for each in named if each in leg.scores or each in similarities}
            led += rest if not named.keys() <= dict(led).keys() else ()
        first = lift_named(keep_places(led, (leg.scores, similarities)), named)
        bare = {serial: each.share for serial, each in covered.items() if each.bare}
        if bare:
            shares = {serial: each.share for serial, each in covered.items() if serial not in bare}
            first = sink_bare(first, bare, shares)
        if first is led:
            return _Ordered(led, rest, covered, beside=beside, spread=spread)
        before, highest = dict(led), highest_named(named)
        moved = {serial: score - before[serial] for serial, score in first if score != before[serial]}
        first = [(serial, score / highest) for serial, score in first]
        behind = ((serial, score / highest) for serial, score in rest)
        return _Ordered(first, behind, covered, moved, highest, beside, spread)

    def _names_share(self, words: str, idf: Mapping[str, float]) -> dict[int, float]:
        """Return by serial the share of the query, by idf, that the note's name makes up."""
        named, total = self._catalogue.named_in(words), sum(idf.values())
        return {
            serial: sum(idf.get(stem, 0.0) for stem in self._fulltext.terms(name)) / total
            for serial, name in named.items()
            if total
        }

    def divisor(self, ranking: HybridRanking) -> float:
        """Return the divisor that scales the full-text and semantic parts to 0..1."""
        return (1 + self._settings.lead_weight) * ranking.highest * ranking.spread

    def parts(self, ranking: HybridRanking) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:
        """Return the full-text, semantic and lead coverage parts of each note. Their sum is the score."""
        lexical = list(ranking.lexical.items())
        similarities = dict(map(_serial_and_similarity, ranking.chunks))
        if self._settings.fusion == "rrf":
            legs = [reciprocal_parts(list(leg)) for leg in (ranking.lexical, similarities)]
            words, meaning = (
                {serial: part / HIGHEST_RECIPROCAL for serial, part in leg.items()} for leg in legs
            )
        else:
            words, meaning = blend_parts(lexical, list(similarities.items()), ranking.weight)
        lead, whole = self._settings.lead_weight, (1 + self._settings.lead_weight) * ranking.highest
        fused = self.divisor(ranking)
        words = {serial: part / fused for serial, part in words.items()}
        meaning = {serial: part / fused for serial, part in meaning.items()}
        for serial, part in ranking.beside.items():  # The added part comes from a neighbour's score.
            leg = words if serial in words else meaning
            leg[serial] += part / whole
        return (
            words,
            meaning,
            {
                serial: lead * each.coverage / whole + ranking.moved.get(serial, 0.0) / ranking.highest
                for serial, each in ranking.covered.items()
            },
        )

    def _fuse(
        self, lexical: Sequence[tuple[int, float]], similarities: Mapping[int, float], weight: float
    ) -> Iterator[tuple[int, float]]:
        if self._settings.fusion == "rrf":
            ranks = reciprocal_rank([[serial for serial, _ in lexical], list(similarities)])
            return iter([(serial, score / HIGHEST_RECIPROCAL) for serial, score in ranks])
        return blend(lexical, list(similarities.items()), weight)


def _calibration(ranking: HybridRanking) -> Calibration:
    return CALIBRATIONS[ranking.calibration]


def _chances(
    features: Mapping[int, Features | WordFeatures | MeaningFeatures], calibration: Calibration
) -> dict[int, float]:
    return {serial: probability(known, calibration) for serial, known in features.items()}


def _features(
    first: Sequence[tuple[int, float]],
    leg: LexicalLeg,
    similarities: Mapping[int, float],
    covered: Mapping[int, Covered],
    threshold: float,
) -> dict[int, Features]:
    """Return the features of the first three rows. `first` must have the first ten rows."""
    mean, deviation = spread(islice(similarities.values(), THIRTIETH), threshold)  # best first
    rows = [
        MatchSignals(
            score, similarities.get(serial, 0.0), covered[serial].passage if serial in covered else 0.0
        )
        for serial, score in first
    ]
    found: dict[int, Features] = {}
    for place, (serial, _) in enumerate(first[:CANDIDATES]):
        of_note, row = covered.get(serial, Covered()), rows[place]
        if of_note.bare:  # a note without text cannot answer
            continue
        found[serial] = Features(
            cosine=row.cosine,
            above=above(row.cosine, mean, deviation),
            margin=row.margin(rows[place + 1 :]),
            held=leg.held(of_note.passage),
            missing=leg.missing(of_note.share),
        )
    return found


def backend_failure(reason: str) -> SearchBackendFailed:
    """Return the error for a search whose indexes cannot answer."""
    return SearchBackendFailed(f"The search could not be answered: {reason}")
