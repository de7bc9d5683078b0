"""Merging of results from several vaults (docs/spec/vaults.md §2).

Each vault ranks its own notes. Hybrid scores depend on the best and the worst note of a vault, so they are
converted to a common scale before the rows are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from lithos.search.ranking.ranking import FUSION_K


@frozen(kw_only=True)
class Scale:
    """The score range of one hybrid ranking.

    `words` is the highest BM25 score, multiplied by the factor of `even_out`. `lowest` and `highest` are the
    lowest and highest similarity found. `meaning` is the part of the score that the highest similarity
    contributes. Similarities of different models (`model`) cannot be compared.
    """

    words: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    meaning: float = 0.0
    model: object = None

    @classmethod
    def whole(cls, scales: Iterable[Scale]) -> Scale:
        """Return one scale that covers all rankings.

        The scale has no model if the rankings have different models.
        """
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
        """Return the value to add to a score with these parts to convert it to the scale `whole`.

        `meaning` is None for a note without a similarity.
        """
        added = words * (self.words / whole.words - 1) if whole.words else 0.0
        width = whole.highest - whole.lowest
        if meaning is None or whole.model is None or not width:
            return added
        own = (self.highest - self.lowest) / width
        return added + meaning * (own - 1) + self.meaning * (self.lowest - whole.lowest) / width


def even_out(rarities: Mapping[str, float]) -> dict[str, float]:
    """Return a BM25 factor for each vault, computed from the rarity of the query's words in that vault.

    The rarity is the sum of the inverse document frequencies of the words. In a vault about a single topic,
    the topic's words get low scores, although the best answers may be in that vault.
    """
    mean = sum(rarities.values()) / max(1, len(rarities))
    return {name: mean / rarity if rarity > 0 else 1.0 for name, rarity in rarities.items()}


def interleave(rows: Mapping[str, Sequence[float]], most: int) -> list[tuple[str, int]]:
    """Return the `most` best rows of several results as pairs (result, row number), best first.

    If scores are equal, lower row numbers come first, then earlier results.
    """
    ordered = [
        (-score, row, place, name)
        for place, (name, scores) in enumerate(rows.items())
        for row, score in enumerate(scores)
    ]
    return [(name, row) for _, row, _, name in sorted(ordered)[:most]]


def by_rank(rows: int) -> list[float]:
    """Return reciprocal ranks as scores, to merge results whose scores cannot be compared."""
    return [1 / (FUSION_K + rank) for rank in range(1, rows + 1)]
