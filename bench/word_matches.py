"""How strong the first rows of a search by words or meaning alone are: fits `WORDS_CALIBRATION`, and with
`--mode semantic` an entry of `MEANING_CALIBRATIONS` (`core.learning.match`).

`python -m bench.word_matches COLLECTIONS --data DIR` takes half of the documents away, twice anew, as
`bench.lookup` does, and searches for all questions with `mode=fulltext`. For each collection and layout it
prints what the probabilities of the other four fifths' fit would call `strong` at the threshold printed with
the coefficients: percentages of the questions without an answer (`false_strong`) and with one
(`right_strong`). The threshold is the lowest with at most 5 % false on each.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np
import trio
from attrs import frozen

from bench.judged import LAYOUTS, read_collections
from bench.logistic import Logistic, Matrix, fit_logistic, folds, threshold_at
from bench.lookup import ALLOWED, FOLDS, Halved, halve
from bench.quality import MEASURED_LAYOUTS, add_collection_options, distinct_layouts
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app import Server
from lithos.core.learning.match import TENTH, THIRTIETH, MeaningFeatures, WordFeatures
from lithos.services.search.search import SearchRequest

#: The features of each mode.
MODES: Final = {"fulltext": WordFeatures, "semantic": MeaningFeatures}
DRAWS: Final = 2


@frozen
class Row:
    """One of the first three rows of a search: its features, whether it answers, and whether any does."""

    collection: str
    layout: str
    query: str
    is_first: bool
    is_answered: bool
    is_right: bool
    features: Mapping[str, float]

    @property
    def part(self) -> tuple[str, str]:
        """Collection and layout."""
        return self.collection, self.layout


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.word_matches",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=MEASURED_LAYOUTS)
    parser.add_argument("--mode", choices=tuple(MODES), default="fulltext")
    parser.add_argument("--draws", type=int, default=DRAWS, help="halves of each collection")
    options = parser.parse_args()
    rows: list[Row] = []
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for collection in read_collections(options.collections, options.only):
            for layout, laid_out in distinct_layouts(collection, options.layouts):
                for draw in range(options.draws):
                    halved = halve(laid_out.sample(options.sample), seed=7 + draw)
                    rows += trio.run(_collect, collection.name, layout, halved, vaults, options.mode)
    report(rows, options.mode)


async def _collect(name: str, layout: str, halved: Halved, vaults: Vaults, mode: str) -> list[Row]:
    rows: list[Row] = []
    async with vaults.serving(halved.kept) as server:
        documents = halved.kept.documents()
        for query in halved.kept.queries:
            for number, (serial, known) in enumerate((await _features(server, mode, query.text)).items()):
                entry = server.catalogue.at_serial(serial)
                assert entry is not None
                rows.append(
                    Row(
                        name,
                        layout,
                        query.id,
                        is_first=number == 0,
                        is_answered=query.id not in halved.unanswered,
                        is_right=documents[entry.note.id] in query.grades,
                        features=attrs.asdict(known),
                    )
                )
    return rows


async def _features(server: Server, mode: str, question: str) -> Mapping[int, WordFeatures | MeaningFeatures]:
    """Those of the first three rows by serial; of a full-text search for the plain words."""
    search = server.search
    if mode == "semantic":
        found = await search.search(SearchRequest(query=question, mode=mode, limit=THIRTIETH))
        scores = [(hit.entry.serial, hit.score) for hit in found.hits]
        return search.hybrid.meaning_features(question, scores, search.threshold)[1] or {}
    words = " ".join(re.findall(r"\w+", question))
    found = await search.search(SearchRequest(query=words, mode=mode, limit=TENTH))
    scores = [(hit.entry.serial, hit.score) for hit in found.hits]
    return search.hybrid.word_features(words, scores)[1] or {}


def report(rows: Sequence[Row], mode: str) -> None:
    """Print the figures of each part, and the coefficients fitted to all of it."""
    chances = predict_held_out(rows)
    is_answered = np.array([row.is_answered for row in rows])
    is_right = np.array([row.is_right for row in rows])
    firsts = list(_firsts(rows))
    threshold = max(threshold_at(chances[first], is_answered[first], ALLOWED) for _, first in firsts)
    for (collection, layout), first in firsts:
        strong, answered = chances[first] > threshold, is_answered[first]
        print_report(
            "word_matches",
            mode=mode,
            collection=collection,
            layout=layout,
            false_strong=_percent(strong[~answered]),
            right_strong=_percent((strong & is_right[first])[answered]),
        )
    print(fit(rows).as_code(mode, threshold))


def fit(rows: Sequence[Row]) -> Logistic:
    """The coefficients, of all rows; a small collection is neither outvoted nor as loud as a large one."""
    sizes: dict[tuple[str, str], int] = {}
    for row in rows:
        sizes[row.part] = sizes.get(row.part, 0) + 1
    counts = np.array([(max(sizes.values()) / sizes[row.part]) ** 0.5 for row in rows])
    names = tuple(rows[0].features)
    return fit_logistic(names, _matrix(rows), np.array([row.is_right for row in rows]), 1.0, counts)


def predict_held_out(rows: Sequence[Row]) -> Matrix:
    """Each row's probability by a function that was fitted without its question."""
    fold_of = folds([f"{row.collection}:{row.query}" for row in rows], FOLDS)
    chances = np.zeros(len(rows))
    for fold in range(FOLDS):
        held_out = fold_of == fold
        if held_out.any():
            others = [row for row, is_out in zip(rows, held_out, strict=True) if not is_out]
            chances[held_out] = fit(others).probabilities(_matrix(rows)[held_out])
    return chances


def _matrix(rows: Sequence[Row]) -> Matrix:
    return np.array([list(row.features.values()) for row in rows], dtype=np.float64)


def _firsts(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], Sequence[int]]]:
    for part in dict.fromkeys(row.part for row in rows):
        yield part, [number for number, row in enumerate(rows) if row.is_first and row.part == part]


def _percent(which: Matrix) -> float:
    return round(100 * float(np.mean(which)), 1) if len(which) else 0.0


if __name__ == "__main__":
    main()
