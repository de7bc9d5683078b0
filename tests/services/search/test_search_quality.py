"""Search on the shipped evaluation samples, each of 60 short notes and 40 queries.

`docstrings`: the texts of modules, asked for by the modules' first lines; drawn by a random number
generator. `vault`: notes of a team and a household, asked for by names and in other words; written by hand.
"""

from __future__ import annotations

from pathlib import Path

from bench.measures import score_ranking
from bench.rankings import as_plain_words
from tests.servers import Lithos, serving

DATA = Path(__file__).parents[2] / "data"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


async def measure(data: Path, sample: str) -> dict[str, float]:
    """nDCG@10 of each mode."""
    folder = data / "knowledge"
    folder.mkdir()
    for number, (title, text) in enumerate(rows(f"{sample}_notes.tsv")):
        (folder / f"{number:02}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    async with serving(data) as lithos:
        assert len(lithos.server.catalogue) == 60
        return {mode: await ndcg(lithos, sample, mode) for mode in ("fulltext", "semantic", "hybrid")}


async def ndcg(lithos: Lithos, sample: str, mode: str) -> float:
    scores = []
    for query, titles in rows(f"{sample}_queries.tsv"):
        text = as_plain_words(query) if mode == "fulltext" else query
        found = await lithos.found(text, mode=mode)
        scores.append(score_ranking(found, dict.fromkeys(titles.split("|"), 1)).ndcg)
    assert len(scores) == 40
    return sum(scores) / len(scores)


async def test_hybrid_is_at_least_as_good_as_the_better_leg(tmp_path: Path) -> None:
    """behaviour 211: on the shipped evaluation sample."""
    figures = await measure(tmp_path, "docstrings")
    assert figures["hybrid"] >= max(figures["fulltext"], figures["semantic"]), figures
    assert min(figures.values()) > 0.5, figures


async def test_hybrid_stays_close_to_meaning_where_questions_use_other_words(tmp_path: Path) -> None:
    """behaviour 211: above full text; meaning alone is a hair better where few notes are much alike."""
    figures = await measure(tmp_path, "vault")
    assert figures["hybrid"] > figures["fulltext"] > 0.9, figures
    assert figures["hybrid"] > figures["semantic"] - 0.015, figures
