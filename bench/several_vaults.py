"""One ranking over several vaults (`vault: "*"`) beside that of one vault with the same notes.

`python -m bench.several_vaults EVAL` splits each judged collection over three vaults, by document at random
or by topic (documents as they stand in the collection, which has neighbours together), and prints nDCG at 10
of the whole, of the three as one, and the ratio of both (aim: 98 %). `--merged`: also of rows merged by the
score that each vault gives them alone. `--way` asks for a mode of search, or for retrieval.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import trio
from attrs import evolve, frozen

from bench.judged import Collection, read_collections
from bench.rankings import MODES, NOTES, Measured, Rank, as_plain_words, measure, ranker
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.services.retrieve.retrieve import RetrieveRequest
from lithos.services.search.search import SearchRequest
from lithos.services.services import Services
from lithos.services.vaults.retrieving import JointRetrieve
from lithos.services.vaults.searching import JointSearch

#: Vaults that a collection is split over.
PARTS: Final = 3
SPLITS: Final = ("random", "topic")
#: The least per cent of the unsplit nDCG.
AIM: Final = 98.0


def split_documents(collection: Collection, split: str) -> dict[str, int]:
    """The vault of each document, 0 to 2."""
    documents = list(dict.fromkeys(chunk.doc for chunk in collection.chunks))
    if split == "random":
        return {doc: int(hashlib.md5(doc.encode()).hexdigest(), 16) % PARTS for doc in documents}
    # Pages of a site have paths, so their order is that of folders.
    ordered = sorted(documents) if any("/" in doc for doc in documents) else documents
    return {doc: place * PARTS // len(ordered) for place, doc in enumerate(ordered)}


def split_collection(collection: Collection, split: str) -> list[Collection]:
    """The three parts, each with the notes of its documents and all queries."""
    vaults = split_documents(collection, split)
    return [
        evolve(
            collection,
            name=f"{collection.name}-{split}-{part}",
            chunks=tuple(chunk for chunk in collection.chunks if vaults[chunk.doc] == part),
        )
        for part in range(PARTS)
    ]


def joint_ranker(vaults: Mapping[str, Services], way: str) -> Rank:
    """A function from a query to the ids of notes of all vaults, best first."""

    async def search(query: str) -> list[str]:
        text = as_plain_words(query) if way == "fulltext" else query
        answer = await JointSearch(vaults).look(SearchRequest(query=text, mode=way, limit=NOTES))
        if answer.failed or answer.lacking:
            raise RuntimeError(f"{way} answered without a part: {answer.message}")
        return [hit.entry.note.id for _, hit in answer.rows]

    async def retrieve(query: str) -> list[str]:
        retrieved = await JointRetrieve(vaults).retrieve(RetrieveRequest(query=query, limit=NOTES))
        if retrieved.failed or any(answer.degraded for answer in retrieved.answers.values()):
            raise RuntimeError(f"retrieval answered without a part: {retrieved.failed}")
        return [result.hit.entry.note.id for _, result in retrieved.rows]

    return retrieve if way == "retrieve" else search


def merging_ranker(vaults: Mapping[str, Services], way: str) -> Rank:
    """The same of rows that each vault ranks alone, merged by their scores."""

    async def rank(query: str) -> list[str]:
        text = as_plain_words(query) if way == "fulltext" else query
        scored: list[tuple[float, str]] = []
        for services in vaults.values():
            if way == "retrieve":
                found = await services.retrieve.retrieve(RetrieveRequest(query=text, limit=NOTES))
                hits = [result.hit for result in found.results]
            else:
                request = SearchRequest(query=text, mode=way, limit=NOTES)
                hits = list((await services.search.look(request)).hits)
            scored += [(hit.score, hit.entry.note.id) for hit in hits]
        return [note_id for _, note_id in sorted(scored, key=lambda each: -each[0])][:NOTES]

    return rank


@frozen
class Options:
    """What is measured."""

    ways: tuple[str, ...]
    splits: tuple[str, ...]
    is_merged: bool


async def measure_collection(collection: Collection, vaults: Vaults, options: Options) -> None:
    """Print a line for each split and way."""
    documents = collection.documents()
    whole: dict[str, Measured] = {}
    async with vaults.serving(collection) as server:
        for way in options.ways:
            whole[way] = await measure(ranker(server, way), documents, collection.queries)
    for split in options.splits:
        async with AsyncExitStack() as stack:
            parts = {
                part.name: await stack.enter_async_context(vaults.serving(part))
                for part in split_collection(collection, split)
            }
            for way in options.ways:
                joint = await measure(joint_ranker(parts, way), documents, collection.queries)
                merged = None
                if options.is_merged:
                    merged = await measure(merging_ranker(parts, way), documents, collection.queries)
                tell(collection, vaults.tier, split, way, whole[way], joint, merged)


def tell(
    collection: Collection,
    tier: str,
    split: str,
    way: str,
    whole: Measured,
    joint: Measured,
    merged: Measured | None,
) -> None:
    """Print one line of the table, and the report."""
    queries = collection.queries
    least, reached = (each.figures(queries)["ndcg"] for each in (whole, joint))
    alone = None if merged is None else merged.figures(queries)["ndcg"]
    share = 100 * reached / least
    print(
        f"| {collection.name} | {tier} | {split} | {way} | {len(queries)} | {least:.2f} | {reached:.2f} | "
        f"{share:.2f} % | {joint.changed(whole, queries)} | "
        f"{'' if alone is None else f'{alone:.2f} ({100 * alone / least:.1f} %)'} |",
        flush=True,
    )
    print_report(
        "several_vaults",
        collection=collection.name,
        tier=tier,
        split=split,
        way=way,
        queries=len(queries),
        ndcg={"whole": least, "joint": reached, "merged": alone},
        share=round(share, 2),
        is_within=share >= AIM,
    )


async def measure_all(
    collections: Sequence[Collection], vaults: Vaults, options: Options, say: Callable[[str], None] = print
) -> None:
    """Print the table."""
    say("| collection | tier | split | way | queries | whole | as one | share | changed | merged by score |")
    say("|---|---|---|---|---|---|---|---|---|---|")
    for collection in collections:
        await measure_collection(collection, vaults, options)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    given = os.environ.get("LITHOS_EVAL")
    parser = argparse.ArgumentParser(
        prog="python -m bench.several_vaults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "collections", type=Path, nargs="?" if given else None, default=given and Path(given),
        help="folder of judged collections",
    )  # fmt: skip
    parser.add_argument("--only", nargs="*", default=[], help="names of collections")
    parser.add_argument("--tier", choices=("static", "accurate"), default="static")
    parser.add_argument("--split", choices=SPLITS, action="append", help="both, unless given")
    parser.add_argument("--way", choices=MODES, action="append", help="hybrid, unless given")
    parser.add_argument("--sample", type=int, help="queries of each collection, all unless given")
    parser.add_argument("--merged", action="store_true", help="also rows merged by their own scores")
    parser.add_argument("--keep", type=Path, help="folder that keeps the vaults for the next run")
    return parser.parse_args(arguments)


def main() -> None:
    given = parse_arguments()
    collections = [each.sample(given.sample) for each in read_collections(given.collections, given.only)]
    options = Options(tuple(given.way or ("hybrid",)), tuple(given.split or SPLITS), given.merged)
    with vault_folder(given.keep) as folder:
        trio.run(measure_all, collections, Vaults(folder, given.tier), options)


if __name__ == "__main__":
    main()
