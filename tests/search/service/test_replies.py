"""Snippets that include the reply to a question (docs/spec/vault.md §4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.service.search import Search, SearchRequest
from tests.servers import put_note, serving

ASKED = "Ann: Which colour did the painter choose for the bathroom door, after all?"
REPLY = "Tom: Teal, since nobody liked the green."


@pytest.mark.parametrize("mode", ["fulltext", "semantic", "hybrid"])
async def test_snippet_of_a_question_includes_the_reply(tmp_path: Path, mode: str) -> None:
    """behaviour 304: the chunk ends with the question."""
    before = "Ann: We painted walls for days, and the weather was fine. " * 7
    put_note(
        tmp_path, "paint.md", f"# Painting\n\n{before}\n\n{ASKED}\n\n{REPLY}\n\n{'Tom: Good bye. ' * 40}\n"
    )
    async with serving(tmp_path) as lithos:
        request = SearchRequest(query="colour that the painter chose for the bathroom door", mode=mode)
        (hit,) = (await lithos.server.get(Search).search(request)).hits
    assert ASKED in hit.snippet
    assert REPLY in hit.snippet
