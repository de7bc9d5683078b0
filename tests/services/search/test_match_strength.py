"""Match strength of rows, and the cache decision, on the shipped evaluation samples (behaviours 264, 265)."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

from tests.servers import Lithos, serving
from tests.services.search.test_search_quality import rows

NONSENSE = ("qwxz vbrk plomf", "zzyzx 918273 ggrh", "the of and to", "??? !!! ...")


def write_notes(data: Path, sample: str, without: set[str]) -> None:
    folder = data / "knowledge"
    folder.mkdir(parents=True)
    for number, (title, text) in enumerate(rows(f"{sample}_notes.tsv")):
        if title not in without:
            (folder / f"{number:02}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")


async def judge(lithos: Lithos, query: str, answers: set[str]) -> str:
    found = await lithos.call("lithos_cache_lookup", query=query)
    if not found["hit"]:
        return "miss"
    return "right" if found["document"]["title"] in answers else "wrong"


async def test_look_ups_without_an_answer_are_misses_and_many_with_one_are_hits(tmp_path: Path) -> None:
    """behaviour 264: the notes that answer every other question are taken away, first these, then those.

    `python -m bench.lookup` holds the development collections to 5 % false hits. The samples here have twins
    on purpose: E1047 and E1074, releases 4.1 and 5.0.
    """
    verdicts: Counter[tuple[bool, str]] = Counter()
    for sample, removed in product(("vault", "docstrings"), (0, 1)):
        questions = [(query, set(titles.split("|"))) for query, titles in rows(f"{sample}_queries.tsv")]
        gone = set[str]().union(*(titles for _, titles in questions[removed::2]))
        data = tmp_path / f"{sample}-{removed}"
        write_notes(data, sample, gone)
        async with serving(data) as lithos:
            for query, titles in questions:
                left = titles - gone
                verdicts[bool(left), await judge(lithos, query, left)] += 1
    answered = sum(count for (is_answered, _), count in verdicts.items() if is_answered)
    assert 60 < answered < 100, verdicts
    assert verdicts[False, "wrong"] <= 0.05 * (verdicts.total() - answered), verdicts
    assert verdicts[True, "right"] >= 0.25 * answered, verdicts


async def test_a_question_with_nothing_to_find_has_only_weak_rows(tmp_path: Path) -> None:
    """behaviour 265"""
    write_notes(tmp_path, "vault", set())
    async with serving(tmp_path) as lithos:
        seen = 0
        for query in NONSENSE:
            strengths = [row["match"] for row in (await lithos.call("lithos_search", query=query))["results"]]
            assert set(strengths) <= {"weak"}, (query, strengths)
            seen += len(strengths)
        assert seen > 0


async def test_rows_tell_a_sure_answer_from_what_is_merely_near(tmp_path: Path) -> None:
    """behaviour 265: strong only among the first three; in every mode (behaviour 257)."""
    write_notes(tmp_path, "vault", set())
    async with serving(tmp_path) as lithos:
        title = rows("vault_notes.tsv")[0][0]
        found = (await lithos.call("lithos_search", query=title))["results"]
        assert (found[0]["title"], found[0]["match"]) == (title, "strong")
        assert len(found) > 3
        assert {row["match"] for row in found[3:]} == {"weak"}
        words = (await lithos.call("lithos_search", query=title, mode="fulltext"))["results"]
        assert (words[0]["title"], words[0]["match"]) == (title, "strong")
        for mode in ("fulltext", "semantic", "graph"):
            found = (await lithos.call("lithos_search", query=title, mode=mode, limit=20))["results"]
            assert all(row["match"] in ("strong", "fair", "weak") for row in found), mode
            assert "strong" in {row["match"] for row in found}, mode
            nonsense = await lithos.call("lithos_search", query="qwxzv plonk frobnitz", mode=mode)
            assert {row["match"] for row in nonsense["results"]} <= {"weak"}, mode
