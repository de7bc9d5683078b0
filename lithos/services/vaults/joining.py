"""The hybrid rankings of several vaults on one scale, so that their rows can be merged by score."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from lithos.actors.indexing.semantic import SemanticUnavailable
from lithos.core.learning.joining import Scale, even_out
from lithos.core.learning.ranking import order_by_score
from lithos.services.search.hybrid import HybridRanking
from lithos.services.services import Services


def on_one_scale(
    rankings: Mapping[str, HybridRanking], vaults: Mapping[str, Services]
) -> dict[str, HybridRanking]:
    """Return the rankings, by vault, with scores that compare; a single one as it is."""
    if len(rankings) < 2 or any(vaults[name].config.search.fusion == "rrf" for name in rankings):
        return dict(rankings)  # reciprocal ranks compare as they are
    factors = even_out({name: ranking.terms.total for name, ranking in rankings.items()})
    scales = {name: _scale(ranking, vaults[name], factors[name]) for name, ranking in rankings.items()}
    whole = Scale.whole(scales.values())
    return {name: _rescale(ranking, vaults[name], scales[name], whole) for name, ranking in rankings.items()}


def model_of(services: Services, *, is_accurate: bool) -> object:
    """Return what similarities are of: the accurate tier is the same in all vaults."""
    try:
        return "accurate" if is_accurate else services.semantic.static_identity()
    except SemanticUnavailable:
        return None


def _scale(ranking: HybridRanking, services: Services, factor: float) -> Scale:
    similarities = [hit.similarity for hit in ranking.chunks]
    return Scale(
        words=factor * max(ranking.lexical.values(), default=0.0),
        lowest=min(similarities, default=0.0),
        highest=max(similarities, default=0.0),
        meaning=ranking.weight / services.search.hybrid.divisor(ranking),
        model=model_of(services, is_accurate=ranking.is_accurate),
    )


def _rescale(ranking: HybridRanking, services: Services, own: Scale, whole: Scale) -> HybridRanking:
    words, meaning, _ = services.search.hybrid.parts(ranking)
    scores = {
        serial: score + own.onto(whole, words.get(serial, 0.0), meaning.get(serial))
        for serial, score in ranking.scores
    }
    return evolve(ranking, scores=order_by_score(scores))
