"""Functions that merge the results of several vaults (docs/spec/vaults.md §2).

Each vault ranks its own notes. Hybrid scores are relative to the best and worst note of a vault, so they are
converted to a common scale before rows are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from lithos.search.ranking.ranking import FUSION_K


@frozen(kw_only=True)
class Scale:
    """The score range of one hybrid ranking.

    `words` is the highest BM25 score times the factor of `even_out`. `lowest` and `highest` are the
    similarities found, and `meaning` is the share of the score that the highest similarity contributes.
    Similarities of different values of `model` cannot be compared.
    """

    words: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    meaning: float = 0.0
    model: object = None

    @classmethod
    def whole(cls, scales: Iterable[Scale]) -> Scale:
        """Return one scale that covers all rankings, without a model if their models differ."""
        scales = list(scales)
        near = [each for each in scales if each.highest]
        models = {each.model for each in near}
        return cls(
            words=max((each.words for each in scales), default=0.0),
            lowest=min((each.lowest for each in near), default=0.0),
            highest=max((each.highest for each in near), default=0.0),
            model=models.pop() if len(models) == 1 else None,
        )

    def onto(self, whole: Scale, words: float, meaning: float | None) -> float:
        """Return what to add to a score with these parts to convert the score to the scale `whole`.

        `meaning` is None for a note without a similarity.
        """
        added = words * (self.words / whole.words - 1) if whole.words else 0.0
        width = whole.highest - whole.lowest
        if meaning is None or whole.model is None or not width:
            return added
        own = (self.highest - self.lowest) / width
        return added + meaning * (own - 1) + self.meaning * (self.lowest - whole.lowest) / width


def even_out(rarities: Mapping[str, float]) -> dict[str, float]:
    """Return a BM25 factor for each vault, from the rarity of the query's words in that vault.

    A rarity is the sum of the words' inverse document frequencies. In a vault full of one topic, the topic's
    words count little although the best answers may be there.
    """
    mean = sum(rarities.values()) / max(1, len(rarities))
    return {name: mean / rarity if rarity > 0 else 1.0 for name, rarity in rarities.items()}


def interleave(rows: Mapping[str, Sequence[float]], most: int) -> list[tuple[str, int]]:
    """Return the `most` best rows of several results as pairs (result, row number), best first.

    Among rows with equal scores, earlier rows come first, then rows of earlier results.
    """
    ordered = [
        (-score, row, place, name)
        for place, (name, scores) in enumerate(rows.items())
        for row, score in enumerate(scores)
    ]
    return [(name, row) for _, row, _, name in sorted(ordered)[:most]]


def by_rank(rows: int) -> list[float]:
    """Return reciprocal ranks as scores, for results whose scores cannot be compared."""
    return [1 / (FUSION_K + rank) for rank in range(1, rows + 1)]
