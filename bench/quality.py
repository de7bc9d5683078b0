"""Benchmark of search and retrieval quality on judged collections: nDCG@10, MRR@10 and Recall@10.

`python -m bench.quality COLLECTIONS --data DIR` prints a JSON line for each mode. COLLECTIONS is a folder of
collections (see `bench/judged.py`). The default is the folder in `LITHOS_EVAL`. `--conversations` also
measures generated conversations with one note per turn and per session. A document counts by its best note.
The server runs in this process, and DIR stores the notes and indexes for the next run.

The 95 % intervals are for the differences to hybrid search. For hybrid search itself, they are for the
difference to the better of full-text and semantic search. Queries are resampled in pairs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import trio

from bench.conversations import LAYOUTS as TALKS
from bench.conversations import as_collection
from bench.dialogues import generate_conversations
from bench.judged import LAYOUTS, Collection, JudgedQuery, read_collections
from bench.rankings import MODES, NOTES, Measured, measure, ranker
from bench.report import print_report
from bench.vaults import TIERS, Vaults, vault_folder

LEGS = ("fulltext", "semantic")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--conversations", action="store_true", help="also measure generated conversations")
    return parser.parse_args(arguments)


def add_collection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all benchmarks on judged collections have in common."""
    given = os.environ.get("LITHOS_EVAL")
    parser.add_argument(
        "collections",
        type=Path,
        nargs="?",
        default=given and Path(given),
        help="folder of collections; default: $LITHOS_EVAL",
    )
    parser.add_argument("--data", type=Path, help="folder that keeps notes and indexes between runs")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="measure only these collections"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="use only N queries of each collection")
    parser.add_argument("--tier", choices=tuple(TIERS), default="static", help="embeddings")


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for name, layout, collection in _parts(options):
            trio.run(_measure, name, layout, collection.sample(options.sample), vaults, options.modes)


def _parts(options: argparse.Namespace) -> Iterator[tuple[str, str, Collection]]:
    for collection in read_collections(options.collections, options.only) if options.collections else ():
        for layout, laid_out in distinct_layouts(collection, options.layouts):
            yield collection.name, layout, laid_out
    if options.conversations:
        conversations = generate_conversations()
        for layout in TALKS:
            yield "conversations", layout, as_collection(conversations, layout)


def distinct_layouts(collection: Collection, layouts: Iterable[str]) -> Iterator[tuple[str, Collection]]:
    """Yield the collection in each layout. Layouts that give equal notes and queries appear once."""
    seen: set[tuple[str, int]] = set()
    for layout in layouts:
        laid_out = collection.laid_out(layout)
        what = (laid_out.fingerprint(), len(laid_out.queries))
        if what not in seen:
            yield layout, laid_out
        seen.add(what)


async def _measure(
    name: str, layout: str, collection: Collection, vaults: Vaults, modes: Sequence[str]
) -> None:
    documents, measured = collection.documents(), dict[str, Measured]()
    async with vaults.serving(collection) as server:
        for mode in dict.fromkeys((*modes, "hybrid")):
            measured[mode] = await measure(ranker(server, mode, NOTES), documents, collection.queries)
    for kind, queries in by_kind(collection.queries):
        legs = {leg: measured[leg].figures(queries)["ndcg"] for leg in LEGS if leg in measured}
        for mode in modes:
            other = max(legs, key=legs.__getitem__, default="hybrid") if mode == "hybrid" else "hybrid"
            print_report(
                "quality",
                collection=name,
                layout=layout,
                tier=vaults.tier,
                mode=mode,
                kind=kind,
                queries=len(queries),
                figures=measured[mode].figures(queries),
                over={other: measured[mode].over(measured[other], queries)},
            )


def by_kind(queries: Sequence[JudgedQuery]) -> Iterator[tuple[str, list[JudgedQuery]]]:
    """Yield all queries. If there are several kinds, then yield the queries of each kind."""
    yield "all", list(queries)
    kinds = sorted({query.kind for query in queries})
    for kind in kinds if len(kinds) > 1 else ():
        yield kind, [query for query in queries if query.kind == kind]


if __name__ == "__main__":
    main()
