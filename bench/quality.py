"""How good search and retrieval are on judged collections: nDCG@10, MRR@10 and Recall@10, with intervals.

`python -m bench.quality COLLECTIONS --data DIR >> RESULTS` measures everything; each result is a JSON line,
and `python -m bench.quality_tables RESULTS` makes tables of them. COLLECTIONS is a folder of collections (see
`bench/judged.py`); without it `LITHOS_EVAL` names the folder. A document counts by its best note. The server
runs in this process; DIR keeps the notes and indexes for the next run.

Parts: `modes` are the search modes and `lithos_retrieve` on its first day. `used` is `lithos_retrieve` after
1,000 retrievals without feedback. `taught` is simulated use (`bench/use.py`): two rounds of questions with
citations, 10 or 30 % of the answers with a wrong one; then the same questions, the same needs in other words
(`again`), other questions of the same documents (`related`) and of documents that nobody asked about
(`unrelated`). `recovery` is a misled round, and three honest ones after it. Intervals are 95 % of the
differences to hybrid search and to retrieval before, queries resampled in pairs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from bench.judged import LAYOUTS, Collection, JudgedQuery, read_collections
from bench.rankings import MODES, NOTES, Measured, measure, ranker
from bench.report import print_report
from bench.use import HONEST, MISLED, Agents, Study, plan_study, teach_round, use_without_feedback
from bench.vaults import Vaults, vault_folder
from lithos.app import Server

PARTS = ("modes", "used", "taught", "recovery")
#: What a vault may look like; the last is nearest to a real one.
MEASURED_LAYOUTS = ("passages", "pages", "titled")
LEGS = ("fulltext", "semantic")
USES = 1_000
ROUNDS = 2
#: Shares of the answers that cite a wrong note too.
ERRORS = (0.1, 0.3)
HONEST_ROUNDS = 3


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=MEASURED_LAYOUTS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--errors", nargs="+", type=float, default=ERRORS, help="shares of wrong citations")
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
    parser.add_argument("--tier", choices=("static", "accurate"), default="static", help="embeddings")


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for collection in read_collections(options.collections, options.only):
            for layout, laid_out in distinct_layouts(collection, options.layouts):
                sampled = laid_out.sample(options.sample)
                session = Session(collection.name, layout, sampled, vaults, plan_study(sampled.queries))
                trio.run(session.run, options.parts, options.modes, options.errors)


def distinct_layouts(collection: Collection, layouts: Iterable[str]) -> Iterator[tuple[str, Collection]]:
    """The collection in each layout, without those that make the same notes and queries as one before."""
    seen: set[tuple[str, int]] = set()
    for layout in layouts:
        laid_out = collection.laid_out(layout)
        what = (laid_out.fingerprint(), len(laid_out.queries))
        if what not in seen:
            yield layout, laid_out
        seen.add(what)


@define
class Session:
    """The measurements of one collection in one layout and tier; rankings of the first day are made once."""

    name: str
    layout: str
    collection: Collection
    vaults: Vaults
    study: Study
    _day_one: dict[str, Measured] = field(factory=dict)
    _documents: dict[str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._documents = self.collection.documents()

    async def run(self, parts: Sequence[str], modes: Sequence[str], errors: Sequence[float]) -> None:
        """Measure and print."""
        await self._measure_day_one(modes if "modes" in parts else ("hybrid", "retrieve"))
        if "modes" in parts:
            self._report_modes(modes)
        if "used" in parts:
            await self._use()
        for error in errors if "taught" in parts else ():
            await self._teach(error)
        if "recovery" in parts:
            await self._recover()

    async def _measure_day_one(self, modes: Sequence[str]) -> None:
        async with self.vaults.serving(self.collection) as server:
            for mode in dict.fromkeys((*modes, "hybrid", "retrieve")):
                measured = await self._measure(server, self.collection.queries, mode)
                if mode in ("hybrid", "retrieve"):
                    measured = measured.joined(await self._measure(server, self.study.again, mode))
                self._day_one[mode] = measured

    def _report_modes(self, modes: Sequence[str]) -> None:
        hybrid = self._day_one["hybrid"]
        for kind, queries in by_kind(self.collection.queries):
            better_leg = self._better_leg(queries)
            for mode in modes:
                against = better_leg if mode == "hybrid" else {"hybrid": hybrid}
                self._report("modes", queries, self._day_one[mode], against, mode=mode, kind=kind)

    def _better_leg(self, queries: Sequence[JudgedQuery]) -> dict[str, Measured]:
        """The better of full text and semantic search, where both were measured."""
        legs = [self._day_one[mode] for mode in LEGS if mode in self._day_one]
        if len(legs) < len(LEGS):
            return {}
        ndcg = [leg.figures(queries)["ndcg"] for leg in legs]
        return {"leg": legs[ndcg.index(max(ndcg))]}

    async def _use(self) -> None:
        queries = self.collection.queries
        async with self.vaults.serving(self.collection) as server:
            await use_without_feedback(server, queries, USES)
            used = await self._measure(server, queries)
        changed = used.changed(self._day_one["retrieve"], queries)
        self._report("used", queries, used, self._before(), retrievals=USES, changed_rankings=changed)

    async def _teach(self, error: float) -> None:
        agents = Agents(wrong=error)
        async with self.vaults.serving(self.collection) as server:
            cited = [
                await teach_round(server, self._documents, self.study.asked, agents, number)
                for number in range(1, ROUNDS + 1)
            ]
            for group, queries in self.study.groups().items():
                taught = await self._measure(server, queries)
                self._report(
                    "taught", queries, taught, self._before(), group=group, error=error, citations=sum(cited)
                )

    async def _recover(self) -> None:
        async with self.vaults.serving(self.collection) as server:
            for number in range(HONEST_ROUNDS + 1):
                agents = HONEST if number else MISLED
                await teach_round(server, self._documents, self.study.asked, agents, number)
                for group in ("same", "again"):
                    queries = self.study.groups()[group]
                    measured = await self._measure(server, queries)
                    self._report(
                        "recovery", queries, measured, self._before(), group=group, honest_rounds=number
                    )

    async def _measure(
        self, server: Server, queries: Sequence[JudgedQuery], mode: str = "retrieve"
    ) -> Measured:
        return await measure(ranker(server, mode, NOTES), self._documents, queries)

    def _before(self) -> dict[str, Measured]:
        return {"hybrid": self._day_one["hybrid"], "before": self._day_one["retrieve"]}

    def _report(
        self,
        part: str,
        queries: Sequence[JudgedQuery],
        measured: Measured,
        against: dict[str, Measured],
        **what: Any,
    ) -> None:
        print_report(
            "quality",
            collection=self.name,
            layout=self.layout,
            tier=self.vaults.tier,
            part=part,
            **what,
            queries=len(queries),
            figures=measured.figures(queries),
            against={name: other.figures(queries) for name, other in against.items()},
            over={name: measured.over(other, queries) for name, other in against.items()},
        )


def by_kind(queries: Sequence[JudgedQuery]) -> Iterator[tuple[str, list[JudgedQuery]]]:
    """All queries, then those of each kind if there are several."""
    yield "all", list(queries)
    kinds = sorted({query.kind for query in queries})
    for kind in kinds if len(kinds) > 1 else ():
        yield kind, [query for query in queries if query.kind == kind]


if __name__ == "__main__":
    main()
