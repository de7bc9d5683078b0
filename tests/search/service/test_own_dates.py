"""Search for notes by their own date (docs/spec/search.md §1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.kernel.settings import StorageConfig
from lithos.search.index import fulltext_schema
from lithos.search.service.search import Search, SearchRequest
from tests.servers import Lithos, put_note, serving

QUERIES = (
    "What did Anna do in May 2023?",
    "2023-05-08",
    "8 May 2023",
    "May 8, 2023",
    "+2023-05-08",
    "May 8th",
)


async def names(lithos: Lithos, query: str, mode: str = "fulltext") -> list[str]:
    answer = await lithos.server.get(Search).search(SearchRequest(query=query, mode=mode))
    return [Path(hit.entry.path).stem for hit in answer.hits]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("standup", "---\ndate: 2023-05-08\n---\n\n# Standup\n\nAnna fixed the lift.\n"),
        ("standup", "---\ncreated: 2023-05-08T09:30:00\n---\n\n# Standup\n\nAnna fixed the lift.\n"),
        ("2023-05-08-standup", "# Standup\n\nAnna fixed the lift.\n"),
        ("standup", "# Standup\n\nDate: 8 May 2023\n\nAnna fixed the lift.\n"),
    ],
)
async def test_note_is_first_for_its_own_date(tmp_path: Path, name: str, text: str) -> None:
    """behaviour 415: the date occurs in a question, as a day, or in words."""
    put_note(tmp_path, f"{name}.md", text)
    for month in ("04", "06", "07"):
        put_note(
            tmp_path,
            f"o{month}.md",
            f"---\ndate: 2023-{month}-09\n---\n\n# Standup {month}\n\nWhat did Anna do? A lot.\n",
        )
    async with serving(tmp_path) as lithos:
        for query in QUERIES:
            assert (await names(lithos, query))[0] == name, query
            if query[0] != "+":
                assert (await names(lithos, query, "hybrid"))[0] == name, query
                answer = await lithos.call("lithos_retrieve", query=query)
                assert Path(answer["results"][0]["path"]).stem == name, query


async def test_own_date_follows_the_file_name(tmp_path: Path) -> None:
    """behaviour 415: a renamed file has another date."""
    put_note(tmp_path, "2023-05-08.md", "# Standup\n\nAnna fixed the lift.\n")
    async with serving(tmp_path) as lithos:
        assert await names(lithos, "8 May 2023") == ["2023-05-08"]
        (row,) = (await lithos.call("lithos_list"))["items"]
        await lithos.call("lithos_note_move", id=row["id"], path="2022-04-01.md", agent="ana")
        assert await names(lithos, "8 May 2023") == []
        assert await names(lithos, "1 April 2022") == ["2022-04-01"]


async def test_index_of_the_previous_format_is_rebuilt_at_the_start(tmp_path: Path) -> None:
    """behaviour 415: an index without own dates is replaced before any search."""
    put_note(tmp_path, "a.md", "---\ndate: 2023-05-08\n---\n\n# Standup\n\nAnna fixed the lift.\n")
    async with serving(tmp_path) as lithos:
        directory = lithos.server.get(StorageConfig).data_dir
    (marker,) = directory.rglob(fulltext_schema.MARKER)
    fulltext_schema.write_marker(marker.parent, "L4")
    async with serving(tmp_path) as lithos:
        assert await names(lithos, "8 May 2023") == ["a"]
    assert fulltext_schema.read_marker(marker.parent) == fulltext_schema.FORMAT
