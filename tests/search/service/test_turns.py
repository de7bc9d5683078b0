"""Search for conversation turns through their neighbours (docs/spec/search.md §5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.service.search import Search, SearchRequest
from tests.servers import put_note, serving

SAID = (
    "Nice to see you again.",
    "Which breed is the puppy that your neighbour adopted last week?",
    "She is a whippet, quick as the wind.",
    "Let us eat.",
)


async def test_answer_rises_with_its_question_and_score_parts_add_up(
    tmp_path: Path,
) -> None:
    for number, said in enumerate(SAID):
        title = f"Ann, 2024-03-05 14:0{number}"
        put_note(tmp_path, f"talk/{number}.md", f"# {title}\n\n{said}\n")
        put_note(tmp_path, f"other/{number}.md", f"# Something else\n\nThe wind is quick at sea, {number}.\n")
    request = SearchRequest(query="breed of the quick puppy adopted by the neighbour", mode="hybrid")
    async with serving(tmp_path) as lithos:
        answer = await lithos.server.get(Search).search(request)
        paths = [hit.entry.path for hit in answer.hits]
        assert paths[:2] == ["talk/1.md", "talk/2.md"]
        ids = [hit.entry.note.id for hit in answer.hits]
        told = (await lithos.server.get(Search).explain(request, ids)).by_id
        for hit in answer.hits:
            assert told[hit.entry.note.id].score == pytest.approx(hit.score, abs=1e-6)
