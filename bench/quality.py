"""How good the search modes are on judged collections: nDCG@10, MRR@10 and Recall@10.

`python -m bench.quality COLLECTIONS --data DIR`. COLLECTIONS is a folder of collections (see
`bench/judged.py`); without it `LITHOS_EVAL` names the folder. Every chunk becomes a note (`--layout` knows
other ways), a document counts by its best note. The server runs in this process; DIR keeps the notes and
indexes for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import attrs
import trio
from attrs import frozen

from bench.judged import LAYOUTS, Collection, JudgedQuery, read_collections
from bench.measures import Score, mean, paired_difference, score_ranking
from bench.report import print_report
from lithos.app import running_server
from lithos.app.server import Server
from lithos.config.catalogue import Config
from lithos.config.sections import LcmaConfig, SearchConfig, StorageConfig
from lithos.core.text.analysis import fold, words
from lithos.services.search.search import SearchRequest

#: Notes asked for: enough for ten documents of several chunks each.
NOTES = 50
LEGS = ("fulltext", "semantic")
#: `retrieve` as every query would find it on the first day, and as it is after all queries before it.
RETRIEVES = ("retrieve", "retrieve_used")
FORGETFUL = LcmaConfig(rerank_weights={"coactivation": 0.0}, rerank_usage_weight=0.0)
Rank = Callable[[str], Awaitable[list[str]]]


@frozen
class Measured:
    """The scores of one way to search, by query."""

    mode: str
    scores: Mapping[str, Score]

    def figures(self, queries: Sequence[JudgedQuery]) -> dict[str, float]:
        """The means over these queries."""
        chosen = [self.scores[query.id] for query in queries]
        return {
            field.name: mean([getattr(score, field.name) for score in chosen])
            for field in attrs.fields(Score)
        }

    def ndcg(self, queries: Sequence[JudgedQuery]) -> list[float]:
        return [self.scores[query.id].ndcg for query in queries]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    add_collection_options(parser)
    parser.add_argument("--modes", nargs="+", default=[*LEGS, "hybrid", *RETRIEVES])
    parser.add_argument("--layout", choices=LAYOUTS, default="chunks", help="what the notes are made of")
    parser.add_argument("--fusion", choices=("blend", "rrf"), default="blend")
    parser.add_argument("--weight", type=float, default=SearchConfig().semantic_weight)
    parser.add_argument("--threshold", type=float, default=SearchConfig().semantic_threshold)
    return parser.parse_args(arguments)


def add_collection_options(parser: argparse.ArgumentParser) -> None:
    """What every measurement on judged collections is told."""
    given = os.environ.get("LITHOS_EVAL")
    parser.add_argument(
        "collections",
        type=Path,
        nargs="?" if given else None,
        default=given and Path(given),
        help="folder of collections; default: $LITHOS_EVAL",
    )
    parser.add_argument("--data", type=Path, help="folder that keeps notes and indexes between runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these collections only")
    parser.add_argument("--sample", type=int, metavar="N", help="only N queries of each collection")


def main() -> None:
    options = parse_arguments()
    search = SearchConfig(
        fusion=options.fusion,
        semantic_weight=options.weight,
        semantic_threshold=options.threshold,
        tier="static",
    )
    for collection in read_collections(options.collections, options.only):
        sampled = collection.laid_out(options.layout).sample(options.sample)
        measured = trio.run(_measure_all, sampled, options.data, search, options.modes)
        for kind, queries in _groups(sampled):
            _report(sampled.name, kind, queries, measured, search)


async def _measure_all(
    collection: Collection, kept: Path | None, search: SearchConfig, modes: Sequence[str]
) -> list[Measured]:
    measured = []
    for mode in modes:
        lcma = FORGETFUL if mode == "retrieve" else LcmaConfig()
        async with serving_collection(collection, kept, search, lcma) as server:
            measured.append(await _measure(server, collection, mode))
    return measured


async def _measure(server: Server, collection: Collection, mode: str) -> Measured:
    rank, documents = ranker(server, mode), collection.documents()
    scores: dict[str, Score] = {}
    for query in collection.queries:
        notes = await rank(query.text)
        ranking = list(dict.fromkeys(documents[note] for note in notes))
        scores[query.id] = score_ranking(ranking, query.grades)
    return Measured(mode, scores)


def ranker(server: Server, mode: str) -> Rank:
    """A function from a query to the ids of notes, best first."""

    async def search(query: str) -> list[str]:
        text = as_plain_words(query) if mode == "fulltext" else query
        answer = await server.retrieval.search(SearchRequest(query=text, mode=mode, limit=NOTES))
        assert not answer.failed, answer.message
        return [hit.entry.note.id for hit in answer.hits]

    async def retrieve(query: str) -> list[str]:
        answer = await server.tools.call("lithos_retrieve", {"query": query, "limit": NOTES})
        assert answer is not None
        assert not answer["degraded"], answer
        return [row["id"] for row in answer["results"]]

    return retrieve if mode in RETRIEVES else search


def as_plain_words(query: str) -> str:
    """The words of a text without anything the query language knows."""
    return " ".join(word for _, word in words(fold(query)))


@asynccontextmanager
async def serving_collection(
    collection: Collection, kept: Path | None, search: SearchConfig, lcma: LcmaConfig | None = None
) -> AsyncIterator[Server]:
    """A server that has the collection as its notes, everything searchable.

    It works on a copy of what is kept, since retrieving teaches it.
    """
    with _folder(kept) as folder, tempfile.TemporaryDirectory(prefix="lithos-quality-") as work:
        built = await _build(collection, folder)
        data = Path(work) / "data"
        shutil.copytree(built, data)
        config = Config(storage=StorageConfig(data_dir=data), search=search, lcma=lcma or LcmaConfig())
        async with running_server(config) as server:
            await server.searchable()
            yield server


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="lithos-quality-") as folder:
        yield Path(folder)


async def _build(collection: Collection, folder: Path) -> Path:
    """Notes and indexes, from the last run if there is one; built aside, so that half of it never counts."""
    built = folder / f"{collection.name}-{collection.fingerprint()}"
    if built.exists():
        return built
    aside = built.with_suffix(".part")
    shutil.rmtree(aside, ignore_errors=True)
    collection.write_notes(aside / "knowledge")
    async with running_server(Config(storage=StorageConfig(data_dir=aside))) as server:
        await server.searchable()
    return aside.rename(built)


def _groups(collection: Collection) -> Iterator[tuple[str, list[JudgedQuery]]]:
    """All queries, then those of each kind if there are several."""
    yield "all", list(collection.queries)
    kinds = sorted({query.kind for query in collection.queries})
    for kind in kinds if len(kinds) > 1 else ():
        yield kind, [query for query in collection.queries if query.kind == kind]


def _report(
    name: str,
    kind: str,
    queries: Sequence[JudgedQuery],
    measured: Sequence[Measured],
    search: SearchConfig,
) -> None:
    by_mode = {one.mode: one for one in measured}
    legs = [by_mode[mode].ndcg(queries) for mode in LEGS if mode in by_mode]
    better = max(legs, key=mean, default=[])
    gains = {
        f"{mode}_over_better_leg": paired_difference(by_mode[mode].ndcg(queries), better)
        for mode in ("hybrid", *RETRIEVES)
        if better and mode in by_mode
    }
    print_report(
        "quality",
        collection=name,
        kind=kind,
        queries=len(queries),
        fusion=search.fusion,
        weight=search.semantic_weight,
        **{mode: one.figures(queries) for mode, one in by_mode.items()},
        **gains,
    )


if __name__ == "__main__":
    main()
