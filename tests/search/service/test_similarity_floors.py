"""Minimum similarity of semantic hits: the default and configured values."""

from __future__ import annotations

from pathlib import Path

from lithos.search.ranking.calibrations import STATIC
from lithos.search.service.similarity_floors import LEAST_OF_LEG, LEAST_OF_MODEL, judged_part
from lithos.search.settings import SearchConfig
from tests.servers import Lithos, put_note, serving

PLANTED = {
    "boat": "The old ferry to the island leaves at dawn from the eastern pier.",
    "bread": "Let the dough rise overnight in a cool place, then bake it on a hot stone.",
    "tax": "Receipts of the year are in the grey folder, sorted by month.",
    "cat": "She sleeps on the warm windowsill and hates the vacuum cleaner.",
}
QUESTIONS = ("how do I get across the water", "sourdough recipe", "deductible expenses", "pet behaviour")


async def similarities(lithos: Lithos, **more: object) -> list[float]:
    found = [await lithos.call("lithos_search", query=query, mode="semantic", **more) for query in QUESTIONS]
    return sorted(round(row["similarity"], 4) for answer in found for row in answer["results"])


async def test_semantic_search_keeps_distant_passages_unless_configured_otherwise(tmp_path: Path) -> None:
    """behaviour 383"""
    for name, text in PLANTED.items():
        put_note(tmp_path, f"{name}.md", text)
    async with serving(tmp_path) as lithos:
        every = await similarities(lithos, threshold=0)
        far = [each for each in every if LEAST_OF_MODEL[STATIC] <= each < LEAST_OF_LEG]
        assert far
        assert await similarities(lithos) == [each for each in every if each >= LEAST_OF_MODEL[STATIC]]
        for query in QUESTIONS:
            answer = await lithos.call("lithos_search", query=query, mode="semantic")
            assert {r["match"] for r in answer["results"] if r["similarity"] < LEAST_OF_LEG} <= {"weak"}
    async with serving(tmp_path, search=SearchConfig(semantic_threshold=0.3)) as lithos:
        assert await similarities(lithos) == [each for each in every if each >= LEAST_OF_LEG]


def test_rows_below_the_calibrated_threshold_are_not_rated() -> None:
    """behaviour 383"""
    rows = [(1, 0.5), (2, 0.3), (3, 0.2)]
    assert judged_part(rows, 0.15) == (rows[:2], 0.3)
    assert judged_part(rows, 0.4) == (rows[:1], 0.4)
