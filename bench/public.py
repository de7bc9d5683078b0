"""Benchmark of search on public collections: LoCoMo, BEAM 100K and CoSQA, as other projects publish theirs.

`python -m bench.public --locomo FILE --beam DIR --cosqa DIR --data DIR --tier TIER` prints a JSON line per
collection, mode and kind of question: nDCG@10, MRR@10, recall@10 and hit@1. The collections are not part of
the repository (see `bench/public_sets.py` for their sources). Each conversation is a vault of its own, with
one note per session, or per turn with `--notes turns`. With `--out`, each file has the ranking of every
question of a collection and mode.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import trio

from bench.judged import Collection, JudgedQuery
from bench.public_sets import NOTES, READERS
from bench.quality import by_kind
from bench.rankings import NOTES as MOST
from bench.rankings import Measured, figures_with_first, measure, ranker, write_rankings
from bench.report import print_report
from bench.vaults import Vaults, vault_folder

MODES = ("fulltext", "semantic", "hybrid")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.public",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    parser.add_argument("--beam", type=Path, metavar="DIR", help="folder chats/100K of BEAM")
    parser.add_argument("--cosqa", type=Path, metavar="DIR", help="folder of CoSQA's two files")
    parser.add_argument("--notes", choices=NOTES, default=NOTES[0], help="what one note of a conversation is")
    parser.add_argument("--tier", choices=("static", "accurate"), default="static", help="embeddings")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--data", type=Path, help="folder that keeps notes and indexes between runs")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the ranking of each question")
    options = parser.parse_args(arguments)
    if not any(getattr(options, name) for name in READERS):
        parser.error("no collection was named: use --locomo, --beam or --cosqa")
    return options


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for name, read in READERS.items():
            if path := getattr(options, name):
                trio.run(_measure, name, list(read(path, options.notes)), vaults, options)


async def _measure(
    name: str, collections: Sequence[Collection], vaults: Vaults, options: argparse.Namespace
) -> None:
    """Measure all vaults of one collection, and print the figures over all their questions."""
    queries = [query for collection in collections for query in collection.queries]
    found: dict[str, Measured] = defaultdict(lambda: Measured({}, {}))
    for collection in collections:
        documents = collection.documents()
        async with vaults.serving(collection) as server:
            for mode in options.modes:
                of_vault = await measure(ranker(server, mode, MOST), documents, collection.queries)
                found[mode] = found[mode].joined(of_vault)
    for mode, measured in found.items():
        for kind, some in by_kind(queries):
            print_report(
                "public", collection=name, notes=options.notes, tier=vaults.tier, mode=mode, kind=kind,
                vaults=len(collections), queries=len(some), figures=figures_with_first(measured, some),
            )  # fmt: skip
        if options.out:
            _write(options.out / f"{vaults.tier}-{name}-{options.notes}-{mode}.jsonl", measured, queries)


def _write(path: Path, measured: Measured, queries: Sequence[JudgedQuery]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rankings(path, measured, queries)


if __name__ == "__main__":
    main()
