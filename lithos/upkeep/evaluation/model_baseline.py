"""A saved evaluation, and the changes since it was saved (docs/spec/context.md §3).

A baseline stores the rank of the first expected note for each question. Ranks are compared only if both runs
contain the same question. A question is only listed if it occurs in one run only, or if its `expect`,
`within`, `tags` or `forbid` changed. A rank below the depth of either run counts as not found, so that a
deeper search does not count as an improvement.

The ranking measures use binary relevance: a note is expected or not expected. A ranking consists of the ranks
of the expected notes that were found (from 1), and the number of expected notes (`relevant`). Each measure of
a question is between 0 and 1. The result is the mean over all questions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import asdict, field, frozen

from lithos.upkeep.evaluation.model_questions import LARGEST_FILE, MOST_QUESTIONS, Question

#: Number of results that nDCG considers.
NDCG_CUT: Final = 10


def hit_at(k: int, ranks: Iterable[int]) -> float:
    """Return 1 if an expected note is among the first `k`, else 0 (success@k; trec_eval `success_k`)."""
    return float(any(rank <= k for rank in ranks))


def recall_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """Return the share of expected notes in the first k (Manning, Raghavan, Schütze 2008, section 8.3)."""
    return sum(rank <= k for rank in ranks) / relevant if relevant else 0.0


def reciprocal_rank(ranks: Iterable[int]) -> float:
    """Return 1 / the first rank, or 0 if no expected note was found.

    The mean is MRR (Voorhees, TREC-8, 1999).
    """
    return 1 / min(ranks, default=math.inf)


def ndcg_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """Return nDCG@k: the sum of 1/log2(1 + rank), divided by the corresponding sum for the ideal ranking.

    See Järvelin and Kekäläinen 2002, ACM TOIS 20(4), with the discount of Burges et al. 2005. For binary
    relevance, linear and exponential gain are equal. The ideal ranking has min(relevant, k) expected notes at
    the top.
    """
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, min(relevant, k) + 1))
    return sum(1 / math.log2(1 + rank) for rank in ranks if rank <= k) / ideal if ideal else 0.0


@frozen
class Ranking:
    """The ranks of the expected notes of one question, and the number of expected notes."""

    ranks: tuple[int, ...]
    relevant: int


@frozen
class Scores:
    """Means of the measures over all questions."""

    hit: float
    recall: float
    mrr: float
    ndcg: float

    @classmethod
    def of(cls, rankings: Sequence[Ranking], k: int) -> Scores:
        """Return the means of all measures.

        Hit and recall use the first `k` results, nDCG the first 10, MRR all.
        """
        count = len(rankings)

        def mean(values: Iterable[float]) -> float:
            return math.fsum(values) / count if count else 0.0

        return cls(
            hit=mean(hit_at(k, each.ranks) for each in rankings),
            recall=mean(recall_at(k, each.ranks, each.relevant) for each in rankings),
            mrr=mean(reciprocal_rank(each.ranks) for each in rankings),
            ndcg=mean(ndcg_at(NDCG_CUT, each.ranks, each.relevant) for each in rankings),
        )


FORMAT: Final = 1
#: Maximum size of a baseline in bytes. This is enough for the largest question file even if every character
#: is escaped.
LARGEST_BASELINE: Final = 8 * LARGEST_FILE
#: Maximum rank in a baseline. No search returns nearly as many results.
MOST_ROWS: Final = 1_000_000


class UnusableBaseline(Exception):
    """Error for a file that is not a baseline. The message gives the reason."""


@frozen(kw_only=True)
class QuestionResult:
    """The result of one question: the ranks of the first expected note and of the first forbidden note."""

    question: str
    mode: str = ""
    expect: tuple[str, ...] = ()
    within: int = 0
    tags: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    rank: int | None = None
    #: Rank of the first forbidden note among the first `within` results.
    forbidden_rank: int | None = None

    @classmethod
    def of(cls, asked: Question, rank: int | None, forbidden_rank: int | None) -> QuestionResult:
        """Return the result of a question."""
        words, mode = asked.key
        return cls(
            question=words,
            mode=mode,
            expect=tuple(sorted(asked.expect)),
            within=asked.within,
            tags=tuple(sorted(asked.tags)),
            forbid=tuple(sorted(asked.forbid)),
            rank=rank,
            forbidden_rank=forbidden_rank,
        )

    @property
    def key(self) -> tuple[str, str]:
        """The fields that identify a question: its words and mode."""
        return self.question, self.mode

    @property
    def asked(self) -> tuple[object, ...]:
        """The fields that must be equal in both runs. Otherwise the ranks are not compared."""
        return self.expect, self.within, self.tags, self.forbid


@frozen(kw_only=True)
class Baseline:
    """A saved evaluation.

    `mode` applies to questions that have no mode. `depth` is the number of results read for each question.
    """

    mode: str
    k: int
    depth: int
    version: str
    saved_at: str
    outcomes: tuple[QuestionResult, ...]

    def encode(self) -> str:
        """Return the file content.

        Each outcome is on its own line, which gives small diffs under version control.
        """
        head = {"lithos_baseline": FORMAT, **asdict(self, filter=lambda each, _: each.name != "outcomes")}
        rows = ",\n".join(json.dumps(asdict(each)) for each in self.outcomes)
        return json.dumps(head)[:-1] + f', "outcomes": [\n{rows}\n]}}\n'


def read_baseline(content: bytes) -> Baseline:
    """Parse a baseline file. Raises `UnusableBaseline`."""
    if len(content) > LARGEST_BASELINE:
        raise UnusableBaseline(f"it has more than {LARGEST_BASELINE:,} bytes")
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnusableBaseline("it is not valid JSON") from error
    if not isinstance(told, dict) or "lithos_baseline" not in told:
        raise UnusableBaseline("it was not written by --save")
    if told["lithos_baseline"] != FORMAT:
        raise UnusableBaseline("another version of Lithos wrote it; save a new baseline")
    try:
        rows = told["outcomes"]
        if not isinstance(rows, list) or len(rows) > MOST_QUESTIONS:
            raise TypeError("outcomes")
        return Baseline(
            mode=_text(told["mode"]),
            k=_rank(told["k"]),
            depth=_rank(told["depth"]),
            version=_text(told["version"]),
            saved_at=_text(told["saved_at"]),
            outcomes=tuple(map(_outcome, rows)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UnusableBaseline(f"a field is missing or has the wrong type ({error})") from error


def _outcome(row: Mapping[str, Any]) -> QuestionResult:
    return QuestionResult(
        question=_text(row["question"]),
        mode=_text(row["mode"]),
        expect=_texts(row["expect"]),
        within=_rank(row["within"]),
        tags=_texts(row["tags"]),
        forbid=_texts(row["forbid"]),
        rank=None if row["rank"] is None else _rank(row["rank"]),
        forbidden_rank=None if row["forbidden_rank"] is None else _rank(row["forbidden_rank"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise TypeError("half of a character")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return tuple(map(_text, value))


def _rank(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ROWS:
        raise TypeError("no rank")
    return value


@frozen
class RankChange:
    """A question whose ranks changed."""

    before: QuestionResult
    now: QuestionResult
    kind: Literal["better", "worse"]
    #: Description of the change, in words for people.
    what: str


@frozen(kw_only=True)
class BaselineComparison:
    """The differences between an evaluation and its baseline.

    Questions that were not compared are listed by their words.
    """

    changes: tuple[RankChange, ...] = ()
    #: Questions that differ from the baseline in `expect`, `forbid`, `within` or `tags`.
    changed: tuple[str, ...] = ()
    only_now: tuple[str, ...] = ()
    only_before: tuple[str, ...] = ()
    same: int = field(default=0)

    def of_kind(self, kind: Literal["better", "worse"]) -> tuple[RankChange, ...]:
        """Return the questions that became better or worse. `kind` selects which."""
        return tuple(each for each in self.changes if each.kind == kind)


def compare(before: Baseline, outcomes: Iterable[QuestionResult], depth: int) -> BaselineComparison:
    """Compare two runs question by question. `depth` is the number of results read in the current run.

    A new forbidden note makes a question worse, whatever its rank. If a forbidden note has disappeared, the
    question is better, unless the rank of the expected note fell.
    """
    old = {each.key: each for each in before.outcomes}
    seen, deepest = set[tuple[str, str]](), min(depth, before.depth)
    changes: list[RankChange] = []
    changed: list[str] = []
    only_now: list[str] = []
    same = 0
    for now in outcomes:
        seen.add(now.key)
        earlier = old.get(now.key)
        if earlier is None:
            only_now.append(now.question)
        elif earlier.asked != now.asked:
            changed.append(now.question)
        elif (change := _judge(earlier, now, deepest)) is not None:
            changes.append(change)
        else:
            same += 1
    return BaselineComparison(
        changes=tuple(changes),
        changed=tuple(changed),
        only_now=tuple(only_now),
        only_before=tuple(each.question for each in before.outcomes if each.key not in seen),
        same=same,
    )


def _judge(before: QuestionResult, now: QuestionResult, deepest: int) -> RankChange | None:
    ranks = [None if rank is None or rank > deepest else rank for rank in (before.rank, now.rank)]
    was, is_now = (deepest + 1 if rank is None else rank for rank in ranks)
    what = f"rank {ranks[0] or 'none'} -> {ranks[1] or 'none'}"
    if now.forbidden_rank is not None and before.forbidden_rank is None:
        return RankChange(before, now, "worse", f"a forbidden note is now at rank {now.forbidden_rank}")
    if is_now > was:
        return RankChange(before, now, "worse", what)
    if before.forbidden_rank is not None and now.forbidden_rank is None:
        return RankChange(before, now, "better", "no forbidden note is found any more")
    return RankChange(before, now, "better", what) if is_now < was else None
