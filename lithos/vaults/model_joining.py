"""Answers of several vaults merged into one (docs/spec/vaults.md §2).

Each vault ranks its own notes. The scores of a hybrid search count from the best and the worst of a vault, so
they are put on one scale before rows are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from lithos.search.ranking.ranking import FUSION_K


@frozen(kw_only=True)
class Scale:
    """The zero point of the scores of one hybrid ranking.

    `words` is the highest BM25 score, times the factor of `even_out`; `lowest` and `highest` are the
    similarities found, `meaning` the share that the highest similarity gives a score. `model`: similarities
    of two models do not compare.
    """

    words: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    meaning: float = 0.0
    model: object = None

    @classmethod
    def whole(cls, scales: Iterable[Scale]) -> Scale:
        """Return the scale of all rankings together; without a model if they have several."""
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
        """Return what to add to a score with these parts to have it on the scale of all rankings.

        `meaning` is missing (None) for a note without a similarity.
        """
        added = words * (self.words / whole.words - 1) if whole.words else 0.0
        width = whole.highest - whole.lowest
        if meaning is None or whole.model is None or not width:
            return added
        own = (self.highest - self.lowest) / width
        return added + meaning * (own - 1) + self.meaning * (self.lowest - whole.lowest) / width


def even_out(rarities: Mapping[str, float]) -> dict[str, float]:
    """Return what to multiply the BM25 scores of each vault by, given the rarity of a query's words there.

    That is the sum of their inverse document frequencies: where a vault is full of a topic, its words count
    little, and the best answers may be there.
    """
    mean = sum(rarities.values()) / max(1, len(rarities))
    return {name: mean / rarity if rarity > 0 else 1.0 for name, rarity in rarities.items()}


def interleave(rows: Mapping[str, Sequence[float]], most: int) -> list[tuple[str, int]]:
    """The `most` best rows of several answers, given the scores of each, best first: (answer, its row).

    Among rows of one score the earlier ones of each answer come first, then the earlier answer.
    """
    ordered = [
        (-score, row, place, name)
        for place, (name, scores) in enumerate(rows.items())
        for row, score in enumerate(scores)
    ]
    return [(name, row) for _, row, _, name in sorted(ordered)[:most]]


def by_rank(rows: int) -> list[float]:
    """Return the reciprocal ranks of an answer, for scores that do not compare."""
    return [1 / (FUSION_K + rank) for rank in range(1, rows + 1)]
