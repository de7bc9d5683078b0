"""`lithos_cache_lookup` as a decision: right and wrong answers, and hits where nothing answers.

`python -m bench.lookup COLLECTIONS --vault VAULT --data DIR` takes half of the documents of the collections
and of other kinds of notes (`bench/kinds.py`) away, three times anew, so that about half of the queries have
no answer, and looks all of them up. Of the queries with an answer `right` and `wrong` are percentages, of
those without one `false_hits`. `tool` is what the tool says, as it is configured; `match` is what a search
says of first rows. The curves are the best note's scores at thresholds with 1, 2, 5, 10 and 20 % false hits:
its similarity, and a logistic function of all features, fitted to the other four fifths of the questions.

`--fit` prints the coefficients fitted to everything as an entry of `CALIBRATIONS` (`core.learning.match`),
with the lowest threshold that has at most 5 % false hits on each collection in each layout.
`--table FILE` keeps the features for further fits.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import trio
from attrs import evolve, frozen
from numpy.typing import NDArray

from bench.features import NAMES, features_of
from bench.judged import LAYOUTS, Collection, JudgedQuery, read_collections
from bench.kinds import read_kinds
from bench.logistic import Matrix, fit_logistic, folds, operate, threshold_at
from bench.quality import MEASURED_LAYOUTS, add_collection_options, distinct_layouts
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app import Server
from lithos.core.learning.match import CALIBRATIONS, Features, Strength, probability, strength
from lithos.services.notes.knowledge import CacheRequest

DRAWS = 3
FOLDS = 5
#: Not that of samples: the same shuffle would take away exactly what is not asked for.
SEED = 101
FALSE_HITS = (0.01, 0.02, 0.05, 0.1, 0.2)
#: Which share of false hits the printed threshold allows.
ALLOWED = 0.05


@frozen
class Row:
    """One look-up: the features of the best note, whether it answers, and whether any note does.

    `verdict` is what the tool said: hit right, hit wrong, or miss.
    """

    collection: str
    layout: str
    draw: int
    query: str
    is_answered: bool
    is_right: bool
    verdict: str
    features: Mapping[str, float]


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


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.lookup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=MEASURED_LAYOUTS)
    parser.add_argument("--vault", type=Path, help="folder of Markdown that is a kind of notes too")
    parser.add_argument("--draws", type=int, default=DRAWS, help="halves of each collection")
    parser.add_argument("--fit", action="store_true", help="print coefficients fitted to all questions")
    parser.add_argument("--ridge", type=float, default=1.0, help="penalty of the fit")
    parser.add_argument("--table", type=Path, help="file of the features; read where it exists, else written")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    if options.table is not None and options.table.exists():
        rows = read_table(options.table)
    else:
        rows = _collect_all(options)
        if options.table is not None:
            write_table(options.table, rows)
    _report(rows, options)


def _collect_all(options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for name, layout, collection in _parts(options):
            for draw in range(options.draws):
                halved = halve(collection.sample(options.sample), seed=SEED + draw)
                rows += trio.run(_collect, name, layout, draw, halved, vaults)
    return rows


def _parts(options: argparse.Namespace) -> Iterator[tuple[str, str, Collection]]:
    """The collections in each layout, and the other kinds of notes."""
    collections = read_collections(options.collections, [])
    for collection in collections:
        for layout, laid_out in distinct_layouts(collection, options.layouts):
            if not options.only or collection.name in options.only:
                yield collection.name, layout, laid_out
    for kind in read_kinds(collections, options.vault):
        if not options.only or kind.name in options.only:
            yield kind.name, "as it is", kind


async def _collect(name: str, layout: str, draw: int, halved: Halved, vaults: Vaults) -> list[Row]:
    notes = {chunk.note_id: chunk for chunk in halved.kept.chunks}
    rows = []
    async with vaults.serving(halved.kept) as server:
        for query in halved.kept.queries:
            evidence = await features_of(server, query.text)
            rows.append(
                Row(
                    name,
                    layout,
                    draw,
                    query.id,
                    is_answered=query.id not in halved.unanswered,
                    is_right=evidence.note is not None and notes[evidence.note].doc in query.grades,
                    verdict=await _look_up(server, halved.kept.documents(), query),
                    features=evidence.features,
                )
            )
    return rows


async def _look_up(server: Server, documents: Mapping[str, str], query: JudgedQuery) -> str:
    answer = await server.knowledge.look_up(CacheRequest(query=query.text))
    if answer.entry is None:
        return "miss"
    return "right" if documents[answer.entry.note.id] in query.grades else "wrong"


def write_table(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(f"{json.dumps(attrs.asdict(row))}\n" for row in rows), encoding="utf-8")


def read_table(path: Path) -> list[Row]:
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _report(rows: Sequence[Row], options: argparse.Namespace) -> None:
    table = as_matrix(rows)
    is_right, is_answered = _flags(rows)
    outcome = is_right & is_answered
    scores = {
        "similarity": table[:, NAMES.index("cosine")],
        "fitted": predict_held_out(rows, table, outcome, options.ridge),
    }
    for collection, layout in dict.fromkeys(map(part_of, rows)):
        chosen = np.array([part_of(row) == (collection, layout) for row in rows])
        what = {"collection": collection, "layout": layout, "tier": options.tier}
        some = [row for row, is_chosen in zip(rows, chosen, strict=True) if is_chosen]
        print_report("lookup", **what, rule="tool", **tool_figures(some))
        print_report("lookup", **what, rule="match", **match_figures(some, options.tier))
        for rule, values in scores.items():
            print_report("lookup", **what, rule=rule, roc=_curve(values, is_right, is_answered, chosen))
    if options.fit:
        fitted = fit_logistic(NAMES, table, outcome, options.ridge, counts_of(rows))
        chances = fitted.probabilities(table)
        parts = [np.array([part_of(row) == part for row in rows]) for part in {part_of(row) for row in rows}]
        threshold = max(threshold_at(chances[some], is_answered[some], ALLOWED) for some in parts)
        print(fitted.as_code(options.tier, threshold))


def _curve(
    scores: Matrix, is_right: NDArray[np.bool_], is_answered: NDArray[np.bool_], chosen: NDArray[np.bool_]
) -> dict[str, dict[str, float]]:
    some = scores[chosen], is_right[chosen], is_answered[chosen]
    return {
        f"{share:.0%}": attrs.asdict(operate(*some, threshold_at(some[0], some[2], share)))
        for share in FALSE_HITS
    }


def part_of(row: Row) -> tuple[str, str]:
    """Collection and layout."""
    return row.collection, row.layout


def counts_of(rows: Sequence[Row]) -> Matrix:
    """How much a row counts in a fit: by the square root of how few rows its collection has.

    So a small collection is neither outvoted by a large one, nor as loud.
    """
    sizes = Counter(row.collection for row in rows)
    return np.array([(max(sizes.values()) / sizes[row.collection]) ** 0.5 for row in rows])


def as_matrix(rows: Sequence[Row]) -> Matrix:
    """The features, one row each, columns as in `NAMES`."""
    return np.array([[row.features[name] for name in NAMES] for row in rows], dtype=np.float64)


def _flags(rows: Sequence[Row]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return np.array([row.is_right for row in rows]), np.array([row.is_answered for row in rows])


def predict_held_out(rows: Sequence[Row], table: Matrix, outcome: NDArray[np.bool_], ridge: float) -> Matrix:
    """Each row's probability by a function fitted without its question, in whatever layout and draw."""
    fold_of = folds([f"{row.collection}:{row.query}" for row in rows], FOLDS)
    chances = np.zeros(len(rows))
    for fold in range(FOLDS):
        held_out = fold_of == fold
        if held_out.any():
            counts = counts_of(rows)[~held_out]
            fitted = fit_logistic(NAMES, table[~held_out], outcome[~held_out], ridge, counts)
            chances[held_out] = fitted.probabilities(table[held_out])
    return chances


def tool_figures(rows: Sequence[Row]) -> dict[str, float]:
    """What the tool made of these look-ups, over all draws."""
    answered = Counter(row.verdict for row in rows if row.is_answered)
    unanswered = Counter(row.verdict for row in rows if not row.is_answered)
    with_answer, without = max(1, answered.total()), max(1, unanswered.total())
    return {
        "answered": answered.total(),
        "unanswered": unanswered.total(),
        "right": round(100 * answered["right"] / with_answer, 1),
        "wrong": round(100 * answered["wrong"] / with_answer, 1),
        "missed": round(100 * answered["miss"] / with_answer, 1),
        "false_hits": round(100 * (1 - unanswered["miss"] / without), 1) if unanswered else 0.0,
    }


def match_figures(rows: Sequence[Row], tier: str) -> dict[str, float]:
    """What `match` says of first rows, in percent.

    `found` of right first rows are strong or fair, `strong` are strong; `strong_right` of strong rows are
    right where something answers; `false_strong` and `false_fair` of the questions that nothing answers.
    """
    said = [match_of(row, tier) for row in rows]
    right = [match for row, match in zip(rows, said, strict=True) if row.is_answered and row.is_right]
    answered = [row for row, match in zip(rows, said, strict=True) if row.is_answered and match == "strong"]
    without = [match for row, match in zip(rows, said, strict=True) if not row.is_answered]
    return {
        "found": _share(match != "weak" for match in right),
        "strong": _share(match == "strong" for match in right),
        "strong_right": _share(row.is_right for row in answered),
        "false_strong": _share(match == "strong" for match in without),
        "false_fair": _share(match == "fair" for match in without),
    }


def match_of(row: Row, tier: str) -> Strength:
    """What a search says of the first row, by the coefficients in the code."""
    rule = CALIBRATIONS[tier]
    is_found = any(row.features.values())
    return strength(probability(Features(**row.features), rule) if is_found else None, rule.threshold)


def _share(values: Iterable[bool]) -> float:
    counted = list(values)
    return round(100 * sum(counted) / max(1, len(counted)), 1)


if __name__ == "__main__":
    main()
