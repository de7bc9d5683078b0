"""Search for queries and texts in all scripts and of all lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.search.service.hybrid import LONGEST_QUERY
from tests.servers import Lithos, load_once, serving

MODES = ("fulltext", "semantic", "hybrid")
PUNCTUATION = (
    '"', '""', "(", ")", "a AND", "+", "- -", "title:", "C++ (zebra", 'zebra"', "zebra]", "\\", "zebra:lion:",
    "'", "*", "??", "zebra~2^",
)  # fmt: skip
SCRIPTS = {
    "東京特許許可局の建物": ("東京", "許可", "特許許可局", "建物"),
    "全文検索エンジンを作る": ("検索", "エン", "作る"),
    "우리나라 만세 한국어": ("나라", "한국", "국어"),
    "ภาษาไทยไม่มีช่องว่าง": ("ไทย", "ภา", "าไ"),
}


async def test_punctuation_in_a_query_causes_no_error(lithos: Lithos) -> None:
    """behaviour 57"""
    await lithos.create("Zebra", "zebra")
    for mode in MODES:
        for query in PUNCTUATION:
            answer = await lithos.call("lithos_search", query=query, mode=mode)
            found = [row["title"] for row in answer["results"]]
            if mode == "hybrid" and "zebra" in query:
                assert found == ["Zebra"], query
        for blank in ("", " ", "\n"):
            assert await lithos.found(blank, mode=mode) == []


async def test_substrings_of_two_characters_are_found(lithos: Lithos) -> None:
    """behaviour 180"""
    await lithos.create("Decoy", "Nothing of it here.")
    for number, text in enumerate(SCRIPTS):
        await lithos.create(f"Far away {number}", f"Some English before {text} and after.")
    for number, queries in enumerate(SCRIPTS.values()):
        for query in queries:
            for mode in ("fulltext", "hybrid"):
                assert (await lithos.found(query, mode=mode, threshold=1))[:1] == [f"Far away {number}"], (
                    query,
                    mode,
                )


async def test_search_ignores_accents(lithos: Lithos) -> None:
    """behaviour 181"""
    await lithos.create("Accent", "un café à Zürich")
    await lithos.create("Plain", "a cafe in zurich")
    for query in ("cafe", "café", "CAFÉ", "cafe\u0301", "Zurich", "zürich"):
        for mode in ("fulltext", "hybrid"):
            assert set(await lithos.found(query, mode=mode)) == {"Accent", "Plain"}


async def test_every_part_of_a_long_note_is_found(lithos: Lithos) -> None:
    """behaviour 182"""
    marks = ["beginzqx", "middlezqx", "endzqx"]
    filler = "lorem ipsum dolor sit amet\n" * 18_000
    await lithos.create("Long", f"{marks[0]} {filler} {marks[1]} {filler} {marks[2]}")
    for mark in marks:
        (row,) = (await lithos.call("lithos_search", query=mark, mode="fulltext"))["results"]
        assert mark in row["snippet"]
        assert len(row["snippet"]) < 400


async def test_chunk_is_embedded_with_its_headings_but_shown_without_them(tmp_path: Path) -> None:
    """behaviour 212"""
    # The section is one paragraph longer than a chunk, so its heading is in the previous chunk.
    section = ("The weather was neither good nor bad on this day. " * 12).strip()
    async with serving(tmp_path) as lithos:
        await lithos.create(
            "Antarctica", f"Introduction of few words.\n\n## Penguins\n\n### Colony\n\n{section}"
        )
        answer = await lithos.call("lithos_search", query="weather of the day", mode="semantic")
    (row,) = answer["results"]
    assert row["snippet"] == section
    query, embedded, bare = load_once("builtin").encode(
        ["weather of the day", f"Antarctica - Penguins > Colony\n{section}", section]
    )
    assert row["similarity"] == pytest.approx(float(query @ embedded), abs=0.002)
    assert row["similarity"] != pytest.approx(float(query @ bare), abs=0.002)


async def test_query_syntax_works_in_fulltext_mode(lithos: Lithos) -> None:
    await lithos.create("Zebra", "striped horse")
    await lithos.create("Lion", "hunts the zebra, not a horse")
    for query, titles in (
        ("title:zebra", {"Zebra"}),
        ('"striped horse"', {"Zebra"}),
        ("+horse -hunts", {"Zebra"}),
        ("body:zebra", {"Lion"}),
        ("zebra AND hunts", {"Lion"}),
        ("(zebra OR lion) NOT striped", {"Lion"}),
    ):
        assert set(await lithos.found(query, mode="fulltext")) == titles, query


async def test_query_as_long_as_a_note_is_answered(lithos: Lithos) -> None:
    """behaviour 57: a long query does not block the event loop."""
    await lithos.create("Zebra", "zebra 東京")
    for mode in MODES:
        for query in ("zebra " * 600, "東京" * 150_000, "zebra " * 100_000, "(" * 100_000):
            answer = await lithos.call("lithos_search", query=query, mode=mode)
            found = [row["title"] for row in answer["results"]]
            if "(" not in query and mode != "semantic":
                # A query of this length is not parsed. Only plain words at its beginning count.
                assert found == ([] if mode == "fulltext" and len(query) > LONGEST_QUERY else ["Zebra"])
        late = "(" * LONGEST_QUERY + " zebra"
        answer = await lithos.call("lithos_search", query=late, mode=mode, threshold=1)
        assert answer["results"] == []
        assert ("4,000" in answer.get("message", "")) == (mode == "fulltext")
