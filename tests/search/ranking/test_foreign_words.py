"""Questions with words that the vault does not have: their minimum similarity (behaviour 318)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.ranking.foreign_words import lacks_words
from lithos.search.settings import SearchConfig
from tests.servers import put_note, serving


@pytest.mark.parametrize(
    ("idf", "expected"),
    [
        ({}, False),
        ({"known": 1.0, "common": 0.2}, False),
        ({"some": 2.5, "more": 2.5, "others": 2.5, "unknown": 3.0}, False),
        ({"some": 2.5, "more": 2.5, "unknown": 3.0, "missing": 3.0}, True),
        ({"some": 0.5, "unknown": 3.0}, False),
        ({"unknown": 3.0}, False),
    ],
)
def test_vault_lacks_words_from_a_share_of_the_idf(idf: dict[str, float], expected: bool) -> None:
    assert lacks_words(idf, 3.0) is expected


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
