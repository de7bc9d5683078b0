"""`lithos_cache_lookup` as a decision: how often it hits rightly, misses, and hits where nothing answers.

`python -m bench.lookup COLLECTIONS --data DIR` takes half of the documents away, so that about half of the
queries have no answer, and looks all of them up. A rule `S:A` is `search.semantic_threshold` and
`search.cache_threshold`. Of queries with an answer `right`, `wrong` and `missed` are percentages, of those
without one `false_hits`; `balance` is what is left of 100 after misses and false hits.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio
from attrs import evolve, frozen

from bench.judged import LAYOUTS, Collection, JudgedQuery, read_collections
from bench.quality import add_collection_options, serving_collection
from bench.report import print_report
from lithos.app.server import Server
from lithos.config.sections import SearchConfig
from lithos.services.notes.knowledge import CacheRequest

RULES = (
    "0.3:0",
    "0.5:0",
    "0.6:0",
    "0.7:0",
    "0.3:0.5",
    "0.3:0.55",
    "0.3:0.6",
    "0.3:0.65",
    "0.3:0.7",
    "0.3:0.8",
)


@frozen
class Halved:
    """A collection without half of its documents; queries whose answers are gone entirely."""

    kept: Collection
    unanswered: frozenset[str]


def halve(collection: Collection, seed: int = 7) -> Halved:
    """Take documents away: those of half of the queries where a query has many, else half of all."""
    rng = random.Random(seed)
    queries = collection.queries
    several = sum(len(query.grades) for query in queries) > 2 * len(queries)
    documents = sorted({chunk.doc for chunk in collection.chunks})
    gone = (
        {doc for query in rng.sample(queries, len(queries) // 2) for doc in query.grades}
        if several
        else set(rng.sample(documents, len(documents) // 2))
    )
    chunks = tuple(chunk for chunk in collection.chunks if chunk.doc not in gone)
    unanswered = frozenset(query.id for query in queries if gone.issuperset(query.grades))
    return Halved(evolve(collection, name=f"{collection.name}-halved", chunks=chunks), unanswered)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lookup", description=__doc__)
    add_collection_options(parser)
    parser.add_argument("--layout", choices=LAYOUTS, default="chunks", help="what the notes are made of")
    parser.add_argument("--rules", nargs="+", default=RULES, metavar="S:A")
    options = parser.parse_args()
    for collection in read_collections(options.collections, options.only):
        halved = halve(collection.laid_out(options.layout).sample(options.sample))
        for rule in options.rules:
            trio.run(_measure, halved, options.data, rule)


async def _measure(halved: Halved, kept: Path | None, rule: str) -> None:
    similarity, agreement = map(float, rule.split(":"))
    search = SearchConfig(semantic_threshold=similarity, cache_threshold=agreement, tier="static")
    documents = halved.kept.documents()
    async with serving_collection(halved.kept, kept, search) as server:
        outcomes = [
            await _look_up(server, documents, query, query.id in halved.unanswered)
            for query in halved.kept.queries
        ]
    answered = [outcome for outcome in outcomes if not outcome.startswith("un")]
    missed, right = _share(answered, "missed"), _share(answered, "right")
    false_hits = _share([outcome for outcome in outcomes if outcome.startswith("un")], "unanswered hit")
    print_report(
        "lookup",
        collection=halved.kept.name,
        rule=rule,
        answered=len(answered),
        unanswered=len(outcomes) - len(answered),
        right=right,
        wrong=round(100 - missed - right, 1),
        missed=missed,
        false_hits=false_hits,
        balance=round(100 - missed - false_hits, 1),
    )


async def _look_up(
    server: Server, documents: Mapping[str, str], query: JudgedQuery, is_unanswered: bool
) -> str:
    answer = await server.knowledge.look_up(CacheRequest(query=query.text))
    if is_unanswered:
        return "unanswered" if answer.entry is None else "unanswered hit"
    if answer.entry is None:
        return "missed"
    return "right" if documents[answer.entry.note.id] in query.grades else "wrong"


def _share(outcomes: Sequence[str], wanted: str) -> float:
    return round(100 * outcomes.count(wanted) / max(1, len(outcomes)), 1)


if __name__ == "__main__":
    main()
