"""Questions with words that the vault does not have: their minimum similarity (behaviour 318)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.ranking.foreign_words import FOREIGN, NEAREST, count_near, foreign_share
from lithos.search.settings import SearchConfig
from tests.servers import put_note, serving

SINKING = [0.5 - 0.02 * number for number in range(16)]


def test_share_is_the_idf_of_unknown_stems() -> None:
    assert foreign_share({"known": 1.0, "unknown": 3.0}, 3.0) == 0.75
    assert foreign_share({}, 3.0) == 0.0


@pytest.mark.parametrize(
    ("threshold", "foreign", "expected"),
    [(0.2, 1.0, 16), (0.41, 0.0, 5), (0.41, FOREIGN, NEAREST), (0.25, 1.0, 13), (0.9, 0.29, 0)],
)
def test_ten_nearest_notes_count_when_the_vault_lacks_words(
    threshold: float, foreign: float, expected: int
) -> None:
    assert count_near(SINKING, threshold, foreign) == expected
    assert count_near([], threshold, foreign) == 0


async def test_english_question_finds_note_in_another_language(tmp_path: Path) -> None:
    """behaviour 318: the similarity of the note is below the minimum in one language."""
    text = "После обновления базы данных перезапустите сервер и проверьте журнал ошибок."
    put_note(tmp_path, "сервер.md", f"# Сервер\n\n{text}\n")
    put_note(tmp_path, "хлеб.md", "# Хлеб\n\nТесто поднимается ночью, хлеб выпекают на горячем камне.\n")
    query = "restart the server after an update"
    async with serving(tmp_path) as lithos:
        rows = (await lithos.call("lithos_search", query=query))["results"]
        assert rows[0]["path"] == "сервер.md"
        assert rows[0]["match"] == "weak"
        found = await lithos.call("lithos_search", query=query, threshold=0.3)
        assert found["results"] == []
        briefing = await lithos.call("lithos_retrieve", query=query)
        assert briefing["results"][0]["path"] == "сервер.md"
    async with serving(tmp_path, search=SearchConfig(semantic_threshold=0.3)) as lithos:
        assert (await lithos.call("lithos_search", query=query))["results"] == []
