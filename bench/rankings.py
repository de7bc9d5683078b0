"""Document rankings by a running server, their scores against judgements, and intervals of differences."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import trio
from attrs import frozen
from numpy.typing import NDArray

from bench.judged import JudgedQuery
from lithos.app.server import Server
from lithos.kernel.values.principals import COMMAND, Principal
from lithos.search.service.search import Search, SearchRequest
from lithos.text.words.analysis import fold, words

#: Number of notes to request. This is enough for ten documents with several passages each.
NOTES = 50
MODES = ("fulltext", "semantic", "hybrid", "retrieve")
#: Number of ranked documents that count, and number of resamplings per interval.
DEPTH, RESAMPLINGS = 10, 10_000
#: Maximum number of concurrent queries. Simultaneous vector queries share one pass over the vectors.
_TOGETHER = 3
Rank = Callable[[str], Awaitable[list[str]]]


@frozen
class Score:
    """Scores of one query, each 0..1: nDCG with gain 2^grade - 1, reciprocal rank and recall, all at 10."""

    ndcg: float
    mrr: float
    recall: float


def score_ranking(ranking: Sequence[str], grades: Mapping[str, int]) -> Score:
    """Return the scores of the first ten documents in a ranking. Repeated documents count once."""
    top = ranking[:DEPTH]
    ideal = _discounted(sorted(grades.values(), reverse=True)[:DEPTH])
    places = [place for place, doc in enumerate(top, start=1) if doc in grades]
    return Score(
        ndcg=_discounted([grades.get(doc, 0) for doc in top]) / ideal,
        mrr=1 / places[0] if places else 0.0,
        recall=len(places) / len(grades),
    )


def _discounted(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


def mean(values: Sequence[float]) -> float:
    """Return the mean times 100, which is the usual form of these figures."""
    return round(100 * math.fsum(values) / len(values), 2) if values else math.nan


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], seed: int = 7
) -> tuple[float, float, float]:
    """Return the mean of `ours - theirs` times 100, and its 95 % interval (paired bootstrap).

    `ours` and `theirs` must contain values for the same queries in the same order. The queries are resampled
    10,000 times.
    """
    differences: NDArray[np.float64] = 100 * (np.asarray(ours, float) - np.asarray(theirs, float))
    if not len(differences):
        return math.nan, math.nan, math.nan
    rng = np.random.default_rng(seed)
    drawn = [
        differences[rng.integers(0, len(differences), len(differences))].mean() for _ in range(RESAMPLINGS)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return round(float(differences.mean()), 2), round(float(low), 2), round(float(high), 2)


MEASURES = tuple(field.name for field in attrs.fields(Score))


@frozen
class Measured:
    """The rankings (first ten documents) and the scores of one search method, by query id."""

    rankings: Mapping[str, tuple[str, ...]]
    scores: Mapping[str, Score]

    def figures(self, queries: Sequence[JudgedQuery]) -> dict[str, float]:
        """Return the means over these queries, times 100."""
        return {name: mean(self._values(name, queries)) for name in MEASURES}

    def over(self, other: Measured, queries: Sequence[JudgedQuery]) -> dict[str, tuple[float, float, float]]:
        """Return the differences to another method, with 95 % intervals.

        The queries are resampled in pairs.
        """
        return {
            name: paired_difference(self._values(name, queries), other._values(name, queries))
            for name in MEASURES
        }

    def joined(self, other: Measured) -> Measured:
        """Return the results of both, which must be of different queries."""
        return Measured({**self.rankings, **other.rankings}, {**self.scores, **other.scores})

    def _values(self, measure: str, queries: Sequence[JudgedQuery]) -> list[float]:
        return [getattr(self.scores[query.id], measure) for query in queries]


def figures_with_first(measured: Measured, queries: Sequence[JudgedQuery]) -> dict[str, float]:
    """Return the means of `Measured.figures`, and the share of queries with a right first note, times 100."""
    first = [float(measured.scores[query.id].mrr == 1) for query in queries]
    return {**measured.figures(queries), "hit1": mean(first)}


def write_rankings(path: Path, measured: Measured, queries: Sequence[JudgedQuery]) -> None:
    """Write a JSON line per query: its right documents, its ranking and its scores."""
    rows = [
        {
            "id": query.id,
            "right": sorted(query.grades),
            "ranking": measured.rankings[query.id],
            **attrs.asdict(measured.scores[query.id]),
        }
        for query in queries
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


async def ask_all(rank: Rank, queries: Iterable[JudgedQuery]) -> dict[str, list[str]]:
    """Return the ids of the notes that each query finds, by query id."""
    found: dict[str, list[str]] = {}
    waiting = iter(list(queries))

    async def work() -> None:
        for query in waiting:
            found[query.id] = await rank(query.text)

    async with trio.open_nursery() as nursery:
        for _ in range(_TOGETHER):
            nursery.start_soon(work)
    return found


async def measure(rank: Rank, documents: Mapping[str, str], queries: Sequence[JudgedQuery]) -> Measured:
    """Run all queries. `documents` maps notes to documents. A document counts by its best note."""
    found = await ask_all(rank, queries)
    rankings = {
        query.id: tuple(dict.fromkeys(documents[note] for note in found[query.id]))[:DEPTH]
        for query in queries
    }
    scores = {query.id: score_ranking(rankings[query.id], query.grades) for query in queries}
    return Measured(rankings, scores)


def ranker(server: Server, mode: str, notes: int = NOTES) -> Rank:
    """Return a function that returns the note ids for a query, best note first."""

    async def search(query: str) -> list[str]:
        text = as_plain_words(query) if mode == "fulltext" else query
        answer = await server.get(Search).search(SearchRequest(query=text, mode=mode, limit=notes))
        if answer.failed:
            raise RuntimeError(f"{mode} answered without {answer.failed}: {answer.message}")
        return [hit.entry.note.id for hit in answer.hits]

    async def retrieve(query: str) -> list[str]:
        answer = await called(server, "lithos_retrieve", query=query, limit=notes)
        return [row["id"] for row in answer["results"]]

    return retrieve if mode == "retrieve" else search


async def called(
    server: Server, tool: str, *, principal: Principal = COMMAND, **arguments: object
) -> Mapping[str, object]:
    """Return the answer of a tool.

    Raises `RuntimeError` if the tool refuses, or if a part of the server fails.

    If `principal` is not Lithos itself, the answer has the form that `server.answers` configures.
    """
    answer = await server.tools.call(tool, arguments, principal)
    if answer is None or answer.get("status") == "error" or answer.get("degraded"):
        raise RuntimeError(f"{tool} answered {answer}")
    return answer


def as_plain_words(query: str) -> str:
    """Return the words of a text without query syntax."""
    return " ".join(word for _, word in words(fold(query)))
