"""Benchmark of the match strength of rows (`match`).

The benchmark fits the match strength to judged questions and measures errors.

`python -m bench.lookup COLLECTIONS --vault VAULT --data DIR` removes half of the documents of the collections
and of other kinds of notes (`bench/kinds.py`) several times, so that about half of the questions have no
answer, and asks all questions. For each collection and layout it prints percentages of first rows: `strong`
among right rows, `strong_right` among strong rows of answerable questions, and `false_strong` and
`false_fair` among unanswerable questions. It does so for the function in the `code`, and for a function
`fitted` to all questions, at the lowest threshold with at most 5 % false hits on each part. `--fit` prints
its coefficients and that threshold as an entry of `search.ranking.match`. Full-text and semantic searches
(`--mode`) have three rows per question.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import trio
from attrs import evolve, frozen

from bench.judged import LAYOUTS, Collection, read_collections
from bench.kinds import read_kinds
from bench.logistic import Logistic, Matrix, fit_logistic, threshold_at
from bench.multilingual import ENGLISH, collection_of, mixed_collection, read_set
from bench.quality import add_collection_options, distinct_layouts
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app.server import Server
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking import match_strength
from lithos.search.service.search import Search, SearchRequest

#: The features that each search mode has.
MODES: Final[Mapping[str, Any]] = {
    "hybrid": match_strength.Features, "fulltext": match_strength.WordFeatures,
    "semantic": match_strength.MeaningFeatures,
}  # fmt: skip
#: Number of halves per collection, and maximum share of false hits at the printed threshold.
DRAWS, ALLOWED = 3, 0.05
#: Seed for the removed halves. It must differ from the sample seed. With the same shuffle, exactly the
#: documents without a question would be removed.
SEED = 101


@frozen
class Row:
    """A row with its collection, layout and features.

    Flags show whether the row, or any note, answers the question.
    """

    part: tuple[str, str]
    query: str
    is_first: bool
    is_answered: bool
    is_right: bool
    features: Mapping[str, float]


def halve(collection: Collection, seed: int = 7) -> tuple[Collection, frozenset[str]]:
    """Return the collection without half of its documents, and the queries whose answers were removed.

    If each query has many documents, the documents of half of the queries are removed.
    """
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
    return evolve(collection, name=f"{collection.name}-halved", chunks=chunks), unanswered


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.lookup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--mode", choices=tuple(MODES), default="hybrid")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--vault", type=Path, help="Markdown folder to use as an additional kind of notes")
    parser.add_argument("--languages", type=Path, metavar="DIR", help="folder of notes in several languages")
    parser.add_argument("--draws", type=int, default=DRAWS, help="number of halves per collection")
    parser.add_argument("--fit", action="store_true", help="print the coefficients fitted to all questions")
    options = parser.parse_args()
    rows: list[Row] = []
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for name, layout, collection in _parts(options):
            for draw in range(options.draws):
                halved, unanswered = halve(collection.sample(options.sample), seed=SEED + draw)
                rows += trio.run(_collect, (name, layout), halved, unanswered, vaults, options.mode)
    report(rows, options.mode, options.tier, is_fit_told=options.fit)


def _parts(options: argparse.Namespace) -> Iterator[tuple[str, str, Collection]]:
    """Yield the collections in each layout, and the collections of other kinds of notes."""
    collections = read_collections(options.collections, [])
    for collection in collections:
        for layout, laid_out in distinct_layouts(collection, options.layouts):
            if not options.only or collection.name in options.only:
                yield collection.name, layout, laid_out
    for kind in read_kinds(collections, options.vault):
        if not options.only or kind.name in options.only:
            yield kind.name, "as it is", kind
    if options.languages:
        sets = read_set(options.languages)
        yield "languages", "mixed", mixed_collection(sets)
        for language, notes in sets.items():  # small vaults, asked in their language and in English
            asked = {language: notes, ENGLISH: sets[ENGLISH]}
            yield "languages", "apart", collection_of(notes, asked)


async def _collect(
    part: tuple[str, str], halved: Collection, unanswered: frozenset[str], vaults: Vaults, mode: str
) -> list[Row]:
    rows: list[Row] = []
    documents, nothing = halved.documents(), dict.fromkeys(attrs.fields_dict(MODES[mode]), 0.0)
    async with vaults.serving(halved) as server:
        for query in halved.queries:
            is_answered = query.id not in unanswered
            found = await _features(server, mode, query.text)
            for number, (serial, known) in enumerate(found.items()):
                entry = server.get(Catalogue).at_serial(serial)
                assert entry is not None
                is_right = documents[entry.note.id] in query.grades
                rows.append(Row(part, query.id, number == 0, is_answered, is_right, attrs.asdict(known)))
            if not found and mode == "hybrid":
                rows.append(Row(part, query.id, True, is_answered, False, nothing))
    return rows


async def _features(server: Server, mode: str, question: str) -> Mapping[int, Any]:
    """Return the server's features by serial.

    The features are those of the first row, or of the first three rows in one mode.
    """
    search = server.get(Search)
    if mode == "hybrid":
        ranking = await search.hybrid.rank(question, Filters(), match_strength.CANDIDATES, search.threshold)
        return dict(list(ranking.features.items())[:1])
    words = " ".join(re.findall(r"\w+", question)) if mode == "fulltext" else question
    limit = match_strength.TENTH if mode == "fulltext" else match_strength.THIRTIETH
    found = await search.search(SearchRequest(query=words, mode=mode, limit=limit))
    scores = [(hit.entry.serial, hit.score) for hit in found.hits]
    if mode == "fulltext":
        return search.hybrid.word_features(words, scores)[1] or {}
    return search.hybrid.meaning_features(question, scores, search.threshold)[1] or {}


def report(rows: Sequence[Row], mode: str, tier: str, *, is_fit_told: bool) -> None:
    """Print the figures of each part. On request, also print the coefficients fitted to all parts."""
    function = fit(rows, mode)
    chances = function.probabilities(_matrix(rows))
    is_answered = np.array([row.is_answered for row in rows])
    firsts = {
        part: [number for number, row in enumerate(rows) if row.is_first and row.part == part]
        for part in dict.fromkeys(row.part for row in rows)
    }
    threshold = max(threshold_at(chances[some], is_answered[some], ALLOWED) for some in firsts.values())
    for (collection, layout), some in firsts.items():
        chosen = [rows[number] for number in some]
        fitted = [match_strength.strength(float(chances[number]), threshold) for number in some]
        told = {"code": [match_of(row, mode, tier) for row in chosen], "fitted": fitted}
        figures = {by: match_figures(chosen, said) for by, said in told.items()}
        print_report("lookup", mode=mode, tier=tier, collection=collection, layout=layout, **figures)
    if is_fit_told:
        print(function.as_code(tier if mode == "hybrid" else mode, threshold))


def match_of(row: Row, mode: str, tier: str) -> match_strength.Strength:
    """Return the match strength of a row, computed with the coefficients in the code."""
    rules = match_strength.CALIBRATIONS if mode == "hybrid" else match_strength.MEANING_CALIBRATIONS
    rule = match_strength.WORDS_CALIBRATION if mode == "fulltext" else rules[tier]
    chance = match_strength.probability(MODES[mode](**row.features), rule)
    return match_strength.strength(chance if any(row.features.values()) else None, rule.threshold)


def match_figures(firsts: Sequence[Row], said: Sequence[match_strength.Strength]) -> dict[str, float]:
    """Return the percentages that the docstring of the module defines."""
    pairs = list(zip(firsts, said, strict=True))
    without = [strength for row, strength in pairs if not row.is_answered]
    return {
        "strong": _share(s == "strong" for row, s in pairs if row.is_answered and row.is_right),
        "strong_right": _share(row.is_right for row, s in pairs if row.is_answered and s == "strong"),
        "false_strong": _share(strength == "strong" for strength in without),
        "false_fair": _share(strength == "fair" for strength in without),
    }


def _share(values: Iterable[bool]) -> float:
    counted = list(values)
    return round(100 * sum(counted) / max(1, len(counted)), 1)


def fit(rows: Sequence[Row], mode: str) -> Logistic:
    """Return the fitted coefficients. All collections have equal weight, whatever their size."""
    keys = [row.part[:1] if mode == "hybrid" else row.part for row in rows]
    sizes = Counter(keys)
    counts = np.array([(max(sizes.values()) / sizes[key]) ** 0.5 for key in keys])
    is_right = np.array([row.is_right and row.is_answered for row in rows])
    return fit_logistic(tuple(rows[0].features), _matrix(rows), is_right, 1.0, counts)


def _matrix(rows: Sequence[Row]) -> Matrix:
    return np.array([list(row.features.values()) for row in rows], dtype=np.float64)


if __name__ == "__main__":
    main()
