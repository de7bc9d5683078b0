"""Boilerplate detection by sampling folders. Snippets and briefings leave the boilerplate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import trio

from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.service.boilerplate import Frames
from tests.servers import put_note, serving

FOOTER = "---\n\n[Edit in GitHub](https://example.org/{0}) | Copy this note | page {0}\n"
TOPICS = ("granite", "basalt", "marble", "slate", "gneiss", "pumice", "chalk", "flint", "tuff", "shale")


def put_quarry(data: Path, footer: str = FOOTER, folder: str = "quarry") -> None:
    for number, stone in enumerate(TOPICS):
        body = f"The {stone} of this quarry is cut by hand."
        put_note(data, f"{folder}/{stone}.md", f"# About {stone}\n\n{body}\n\n{footer.format(number)}")


async def test_common_footer_is_left_out_of_snippets_and_briefings(
    tmp_path: Path,
) -> None:
    """docs/spec/context.md §1, docs/spec/vault.md"""
    put_quarry(tmp_path)
    put_note(
        tmp_path, "alone.md", "# How to help\n\nWhoever finds a mistake: copy this note, edit in GitHub.\n"
    )
    async with serving(tmp_path) as lithos:
        for mode in ("fulltext", "hybrid", "semantic"):
            answer = await lithos.call("lithos_search", query="copy this note", mode=mode)
            snippets = {row["path"]: row["snippet"] for row in answer["results"]}
            assert "edit in GitHub" in snippets.pop("alone.md")
            assert snippets
            assert not any("GitHub" in text or "Copy this" in text for text in snippets.values()), snippets
        briefing = (await lithos.call("lithos_context", query="copy granite marble slate", budget=2_000))[
            "text"
        ]
        assert "granite of this quarry" in briefing
        assert "quarry" in briefing
        assert "GitHub](" not in briefing


async def test_text_shared_by_few_notes_is_not_boilerplate(tmp_path: Path) -> None:
    """docs/spec/context.md §1"""
    put_quarry(tmp_path, footer="")
    for number in range(3):
        put_note(
            tmp_path,
            f"quarry/few {number}.md",
            f"# Few {number}\n\nSome.\n\nCall the night watch by radio.\n",
        )
    for number in range(9):
        put_note(tmp_path, f"same/{number}.md", f"# Same {number}\n\nAll of these notes say the very same.\n")
    async with serving(tmp_path) as lithos:
        for query, said in (("night watch radio", "night watch"), ("very same notes", "say the very same")):
            answer = await lithos.call("lithos_search", query=query, mode="fulltext")
            assert answer["results"]
            assert all(said in row["snippet"] for row in answer["results"])


async def test_small_folder_takes_its_sample_from_a_parent_folder(tmp_path: Path) -> None:
    """docs/spec/context.md §1"""
    for number, stone in enumerate(TOPICS):
        body = f"# About {stone}\n\nThe {stone} here is cut by hand.\n\n{FOOTER.format(number)}"
        put_note(tmp_path, f"stones/{stone}/{stone}.md", body)
    async with serving(tmp_path) as lithos:
        answer = await lithos.call("lithos_search", query="copy this note granite", mode="fulltext")
        assert answer["results"]
        assert not any("Copy this" in row["snippet"] for row in answer["results"])


async def test_folder_is_sampled_again_once_it_has_grown(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        for number, stone in enumerate(TOPICS):
            content = f"The {stone} of this quarry is cut by hand.\n\n{FOOTER.format(number)}"
            await lithos.create(f"About {stone}", content, path="quarry")
            row, *_ = (await lithos.call("lithos_search", query=f"{stone} copy this note"))["results"]
            assert ("Copy this" in row["snippet"]) == (number < 7)


async def test_concurrent_searches_sample_a_folder_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_quarry(tmp_path)
    counted: list[str] = []
    count = Frames._count

    def counting(self: Frames, samples: Mapping[str, Sequence[Entry]]) -> dict[str, frozenset[int]]:
        counted.extend(samples)
        return count(self, samples)

    monkeypatch.setattr(Frames, "_count", counting)
    async with serving(tmp_path) as lithos:
        rows: list[dict[str, str]] = []

        async def search(stone: str) -> None:
            rows.extend((await lithos.call("lithos_search", query=f"{stone} copy this note"))["results"])

        async with trio.open_nursery() as nursery:
            for stone in TOPICS:
                nursery.start_soon(search, stone)
        assert counted == ["quarry"]
        assert rows
        assert not any("Copy this" in row["snippet"] for row in rows)


async def test_each_note_of_a_small_folder_is_counted_once(tmp_path: Path) -> None:
    """Four of nine notes share the last line.

    Four of nine notes are not a majority, regardless of their positions in the listing.
    """
    for folder, ends in (("first", range(4)), ("last", range(5, 9))):
        for number in range(9):
            end = f"Call the {folder} watch by radio.\n" if number in ends else ""
            put_note(tmp_path, f"{folder}/{number}.md", f"# {folder} {number}\n\nShift {number}.\n\n{end}")
    async with serving(tmp_path) as lithos:
        answer = await lithos.call("lithos_search", query="watch radio", mode="fulltext")
        assert len(answer["results"]) == 8
        assert all("watch by radio" in row["snippet"] for row in answer["results"])


async def test_template_lines_and_queries_are_left_out_as_boilerplate(tmp_path: Path) -> None:
    """docs/spec/context.md §1: template lines with the folder's name and fenced code count as well."""
    query = "```dataview\nTABLE rating, status FROM [[]] SORT file.mtime DESC\n```\n"
    for number, stone in enumerate(TOPICS):
        top = f"> [!info] Handbook\n> This page belongs to the handbook of {stone}, ask its owner first."
        own = f"The {stone} here is worth {number}{stone}."
        body = f"# About {number}\n\n{top}\n\n{own}\n\n## See also\n\n{query}"
        put_note(tmp_path, f"stones/{stone}/{number}.md", body)
    async with serving(tmp_path) as lithos:
        for asked in ("granite handbook owner", "granite rating status"):
            rows = (await lithos.call("lithos_search", query=asked, mode="fulltext"))["results"]
            assert rows
            text = (await lithos.call("lithos_context", query=asked))["text"]
            assert "granite here is worth 0granite" in text
            for shown in (text, *(row["snippet"] for row in rows)):
                assert "handbook" not in shown.lower()
                assert "mtime" not in shown
