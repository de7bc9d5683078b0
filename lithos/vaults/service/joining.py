"""Conversion of hybrid rankings of several vaults to one scale, so that rows can be merged by score."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from lithos.kernel.parts import Parts
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.ranking.calibrations import STATIC
from lithos.search.ranking.ranking import order_by_score
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.search import Search
from lithos.search.settings import SearchConfig
from lithos.vaults.model_joining import Scale, even_out


def on_one_scale(
    rankings: Mapping[str, HybridRanking], vaults: Mapping[str, Parts]
) -> dict[str, HybridRanking]:
    """Return the rankings by vault with comparable scores. A single ranking is not changed."""
    if len(rankings) < 2 or any(vaults[name].get(SearchConfig).fusion == "rrf" for name in rankings):
        return dict(rankings)  # Reciprocal ranks of different vaults are already comparable.
    factors = even_out({name: ranking.terms.total for name, ranking in rankings.items()})
    scales = {name: _scale(ranking, vaults[name], factors[name]) for name, ranking in rankings.items()}
    whole = Scale.whole(scales.values())
    return {name: _rescale(ranking, vaults[name], scales[name], whole) for name, ranking in rankings.items()}


def model_of(services: Parts, *, calibration: str) -> object:
    """Return an object that identifies the embedding model. An accurate model is the same in all vaults."""
    try:
        return services.get(SemanticBackend).static_identity() if calibration == STATIC else calibration
    except SemanticUnavailable:
        return None


def _scale(ranking: HybridRanking, services: Parts, factor: float) -> Scale:
    similarities = [hit.similarity for hit in ranking.chunks]
    return Scale(
        words=factor * max(ranking.lexical.values(), default=0.0),
        lowest=min(similarities, default=0.0),
        highest=max(similarities, default=0.0),
        meaning=ranking.weight / services.get(Search).hybrid.divisor(ranking),
        model=model_of(services, calibration=ranking.calibration),
    )


def _rescale(ranking: HybridRanking, services: Parts, own: Scale, whole: Scale) -> HybridRanking:
    words, meaning, _ = services.get(Search).hybrid.parts(ranking)
    scores = {
        serial: score + own.onto(whole, words.get(serial, 0.0), meaning.get(serial))
        for serial, score in ranking.scores
    }
    return evolve(ranking, scores=order_by_score(scores))
