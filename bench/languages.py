"""Benchmark of search within each language and across languages: nDCG@10, hit@1 and recall@10.

`python -m bench.languages --xquad DIR --data DIR` measures XQuAD (`xquad.LANGUAGE.json`, which is not part of
the repository), and without `--xquad` the notes of `tests/search/languages`. Each language is a vault of its
own. `within` has questions in the language of the notes, `from en` English questions about notes in another
language, and `to en` questions in another language about English notes. The last lines are the means over all
languages but English. With `--out`, each file has the ranking of every question of a language, direction and
mode.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import trio

from bench.judged import Collection, JudgedQuery
from bench.multilingual import ENGLISH, LanguageSet, collection_of, read_set, read_xquad
from bench.rankings import NOTES, Measured, figures_with_first, measure, ranker, write_rankings
from bench.report import print_report
from bench.vaults import TIERS, Vaults, vault_folder

MODES = ("fulltext", "semantic", "hybrid")
SHIPPED = Path(__file__).parent.parent / "tests" / "search" / "languages"
WITHIN, FROM_ENGLISH, TO_ENGLISH = "within", "from en", "to en"
#: Figures by (direction, mode), then by language.
Table = dict[tuple[str, str], dict[str, dict[str, float]]]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.languages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--xquad", type=Path, metavar="DIR", help="folder of xquad.LANGUAGE.json")
    parser.add_argument("--set", type=Path, default=SHIPPED, metavar="DIR", help="folder of own notes")
    parser.add_argument("--only", nargs="+", default=[], metavar="LANGUAGE", help="measure only these")
    parser.add_argument("--tier", choices=tuple(TIERS), default="static", help="embeddings")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--data", type=Path, help="folder that keeps notes and indexes between runs")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the ranking of each question")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    sets = read_xquad(options.xquad) if options.xquad else read_set(options.set)
    table: Table = defaultdict(dict)
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for language in [language for language in sets if not options.only or language in options.only]:
            asked = {WITHIN: sets[language], **across(sets, language, options.only)}
            trio.run(_measure, collection_of(sets[language], asked), language, vaults, options, table)
    for (direction, mode), by_language in table.items():
        others = [figures for language, figures in by_language.items() if language != ENGLISH]
        if others:
            figures = {name: round(sum(each[name] for each in others) / len(others), 2) for name in others[0]}
            print_report(
                "languages", tier=options.tier, language="mean", direction=direction, mode=mode,
                languages=len(others), figures=figures,
            )  # fmt: skip


def across(sets: Mapping[str, LanguageSet], language: str, only: Sequence[str]) -> dict[str, LanguageSet]:
    """Return the questions in other languages about the notes of `language`, by direction.

    The notes of other languages are asked in English, and English notes in every other language.
    """
    if language != ENGLISH:
        return {FROM_ENGLISH: sets[ENGLISH]} if ENGLISH in sets else {}
    others = [each for each in sets if each != ENGLISH and (not only or each in only)]
    return {f"{TO_ENGLISH}:{each}": sets[each] for each in others}


async def _measure(
    collection: Collection, language: str, vaults: Vaults, options: argparse.Namespace, table: Table
) -> None:
    documents = collection.documents()
    async with vaults.serving(collection) as server:
        for mode in options.modes:
            measured = await measure(ranker(server, mode, NOTES), documents, collection.queries)
            for direction, of, queries in _directions(collection.queries, language):
                figures = figures_of(measured, queries)
                table[direction, mode][of] = figures
                print_report(
                    "languages", tier=vaults.tier, language=of, direction=direction, mode=mode,
                    queries=len(queries), figures=figures,
                )  # fmt: skip
                if options.out:
                    options.out.mkdir(parents=True, exist_ok=True)
                    name = f"{vaults.tier}-{of}-{direction}-{mode}".replace(" ", "-")
                    write_rankings(options.out / f"{name}.jsonl", measured, queries)


def _directions(
    queries: Sequence[JudgedQuery], language: str
) -> Iterator[tuple[str, str, list[JudgedQuery]]]:
    """Yield each direction, the language that is not English, and the queries."""
    for kind in dict.fromkeys(query.kind for query in queries):
        direction, _, asked = kind.partition(":")
        yield direction, asked or language, [query for query in queries if query.kind == kind]


def figures_of(measured: Measured, queries: Sequence[JudgedQuery]) -> dict[str, float]:
    """Return nDCG@10, the share of questions with a right first note, and recall@10, times 100."""
    figures = figures_with_first(measured, queries)
    return {name: figures[name] for name in ("ndcg", "hit1", "recall")}


if __name__ == "__main__":
    main()
