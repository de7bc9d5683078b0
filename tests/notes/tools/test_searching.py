"""`lithos_search` in the fulltext, semantic and hybrid modes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lithos.search.settings import SearchConfig
from tests.servers import Clock, Lithos, put_note, refusal, serving

MODES = ("fulltext", "semantic", "hybrid")


async def test_search_row_has_exactly_the_documented_keys(lithos: Lithos, clock: Clock) -> None:
    """behaviours 58, 62"""
    note = await lithos.create("Zebra facts", "Zebras are striped.", path="zoo", source_url="https://e.org/z")
    for mode in MODES:
        answer = await lithos.call("lithos_search", query="zebra", mode=mode)
        assert list(answer) == ["results"]
        (row,) = answer["results"]
        more = ["similarity", "match"] if mode == "semantic" else ["match"]
        assert list(row) == [
            "id", "title", "snippet", "score", "path", "source_url", "updated_at", "is_stale",
            "derived_from_ids", *more,
        ]  # fmt: skip
        assert row["match"] in ("strong", "fair", "weak")
        assert row | {"score": 0, "snippet": "", "similarity": 0, "match": ""} == {
            "id": note, "title": "Zebra facts", "snippet": "", "score": 0, "path": "zoo/zebra-facts.md",
            "source_url": "https://e.org/z", "updated_at": clock.text, "is_stale": False,
            "derived_from_ids": [], "similarity": 0, "match": "",
        }  # fmt: skip
        assert "striped" in row["snippet"]


async def test_tag_filter_requires_all_tags(lithos: Lithos) -> None:
    """behaviour 54"""
    odd = ["topic:deep: x", "two words", 'quo"te', "a AND b", "日本", "-minus"]
    await lithos.create("Both", "zebra", tags=[*odd, "z"])
    await lithos.create("One", "zebra", tags=[odd[0]])
    for mode in MODES:
        assert set(await lithos.found("zebra", mode=mode, tags=[odd[0]])) == {"Both", "One"}
        assert await lithos.found("zebra", mode=mode, tags=odd) == ["Both"]
        for tag in odd:
            assert "Both" in await lithos.found("zebra", mode=mode, tags=[tag])
        assert await lithos.found("zebra", mode=mode, tags=["topic"]) == []
        assert await lithos.found("zebra", mode=mode, tags=["TWO WORDS"]) == ["Both"]
        assert len(await lithos.found("zebra", mode=mode, tags=[])) == 2


async def test_author_filter_is_not_parsed_as_a_query(lithos: Lithos) -> None:
    """behaviours 55, 56"""
    authors = ["ann", "ann OR bob", "a*", "+bob", 'x" OR "y', "author:ann", "é"]
    for number, author in enumerate(authors):
        await lithos.create(f"N{number}", "zebra", agent=author, path=f"p{number % 2}")
    for mode in MODES:
        for number, author in enumerate(authors):
            assert await lithos.found("zebra", mode=mode, author=author) == [f"N{number}"]
        assert await lithos.found("zebra", mode=mode, author="ann", path_prefix="p0/") == ["N0"]
        assert await lithos.found("zebra", mode=mode, author="ann", path_prefix="p1/") == []
        assert await lithos.found("zebra", mode=mode, author="nobody") == []


async def test_path_prefix_is_treated_as_plain_text(lithos: Lithos) -> None:
    """behaviour 56"""
    for path in ("proc/a.md", "procedures/b.md", "p.*c/c.md", "x/proc/d.md"):
        await lithos.create(path, "zebra", path=path)
    for mode in MODES:
        for prefix, found in (
            ("proc", {"proc/a.md", "procedures/b.md"}),
            ("proc/", {"proc/a.md"}),
            ("proc/a.md", {"proc/a.md"}),
            ("p.*", {"p.*c/c.md"}),
            ("PROC", set()),
            ("/proc", set()),
            ("z" * 5000, set()),
        ):
            assert set(await lithos.found("zebra", mode=mode, path_prefix=prefix, threshold=0)) == found, (
                mode,
                prefix,
            )


async def test_search_filters_apply_before_the_limit(lithos: Lithos) -> None:
    """behaviours 54, 56"""
    for number in range(30):
        await lithos.create(f"Zebra {number}", "zebra zebra zebra", tags=["common"])
    await lithos.create("Rare", "Many words, and one of them is zebra, the animal.", tags=["common", "rare"])
    for mode in MODES:
        assert await lithos.found("zebra", mode=mode, tags=["rare"], limit=1, threshold=0) == ["Rare"]


async def test_entities_filter_requires_an_exact_match(tmp_path: Path) -> None:
    """behaviour 67"""
    put_note(tmp_path, "a.md", "---\nentities: [Ada Lovelace, Engine]\n---\n# A\n\nzebra\n")
    put_note(tmp_path, "b.md", "---\nentities: [Engine]\n---\n# B\n\nzebra\n")
    async with serving(tmp_path) as lithos:
        for mode in MODES:
            assert set(await lithos.found("zebra", mode=mode, entities=["Engine"])) == {"A", "B"}
            assert await lithos.found("zebra", mode=mode, entities=["Engine", "Ada Lovelace"]) == ["A"]
            assert await lithos.found("zebra", mode=mode, entities=["engine"]) == []
            assert await lithos.found("zebra", mode=mode, entities=["Ada"]) == []
        assert await lithos.listed(entities=["Engine", "Ada Lovelace"]) == ["A"]
        assert await lithos.listed(entities=["Ada"]) == []
        assert await lithos.found("lovelace", mode="fulltext") == ["A"]


async def test_semantic_search_returns_notes_above_the_threshold_once(lithos: Lithos) -> None:
    """behaviour 58"""
    long = "\n\n".join(f"Paragraph {i}. The zebra is a striped animal of the savanna. " * 6 for i in range(8))
    await lithos.create("Zebras", long)
    await lithos.create("Money", "How to file taxes for a small company.")
    answer = await lithos.call("lithos_search", query="striped animal", mode="semantic", threshold=0)
    assert sorted(row["title"] for row in answer["results"])[-1:] == ["Zebras"]
    assert len({row["id"] for row in answer["results"]}) == len(answer["results"])
    best = answer["results"][0]
    assert best["title"] == "Zebras"
    for row in answer["results"]:
        assert row["score"] == row["similarity"]
        assert 0 <= row["score"] <= 1
    assert await lithos.found("striped animal", mode="semantic", threshold=0.99) == []
    assert await lithos.found("striped animal", mode="semantic", threshold=best["score"]) == ["Zebras"]
    assert await lithos.found("xqzzvw", mode="semantic") == []


async def test_invalid_modes_and_numbers_are_refused(tmp_path: Path) -> None:
    """behaviour 59"""
    async with serving(tmp_path, search=SearchConfig(max_results=5)) as lithos:
        for number in range(7):
            await lithos.create(f"Zebra {number}", "zebra")
        for mode in ("vector", "HYBRID"):
            assert "mode" in refusal(await lithos.call("lithos_search", query="x", mode=mode), "invalid_mode")
        for threshold in (-0.1, 1.1, math.nan, "nan", 10**300):
            answer = await lithos.call("lithos_search", query="zebra", threshold=threshold)
            assert "threshold" in refusal(answer, "invalid_input")
        for limit, rows in ((-1, 1), (0, 1), (1, 1), ("2", 2), (50, 5), (10**18, 5), (-(10**18), 1)):
            for mode in MODES:
                assert len(await lithos.found("zebra", limit=limit, mode=mode)) == rows


@pytest.mark.parametrize("fusion", ["blend", "rrf"])
async def test_hit_in_both_lists_outranks_a_hit_in_one_list(tmp_path: Path, fusion: str) -> None:
    """behaviours 60, 61"""
    async with serving(tmp_path, search=SearchConfig(fusion=fusion)) as lithos:
        await lithos.create("Both", "The zebra is a striped animal.")
        # The text shares a word with the query, but not its meaning.
        await lithos.create("Words", "zebra xqzzvw qqwx kkjjq zzvq wwxq vvbq")
        await lithos.create("Meaning", "A striped animal of the savanna, like a horse.")
        answer = await lithos.call("lithos_search", query="zebra striped animal")
        titles = [row["title"] for row in answer["results"]]
        assert titles[0] == "Both"
        assert len(titles) == len(set(titles)) == 3
        scores = [row["score"] for row in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


async def test_search_result_shows_its_staleness(lithos: Lithos, clock: Clock) -> None:
    """behaviour 62"""
    await lithos.create("Zebra", "zebra", ttl_hours=1)
    for hours, stale in ((0, False), (1, False), (1 / 3600, True)):
        clock.advance(hours=hours)
        for mode in MODES:
            (row,) = (await lithos.call("lithos_search", query="zebra", mode=mode))["results"]
            assert row["is_stale"] is stale
            assert row["source_url"] == ""


async def test_search_directly_after_a_write_finds_the_note(lithos: Lithos) -> None:
    """behaviour 194"""
    for number in range(5):
        note = await lithos.create(f"Note {number}", f"zebra{number}zq striped")
        for mode, query in (
            ("fulltext", f"zebra{number}zq"),
            ("hybrid", f"zebra{number}zq"),
            ("semantic", "striped"),
        ):
            rows = (await lithos.call("lithos_search", query=query, mode=mode))["results"]
            assert note in [row["id"] for row in rows]
        assert (await lithos.listed(content_query=f"zebra{number}zq")) == [f"Note {number}"]
        await lithos.write(f"Note {number}", "plain", id=note)
        assert await lithos.found(f"zebra{number}zq", mode="fulltext") == []
